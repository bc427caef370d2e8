"""The shared session as a document: its size over time, step by step, in one file."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from contextgauge import __version__
from contextgauge.json_codec import dumps
from streams.cli.pages.document import BRAND, document
from streams.cli.pages.markup import Html, joined, tag
from streams.cli.pages.plots import axis, plot, stretched
from streams.cli.pages.values import Unit
from streams.cli.screen.figures import GUESS, count, duration, percent, thousands
from streams.cli.share.shared import Event, SharedSession, SharedStep, as_json

_DOTS: Final = {"warning": "warned", "failed": "bad", "exhausted": "bad"}
"""What is a point on the line; compactions and resets are lines across, edits are not drawn."""

_HIGH: Final = 70
"""Percent: warnings below are not listed, as on the timeline."""

_LEGEND: Final = {
    "compaction": "Compaction",
    "reset": "Conversation cleared",
    "warned": f"Warning from {_HIGH}%",
    "low": "Earlier warning",
    "bad": "Failed, or window full",
}
"""What the marks are, by their class."""

_SINCE: Final = {
    True: "Times count from the session's beginning",
    False: "Older responses were no longer stored, and times count from the first one here",
}
"""Whether it is the whole session."""

_LISTED: Final = ("compaction", "failed", "exhausted", "reset", "warning")


def share_page(session: SharedSession) -> bytes:
    """Return the file. Raises ValueError for a session without a response."""
    steps = session.drawn()
    own = files(__package__)
    title = "A session's context over time"
    responses = count(len(session.steps), "response")
    facts = [
        responses if session.is_whole else f"the newest {responses}",
        count(len(session.events("compaction")), "compaction"),
        count(len(session.events("warning")), "warning"),
        *([count(session.subagents, "subagent")] if session.subagents else []),
        *([duration(session.span_ms)] if session.span_ms is not None else []),
    ]
    head = tag(
        "header",
        tag("p", BRAND, tag("span", "contextgauge"), class_="mark"),
        tag("h1", title),
        tag("p", f"{', '.join(session.models)} · {' · '.join(facts)}", class_="faint"),
    )
    has_text = any(step.texts for step in steps)
    end = tag(
        "footer",
        f"Shared with contextgauge {__version__}. {_SINCE[session.is_whole]}; names, folders and "
        "ids are left out. ",
        "Texts were cleaned of what looks like a secret, path, name or address, not of dates."
        if has_text
        else "The file has no text of the conversation.",
        f" {GUESS} marks percentages of an assumed window.",
    )
    data = Html(dumps(as_json(steps)).decode().replace("<", "\\u003c"))
    body = joined(
        head,
        tag(
            "main",
            _player(steps, is_whole=session.is_whole),
            _texts(has_text=has_text),
            _events(steps),
        ),
        end,
        tag("script", data, type="application/json", id="steps"),
    )
    return document(
        title,
        body,
        styles=(own / "share.css").read_text("utf-8"),
        script=(own / "share.js").read_text("utf-8"),
    )


def _player(steps: Sequence[SharedStep], *, is_whole: bool) -> Html:
    button = tag("button", "Play", type="button", id="play")
    slider = tag(
        "input",
        type="range",
        id="step",
        min=0,
        max=len(steps) - 1,
        value="0",
        step=1,
        aria_label="Response",
    )
    figures = [
        tag("div", tag("dt", name), tag("dd", "", id=key))
        for name, key in (
            ("Context", "used"),
            ("Of the window", "percent"),
            ("Response" if is_whole else "Of the newest responses", "number"),
            ("Time" if is_whole else "Time since the first of these", "time"),
        )
    ]
    return tag(
        "section",
        tag("dl", figures, class_="now"),
        _chart(steps),
        _legend(steps),
        tag("div", button, slider, class_="controls"),
        tag("ul", id="happened", class_="happened", aria_live="polite"),
        class_="card",
    )


def _chart(steps: Sequence[SharedStep]) -> Html:
    top, lines = axis(max(max(each.used, each.window or 0) for each in steps), Unit.TOKENS)
    width = 100 / max(len(steps) - 1, 1)
    at = [(number * width, 100 - 100 * each.used / top) for number, each in enumerate(steps)]
    line = " ".join(f"{x:.5g},{y:.5g}" for x, y in at)
    marks: list[Html] = [
        stretched(tag("polygon", points=f"0,100 {line} {at[-1][0]:.5g},100", class_="area")),
        stretched(
            [
                tag("polyline", points=points, class_="window")
                for points in _windows(steps, width, top)
            ]
        ),
        stretched(tag("polyline", points=line, class_="line accent")),
    ]
    for (x, y), step in zip(at, steps, strict=True):
        for event in step.events:
            place, mark = f"{x:.5g}%", _mark(event)
            if event.kind in _DOTS:
                marks.append(tag("circle", cx=place, cy=f"{y:.5g}%", r=4, class_=f"dot {mark}"))
            elif mark is not None:
                marks.append(tag("line", x1=place, x2=place, y1=0, y2="100%", class_=mark))
    marks.append(tag("line", x1=0, x2=0, y1=0, y2="100%", id="cursor"))
    marks.append(tag("circle", cx=0, cy="100%", r=5, id="here"))
    marks.append(tag("rect", width="100%", height="100%", class_="hit", id="area", data_top=top))
    return plot("Used tokens after each response, with the window and compactions", *lines, *marks)


def _legend(steps: Sequence[SharedStep]) -> Html:
    """Return what the marks of a chart are, of those that it has."""
    drawn = {_mark(event) for step in steps for event in step.events}
    rows = [
        tag("li", tag("i", class_=f"mark-{kind}"), words)
        for kind, words in _LEGEND.items()
        if kind in drawn
    ]
    if any(step.window is not None for step in steps):
        rows.append(tag("li", tag("i", class_="mark-window"), "Window"))
    return tag("ul", rows, class_="legend")


def _mark(event: Event) -> str | None:
    """Return the class of an event's mark, None for one that is not drawn."""
    if event.kind in {"compaction", "reset"}:
        return event.kind
    return "low" if _is_low(event) else _DOTS.get(event.kind)


