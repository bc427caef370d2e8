"""OpenHands' condenser in the laboratory: messages as its events, and a stand-in for its model."""

import re
from typing import Any, Final, TypeAlias

from litellm.types.utils import ModelResponse
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import LLM, LLMResponse, Message, MessageToolCall, TextContent
from openhands.sdk.llm.utils.metrics import MetricsSnapshot
from openhands.sdk.tool.schema import Observation
from pydantic import PrivateAttr

from bench.compaction.diligent import Line, diligent

Wire: TypeAlias = dict[str, Any]


class LabObservation(Observation):
    """What a tool answered."""


_EVENT: Final = re.compile(
    r"<EVENT>\n(\w+) \((\w+)\)\n  \w+: (.*?)(?:\n  Action: .*?)?\n</EVENT>", re.DOTALL
)


class StandIn(LLM):
    """Counts as all contenders do, and writes the diligent summary of what it is shown."""

    _events: list[tuple[str, str, str]] | None = PrivateAttr(default=None)

    def get_token_count(self, messages: Any, *_arguments: Any, **_options: Any) -> int:
        """Return the estimate of messages."""
        return sum(
            2
            + sum(-(-len(each.text) // 4) for each in message.content)
            + sum(-(-len(f"{each.name}{each.arguments}") // 4) for each in message.tool_calls or ())
            for message in messages
        )

    def generate(self, messages: Any, *_arguments: Any, **_options: Any) -> Any:
        """Return the summary of the events in a prompt."""
        prompt = "".join(each.text for message in messages[1:] for each in message.content)
        lines = [_line(*each) for each in self._events or _EVENT.findall(prompt)]
        content = [TextContent(text=diligent(lines) or "Nothing.")]
        return LLMResponse(
            message=Message(role="assistant", content=content),
            metrics=MetricsSnapshot(),
            raw_response=ModelResponse(),
        )


def _line(kind: str, source: str, text: str) -> Line:
    if kind == "CondensationSummaryEvent":
        return Line("Summary", text)
    return Line("User" if source == "user" else "Agent" if source == "agent" else "Error", text)


class WholeCondenser(LLMSummarizingCondenser):
    """Shows the stand-in whole events: the package shows a model 500 characters of each."""

    def _generate_condensation(self, forgotten_events: Any, *arguments: Any, **options: Any) -> Any:
        wires = [(each, _wire(each.to_llm_message())) for each in forgotten_events]
        self.llm._events = [  # noqa: SLF001 -- the stand-in's own
            (type(event).__name__, event.source, wire.get("content", "")) for event, wire in wires
        ]
        return super()._generate_condensation(forgotten_events, *arguments, **options)


class Condenser:
    """The condenser in a loop over messages."""

    def __init__(self, max_tokens: int, *, whole: bool) -> None:
        self._llm = StandIn(model="gpt-4o", api_key="none", usage_id="laboratory")
        condenser = WholeCondenser if whole else LLMSummarizingCondenser
        self._condenser = condenser(llm=self._llm, max_tokens=max_tokens, max_size=100_000)
        self._view = View()
        self._events: list[Any] = []
        self._actions: dict[str, str] = {}
        self._read = 0

    def compact(self, active: list[Wire]) -> list[Wire] | None:
        """Return the messages after a condensation; None where none is due."""
        for message in active[self._read :]:
            for event in self._of(message):
                self._events.append(event)
                self._view.append_event(event)
        self._read = len(active)
        condensed = self._condenser.condense(self._view, agent_llm=self._llm)
        if not isinstance(condensed, Condensation):
            return None
        self._events.append(condensed)
        self._view = View.from_events(self._events)
        left = [_wire(each) for each in ActionEvent.events_to_messages(self._view.events)]
        self._read = len(left)
        return left

    def _of(self, message: Wire) -> list[Any]:
        content = [TextContent(text=message.get("content") or "")]
        if message["role"] == "tool":
            call = message["tool_call_id"]
            return [
                ObservationEvent(
                    tool_name="tool",
                    tool_call_id=call,
                    action_id=self._actions[call],
                    observation=LabObservation(content=content),
                )
            ]
        events: list[Any] = []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            event = ActionEvent(
                thought=content if message.get("content") else [],
                tool_name=function["name"],
                tool_call_id=call["id"],
                tool_call=MessageToolCall(id=call["id"], origin="completion", **function),
                llm_response_id=call["id"],
            )
            self._actions[call["id"]] = event.id
            events.append(event)
        if events:
            return events
        source: Any = "user" if message["role"] == "user" else "agent"
        return [
            MessageEvent(source=source, llm_message=Message(role=message["role"], content=content))
        ]


def _wire(message: Any) -> Wire:
    wire: Wire = {"role": message.role}
    text = "\n".join(each.text for each in message.content)
    if text or not message.tool_calls:
        wire["content"] = text
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": each.id,
                "type": "function",
                "function": {"name": each.name, "arguments": each.arguments},
            }
            for each in message.tool_calls
        ]
    if message.tool_call_id:
        wire["tool_call_id"] = message.tool_call_id
    return wire
