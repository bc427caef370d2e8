"""What the messages of a task say, which Cline and its forks keep to show it to a person.

A message that changes is written again, with its time as before. A request to the model is one, in
whose text its counts stand as JSON once they are known.
"""

import re
from typing import Final

from contextgauge.normalise.adapter import FileHead
from contextgauge.normalise.fields import count, flag, in_range, mapping, name, text
from contextgauge.normalise.served_models import served_model
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    CompactionRefused,
    MicroCompaction,
    Response,
    SessionFacts,
    Signal,
    Usage,
    UserLine,
)
from contextgauge.normalise.usage import read_inside
from contextgauge.records import Json

_BY_NAME: Final = FileHead(None, is_by_name=True)
_WITHOUT_TEXT: Final = re.compile(r"\{[^{}]*\}")
"""What is left of a text that is published without its words begins so."""
_FIGURES: Final = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads", "apiProtocol")
_PROMPTS: Final = ("task", "user_feedback")
_SUMMARIES: Final = "summarizeTask"
"""The tool with which the model writes a summary that takes the place of what was before."""

_CLINE: Final = SessionFacts("cline", None, None, None, None, only_new=True)
_ROO: Final = SessionFacts("roo", None, None, None, None, only_new=False)

_NEXT_TO_INPUT: Final = frozenset(
    {
        *("anthropic", "bedrock", "claude-code", "cline", "deepseek", "gemini", "groq", "minimax"),
        *("moonshot", "openai-native", "openrouter", "vercel-ai-gateway", "vertex"),
    }
)
"""Providers of which Cline counts cached tokens next to the input; of others they may be inside."""


def of_file(_: Body) -> FileHead:
    """Return that the folder of a file names its task."""
    return _BY_NAME


def moment(body: Body) -> int | None:
    """Return the time of a message."""
    time_ms = count(body, "ts")
    return None if time_ms is None else in_range(time_ms)


def cause(body: Body) -> str | None:
    """Return what identifies a message; a request is written again with other counts."""
    kind, time_ms = name(body, "say"), count(body, "ts")
    return None if kind == "api_req_started" or time_ms is None else f"{time_ms} {kind}"


def say(body: Body) -> tuple[Signal, ...]:
    """Return what a message says that asks nothing; one that is not complete says nothing yet."""
    if flag(body, "partial"):
        return ()
    match body.get("say"):
        case "api_req_started":
            return _request(body)
        case "tool":
            return _summary(text(body, "text") or "")
        case "condense_context_error":
            return (_ROO, CompactionRefused(text(body, "text"), blocked=False))
        case kind if kind in _PROMPTS:
            return (_CLINE, UserLine(counted=True, mark=None, uuid=None, text=None))
    return ()


MAKERS: Final = frozenset({"anthropic", "claude-code", "gemini", "openai-native", "vertex"})
"""As Cline calls the providers that serve models of their own."""


def _request(body: Body) -> tuple[Signal, ...]:
    """Return the response to a request, once its counts are there."""
    info, _ = object_in(text(body, "text") or "")
    model = mapping(body, "modelInfo") or {}
    is_roo = "apiProtocol" in info
    facts = _ROO if is_roo else _CLINE
    if not any(count(info, each) for each in _FIGURES):
        return (facts,)
    key = str(count(body, "ts"))
    provider, output = name(model, "providerId"), count(info, "tokensOut")
    usage = usage_of(info, provider, is_inside=is_roo)
    model_id = served_model(name(model, "modelId"), provider, MAKERS)
    response = Response(key, None, model_id, usage, output, (), exhausted=False, boundary=None)
    return (facts, response)


def usage_of(info: Body, provider: str | None, *, is_inside: bool) -> Usage | None:
    """Return the counts of a request; None where it cannot be known what the input includes.

    It includes what is cached with some providers, and with all in newer versions of Roo Code.
    """
    sent = count(info, "tokensIn") or 0
    creation, read = count(info, "cacheWrites"), count(info, "cacheReads")
    cached = (creation or 0) + (read or 0)
    if not cached or cached > sent or (provider in _NEXT_TO_INPUT and not is_inside):
        return Usage(sent, creation, read)
    return read_inside(sent, read, creation) if is_inside else None


def _summary(words: str) -> tuple[Signal, ...]:
    """Return the boundary that the use of the summary's tool is."""
    tool, rest = object_in(words)
    if tool.get("tool") != _SUMMARIES:
        return ()
    boundary = Boundary(None, None, None, None, None, {}, text(tool, "content") or rest or None)
    return (_CLINE, boundary)


def condensed(body: Body) -> tuple[Signal, ...]:
    """Return the boundary that a condensation is, or what a truncation removed."""
    condense = mapping(body, "contextCondense")
    if condense is not None:
        boundary = Boundary(
            None,
            count(condense, "prevContextTokens"),
            count(condense, "newContextTokens"),
            None,
            None,
            {each: value for each, value in condense.items() if each != "summary"},
            text(condense, "summary"),
        )
        return (_ROO, boundary)
    truncation = mapping(body, "contextTruncation") or {}
    before = count(truncation, "prevContextTokens")
    after = count(truncation, "newContextTokens")
    removed = None if before is None or after is None else max(before - after, 0)
    return (_ROO, MicroCompaction(truncation, removed))


def prompt(body: Body) -> Json:
    """Return what a person wrote: a task begins with it, in older versions as a plain text."""
    return body.get("text") if body.get("say") in (*_PROMPTS, "text") else None


def beginning_of(words: str) -> str:
    """Return what is read of a text: a request's counts, or that it is a summary."""
    from contextgauge.json_codec import dumps  # noqa: PLC0415 -- each command imports the adapters

    info, _ = object_in(words)
    figures: Body = {each: info[each] for each in _FIGURES[:-1] if count(info, each) is not None}
    if info.get("apiProtocol") in ("anthropic", "openai"):
        figures["apiProtocol"] = info["apiProtocol"]
    if info.get("tool") == _SUMMARIES:
        figures["tool"] = _SUMMARIES
    return dumps(figures).decode() if figures else ""


def object_in(words: str) -> tuple[Body, str]:
    """Return the JSON object that a text is, or begins with and has none in it, and the rest."""
    from contextgauge.json_codec import loads  # noqa: PLC0415 -- as above

    begin = _WITHOUT_TEXT.match(words)
    for text_of_object in (words, *([] if begin is None else [begin[0]])):
        try:
            value = loads(text_of_object)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value, words[len(text_of_object) :]
    return {}, words
