"""The rule guard: which of the user's turns are still there after a boundary."""

import random
from collections.abc import Iterator

import pytest

from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.engine.plan import plan_of
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    ContextCompaction,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolResult,
)
from contextgauge.compaction.profiles import Window
from contextgauge.normalise.claude_code.messages import MAX_PIN, MAX_PINS
from streams.core.control import turn_overlap
from streams.core.control.pins import (
    PinsCheck,
    around_boundary,
    check_pins,
    message_of,
)
from streams.core.control.turn_overlap import GuardAllowance, GuardWork
from tests.linear_time import is_linear

PUSH = "Never push to main."
SCHEMA = "Do not change db/schema.sql without my approval."
BUDGET = "Never spend more than $500 on cloud."


def turn(text: str, number: int = 1) -> Message:
    """Return a user's turn."""
    return Message("user", (Text(text),), f"u{number}")


def said(text: str, number: int = 1) -> Message:
    """Return what the model says."""
    return Message("assistant", (Text(text),), f"a{number}")


def summary(text: str, number: int = 1) -> Message:
    """Return the message that a compaction begins the conversation with."""
    return Message("user", (ContextCompaction(number, 0, text, 2, 100),), f"s{number}")


def judged(before: list[Message], *after: Message, work: GuardWork | None = None) -> PinsCheck:
    """Return the check of a boundary."""
    history = History(before)
    history.extend(after)
    around = around_boundary(history)
    assert around is not None
    return check_pins(around, work)


IN_OTHER_WORDS = [
    (
        "Always run the linter before committing.",
        ("Run the linter before each commit.", "The linter has to run before committing anything."),
        ("The tests were run twice before the release.", "All commits were squashed."),
    ),
    (
        "Die Rechnungen müssen immer als PDF in Euro verschickt werden.",
        ("Rechnungen: Versand immer als PDF, in Euro.", "PDF-Rechnungen in Euro verschicken."),
        ("Die Berichte zeigen alle Zeiten in UTC.", "Der Importer wurde repariert."),
    ),
    (
        "N'ajoute aucune dépendance sans me demander d'abord.",
        ("Demander avant d'ajouter une dépendance.", "Aucune dépendance ajoutée sans demander."),
        ("Le schéma de la base a été modifié.", "Les réponses doivent rester brèves."),
    ),
    (
        "Удаляй временные файлы только после проверки резервной копии.",
        ("Временные файлы удалять после проверки резервной копии.",),
        ("Импортёр исправлен, тесты проходят.", "Отчёты показывают время в UTC."),
    ),
    (
        "数据库的备份必须每天晚上自动运行。",
        ("备份必须每天自动运行一次。", "每天晚上数据库备份自动运行。"),
        ("导入器已经修复,测试通过。", "用户要求重写解析器。"),
    ),
    (
        "ログには絶対に個人情報を出力しないこと。",
        ("個人情報をログに出力してはいけない。", "ログに個人情報を出力しない。"),
        ("テストはすべて通った。", "設定ページが追加された。"),
    ),
]
"""A turn, what says the same, and what says something else; the threshold was set by other ones."""


@pytest.mark.parametrize(("said_by_user", "same", "other"), IN_OTHER_WORDS)
def test_a_paraphrase_is_distinguished_from_absence_in_six_languages(
    said_by_user: str, same: tuple[str, ...], other: tuple[str, ...]
) -> None:
    before = [turn(said_by_user), said("Ok.")]
    for text in same:
        assert judged(before, summary("\n".join([*other, text]))) == ((), (said_by_user,), (), ())
    assert judged(before, summary("\n".join(other))) == ((), (), (said_by_user,), ())
    assert judged(before, summary(f"{other[0]}\n> {said_by_user}")) == ((said_by_user,), (), (), ())


@pytest.mark.parametrize(
    ("said_by_user", "same"),
    [
        (PUSH, "Everything goes to branches; the trunk is off limits."),
        (PUSH, "Niemals direkt in den Hauptzweig."),
        ("数据库的备份必须每天晚上自动运行。", "数据库每晚自动备份。"),
        ("ログには絶対に個人情報を出力しないこと。", "ログへの個人情報の出力は禁止。"),
    ],
)
def test_a_free_rewording_is_taken_for_absence(said_by_user: str, same: str) -> None:
    """A limit, as the next one but two: figures of the guard are shown with `~`."""
    assert judged([turn(said_by_user)], summary(same)).lost == (said_by_user,)


@pytest.mark.extended
def test_the_time_of_a_check_grows_with_the_number_of_turns() -> None:
    words = [*(f"w{number}" for number in range(300)), *(["the", "of", "and", "build"] * 16)]

    def checked(size: int) -> None:
        texts = [
            " ".join(words[(number * 7 + place**2) % len(words)] for place in range(40))
            for number in range(size)
        ]
        before = [turn(f"{texts[number]} {number}", number) for number in range(size)]
        judged(before, summary("\n".join(texts)))

    assert is_linear(checked, 320)