def _windows(steps: Sequence[SharedStep], width: float, top: float) -> list[str]:
    """Return the window's line, in as many stretches as it is known and the same."""
    stretches: list[tuple[int, int, int]] = []
    for number, step in enumerate(steps):
        if step.window is None:
            continue
        if stretches and stretches[-1][2] == step.window and stretches[-1][1] == number - 1:
            stretches[-1] = (stretches[-1][0], number, step.window)
        else:
            stretches.append((number, number, step.window))
    return [
        f"{begin * width:.5g},{100 - 100 * window / top:.5g} "
        f"{end * width:.5g},{100 - 100 * window / top:.5g}"
        for begin, end, window in stretches
    ]


def _texts(*, has_text: bool) -> Html:
    if not has_text:
        return Html("")
    return tag("section", tag("h2", "Texts"), tag("ol", id="texts"), class_="card")


def _events(steps: Sequence[SharedStep]) -> Html:
    rows = [
        tag(
            "li",
            tag(
                "button",
                tag("span", _time(event, number), class_="faint"),
                tag("span", _words(event)),
                type="button",
                data_step=number,
                class_=event.kind,
            ),
        )
        for number, step in enumerate(steps)
        for event in step.events
        if event.kind in _LISTED and not _is_low(event)
    ]
    if not rows:
        return Html("")
    return tag("section", tag("h2", "Events"), tag("ol", rows, class_="events"), class_="card")


def _is_low(event: Event) -> bool:
    return event.kind == "warning" and (event.number or 0) < _HIGH


def _time(event: Event, step: int) -> str:
    """Return when an event was, as the player shows it; without a time, after which response."""
    if event.at_ms is None:
        return f"response {step + 1:,}"
    minutes, seconds = divmod(event.at_ms // 1_000, 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _words(event: Event) -> str:
    """Return an event as a line."""
    took = "" if event.duration_ms is None else f", {duration(event.duration_ms)}"
    word = "" if event.word is None else f", {event.word.replace('_', ' ')}"
    if event.kind == "warning":
        return f"Warning at {event.number}%: {percent(event.percent)} used"
    if event.kind == "compaction":
        sizes = f"{thousands(event.before)} to {thousands(event.after)} tokens"
        return f"Compaction {event.number}{word}: {sizes}{took}"
    if event.kind == "failed":
        outcome = {"unknown": "Compaction ended, outcome unknown"}
        return outcome.get(event.word or "unknown", f"Compaction {event.word}") + took
    if event.kind == "start":
        return f"Compaction started{word}"
    if event.kind == "exhausted":
        return f"Turn ended at a full window{word}"
    if event.kind == "edit":
        return f"Content removed: {thousands(event.before)} tokens"
    return "Conversation cleared"
