"""The prompts of seeds 001 and 002."""

from collections.abc import Sequence
from typing import Final

from contextgauge.compaction.formats.fields import json_text, json_value, own
from contextgauge.compaction.messages import Block, Message, Text, ToolCall, ToolResult
from contextgauge.compaction.ports import SummaryRequest

SUMMARY_REQUEST: Final = """\
<system-context-management>
The context window is approaching its limit. Please provide a COMPLETE and DETAILED summary:

1. **Original Task**: What was the user's original request?
2. **Progress Made**: What have you accomplished? Include files, tools used, solutions.
3. **Working Memory**: Key information, project structure, patterns discovered.
4. **Next Steps**: What remains to be done?

This summary will be used to continue in a fresh context. Be thorough and specific.
After this summary, message history will be archived and only your summary preserved.
Do NOT use tools in this response - just provide the summary as plain text.
</system-context-management>"""
"""Seed 001's turn of the user."""

SYSTEM: Final = """\
You are summarizing a coding agent's conversation history.
Your summary will replace the compacted messages, so preserve ALL information \n\
needed to continue the task successfully.

CRITICAL: Be thorough but concise. Missing information cannot be recovered."""
"""Seed 002's system prompt, with the space before its line end."""

_USER: Final = """\
## Previous Summary
{previous}

## Original User Task
{task}

## Messages to Summarize
{messages}

## Instructions
Create a summary with these EXACT sections:

### Session Summary (Compaction Round {number})

#### Original Task
[Preserve the user's original request verbatim]

#### Completed Work
| File/Component | Action | Description |
|----------------|--------|-------------|
[List each file touched with what was done]

#### Key Technical Decisions
- [Bullet list of choices that affect future work]
- [Include dependencies installed, patterns used, etc.]

#### Current State
- Working on: [what's in progress]
- Last completed: [most recent accomplishment]

#### Pending Work
- [ ] [Remaining items as checklist]

#### Errors & Resolutions
[Only include if errors were encountered. Format: error → resolution]

## Constraints
- Maximum {target} tokens
- Use tables and bullet points for density
- Include exact file paths
- No code blocks unless absolutely critical
- If previous summary exists, INTEGRATE (don't duplicate) its content"""

_TARGET_TOKENS: Final = 800
"""The seed's own target, where the request names none."""

_NO_TASK: Final = "Unknown task"

_NO_PREVIOUS: Final = "None - this is the first compaction round."

CONTENT_CHARACTERS: Final = 2_000
"""Longer contents of a message are cut, a single huge result of 10 000 characters too."""

RESULT_CHARACTERS: Final = 500
"""Longer results of tools are cut, before the content is."""


def user_prompt(request: SummaryRequest, formatted: Sequence[str], previous: str | None) -> str:
    """Return 002's prompt. The caller's own instructions are one more constraint."""
    text = _USER.format(
        previous=_NO_PREVIOUS if previous is None else previous,
        task=request.task or _NO_TASK,
        messages="\n\n---\n\n".join(formatted),
        number=request.number,
        target=request.target_tokens or _TARGET_TOKENS,
    )
    return f"{text}\n- {request.instructions}" if request.instructions else text


def formatted(messages: Sequence[Message], scale: int = 1) -> list[str]:
    """Return each message as 002's `formatMessagesForSummary` writes it.

    The marks are divided by `scale`; 1 is 002's own.
    """
    return [
        f"[{index}] {message.role.upper()}:\n{_content(message, scale)}"
        for index, message in enumerate(messages)
    ]


def _content(message: Message, scale: int) -> str:
    content = "\n".join(_part(block, scale) for block in message.blocks)
    limit = CONTENT_CHARACTERS // scale
    if len(content) > limit:
        return content[:limit] + "\n[...truncated...]"
    return content


def _part(block: Block, scale: int) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            return f"[Tool: {block.name}({json_text(json_value(block.arguments))})]"
        case ToolResult():
            return f"[Result: {_result(block)[: RESULT_CHARACTERS // scale]}...]"
        case _:
            return ""


def _result(result: ToolResult) -> str:
    """Return what a tool gave as JSON: the text of an object is its JSON already.

    The formats of providers have the text alone, of objects too.
    """
    text, fields = result.text, own(result, "plain") or {}
    is_text = isinstance(fields["result"] if "result" in fields else json_value(text), str)
    return json_text(text) if is_text else text or "null"