def test_a_turn_of_what_is_everywhere_is_unknown_unless_it_is_there_word_for_word() -> None:
    """Looking for it would take the square of the length of what is seen."""
    turns = [turn("ab ab " * 50), turn("ab ba " * 50, 2)]
    check = judged(turns, summary("ab ba " * 20_000))
    assert check == (("ab ba " * 50,), (), (), ("ab ab " * 50,))


def test_of_very_many_turns_the_latest_are_looked_for_in_other_words() -> None:
    turns = [turn(f"{PUSH} {number}", number) for number in range(2_000)]
    check = judged(turns, summary(f"{PUSH} 0"), work=GuardWork(250_000))
    assert check.kept == (f"{PUSH} 0",)
    assert check.unknown == tuple(f"{PUSH} {number}" for number in range(1, 1 + len(check.unknown)))
    assert check.lost == tuple(
        f"{PUSH} {number}" for number in range(2_000 - len(check.lost), 2_000)
    )
    assert len(check.lost) > 100 < len(check.unknown)


@pytest.fixture
def grams(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All n-grams that are made."""
    made: list[str] = []
    make = turn_overlap.grams_of

    def noted(text: str) -> Iterator[str]:
        for gram in make(text):
            made.append(gram)
            yield gram

    monkeypatch.setattr(turn_overlap, "grams_of", noted)
    return made


HUGE = "".join(f"word{number} thing " for number in range(20_000))


def test_the_beginning_of_a_huge_turn_is_what_is_compared(grams: list[str]) -> None:
    work = GuardWork()
    assert judged([turn(HUGE)], summary(PUSH), work=work).lost == (HUGE,)
    assert len(grams) < 400
    assert work.done < len(HUGE) // 16
    assert judged([turn(HUGE)], summary(HUGE)).kept == (HUGE,)


def test_what_takes_more_than_there_is_left_is_unknown(grams: list[str]) -> None:
    for left in (0, len(HUGE) // 100, len(HUGE) // 10):
        work = GuardWork(left)
        assert judged([turn(PUSH)], summary(HUGE), work=work).unknown == (PUSH,)
        assert work.done <= left
    assert len(grams) < 400


def test_many_checks_of_a_worker_do_no_more_together_than_one_may(grams: list[str]) -> None:
    most = 100_000
    allowance, seen = GuardAllowance(most), HUGE[:20_000]
    for _ in range(1_000):
        work = allowance.work(1_000_000)
        judged([turn(PUSH)], summary(seen), work=work)
        allowance.used(work)
    assert allowance.work(1_000_000).left < most // 10
    assert len(grams) < 3 * most
    assert allowance.work(1_000_500).left > most // 2
    assert allowance.work(2_000_000).left == most


@pytest.mark.extended
def test_turns_of_frequent_words_are_known_in_a_long_conversation() -> None:
    """Sentences of a few words over and over: the rarest n-grams have thousands of places."""
    rng = random.Random(1)  # noqa: S311 -- no secret
    words = ["move", "the", "parser", "check", "orders", "first", "then", "export", "cache", "rows"]
    texts = [" ".join(rng.choices(words, k=12)) for _ in range(2_400)]
    turns = [turn(text, number) for number, text in enumerate(texts[:200])]
    check = judged(turns, summary("\n".join(texts[200:])))
    assert len(check.unknown) < 10


def test_another_number_is_another_statement() -> None:
    assert judged([turn(BUDGET)], summary("Never spend more than $800 on cloud.")).lost == (BUDGET,)
    text = "No more than $500 may be spent on cloud."
    assert judged([turn(BUDGET)], summary(text)).paraphrased == (BUDGET,)


def test_words_that_are_far_apart_say_nothing() -> None:
    filler = "The importer reads its files in order. " * 9
    text = f"Never mind the weather. {filler} We push it. {filler} So much for main."
    assert judged([turn(PUSH)], summary(text)).lost == (PUSH,)


def test_a_prohibition_is_not_distinguished_from_what_was_done() -> None:
    text = "The fix was pushed to main; it never failed."
    assert judged([turn(PUSH)], summary(text)).paraphrased == (PUSH,)


def test_a_turn_that_stayed_or_that_the_user_repeats_is_kept() -> None:
    assert judged([turn(PUSH)], summary("x"), turn(PUSH, 2)).kept == (PUSH,)
    assert judged([turn(PUSH), turn(f" {PUSH.upper()}", 2)], summary("x")).lost == (PUSH,)


def test_what_tools_return_holds_only_whole_turns() -> None:
    result = Message("tool", (ToolResult("c", (Text("# Rules\n- never push to main."),)),), "t1")
    assert judged([turn(PUSH)], summary("x"), result).kept == (PUSH,)
    result = Message("tool", (ToolResult("c", (Text("nobody may push to main"),)),), "t1")
    assert judged([turn(PUSH)], summary("x"), result).lost == (PUSH,)


def test_what_a_model_or_a_tool_says_is_no_turn() -> None:
    before = [said(PUSH), Message("tool", (ToolResult("c", (Text(SCHEMA),)),), "t1")]
    assert judged(before, summary("x")) == ((), (), (), ())


@pytest.mark.parametrize("text", ["Go on.", "ok", "tabs", "继续。", "はい", "👍", ""])
def test_a_turn_that_is_too_short_is_not_judged(text: str) -> None:
    assert judged([turn(text), said("Ok.")], summary("x")) == ((), (), (), ())


@pytest.mark.parametrize("text", ["Not on main!", "dont touch ci", "Nie auf main!", "用制表符"])
def test_a_short_rule_is_judged(text: str) -> None:
    assert judged([turn(text)], summary("x")).lost == (text,)


def test_a_turn_is_looked_for_after_each_boundary_until_one_loses_it() -> None:
    first = summary(f"The user said:\n- {PUSH}")
    before = [turn(PUSH), turn(BUDGET, 2), first, turn(SCHEMA, 3)]
    assert judged(before, summary(SCHEMA, 2)) == ((SCHEMA,), (), (PUSH,), ())


RECEIPT = Receipt(
    trigger="auto",
    tokens_before=100,
    tokens_after=10,
    basis="estimated",
    window=Window(200_000, "catalog"),
    target_tokens=50,
    steps=(),
    number=1,
)


def test_the_services_boundary_is_found_in_the_history() -> None:
    before = [turn(PUSH), said("Ok.")]
    history = History(before)
    history.apply(plan_of(before, [summary("x")], RECEIPT))
    history.append(said("On.", 2))
    boundary = around_boundary(history)
    assert boundary is not None
    assert boundary.before == tuple(before)
    assert [each.id for each in boundary.after] == ["s1", "a2"]
    assert check_pins(boundary).lost == (PUSH,)


def test_a_runtimes_boundary_is_found_in_the_history() -> None:
    history = History([turn(PUSH), said("Ok.")])
    history.append(summary("x"))
    boundary = around_boundary(history)
    assert boundary is not None
    assert check_pins(boundary).lost == (PUSH,)


def test_the_latest_boundary_counts() -> None:
    history = History([turn(PUSH), summary("x"), turn(SCHEMA, 2), summary("y", number=2)])
    boundary = around_boundary(history)
    assert boundary is not None
    assert check_pins(boundary).lost == (SCHEMA,)


def test_without_a_boundary_or_with_an_encrypted_summary_nothing_is_judged() -> None:
    assert around_boundary(History([turn(PUSH)])) is None
    hidden = Message("assistant", (Opaque("compaction", 900),), "o1")
    assert around_boundary(History([turn(PUSH), summary("x"), hidden])) is None


def test_what_the_model_thought_is_nothing_that_it_sees() -> None:
    thought = Message("assistant", (Thinking(PUSH, 5),), "a9")
    assert judged([turn(PUSH)], summary("x"), thought).lost == (PUSH,)


def test_an_edit_after_a_boundary_leaves_what_was_before_it() -> None:
    history = History([turn(PUSH), said("Ok."), summary("x"), said("Then.", 2)])
    around = around_boundary(history)
    assert around is not None
    history.replace_active(history.active[:1])
    assert around_boundary(history) == around._replace(after=tuple(history.active))


def test_of_many_lost_turns_the_first_and_the_latest_are_quoted_and_long_ones_shortened() -> None:
    turns = [f"Rule {number}: {'x' * MAX_PIN}{number}" for number in range(50)]
    message = message_of(PinsCheck((PUSH,), (BUDGET,), tuple(turns)), "s", "b", "t", has_texts=True)
    quoted = message["lost"]
    assert isinstance(quoted, list)
    assert (message["kept"], message["lost_count"], len(quoted)) == (2, 50, MAX_PINS)
    numbers = [*range(MAX_PINS // 2), *range(50 - MAX_PINS // 2, 50)]
    for number, excerpt in zip(numbers, map(str, quoted), strict=True):
        assert excerpt.startswith(f"Rule {number}: ")
        assert excerpt.endswith(f"xx{number}")
        assert len(excerpt) <= MAX_PIN


def test_turns_that_were_taken_back_earlier_were_not_compacted() -> None:
    history = History([turn(PUSH, 1), said("Ok.", 1)])
    history.replace_active([])
    history.extend([turn(SCHEMA, 2), said("Ok.", 2), summary("The importer was fixed.")])
    around = around_boundary(history)
    assert around is not None
    assert check_pins(around).lost == (SCHEMA,)
