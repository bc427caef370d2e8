"""What a context consists of, in the box of `status`."""

from dataclasses import replace

from schemas.records import Category
from streams.cli.screen.render import status_box
from tests.cli.test_render import CHAIN, NOW_MS, _shown, _with


def test_deferred_categories_are_not_listed_as_used() -> None:
    loaded = Category(id="tools", name="System tools", kind="used", tokens=9_100)
    deferred = Category(id="later", name="System tools (deferred)", kind="deferred", tokens=7_700)
    box = _shown(status_box(_with(replace(CHAIN, categories=(deferred, loaded))), NOW_MS))
    used, _, rest = box.partition("Not loaded")
    assert "By category" in used
    assert "9,100" in used
    assert "deferred" not in used
    assert "System tools (deferred)" in rest


def test_categories_of_another_size_say_of_which_and_show_no_free_space() -> None:
    messages = Category(id="messages", name="Messages", kind="used", tokens=58_000)
    prompt = Category(id="prompt", name="System prompt", kind="used", tokens=432)
    free = Category(id="free_space", name="Free space", kind="free", tokens=141_568)
    chain = replace(CHAIN, categories=(prompt, messages, free))
    current = _shown(status_box(_with(chain), NOW_MS))
    assert "141,568" in current
    assert "as of" not in current
    grown = _shown(status_box(_with(replace(chain, used_tokens=90_000)), NOW_MS))
    assert "as of 58,432 tokens" in grown
    assert "58,000" in grown
    assert "Free space" not in grown
    unkind = replace(chain, categories=(replace(messages, kind=None),))
    assert "as last reported" in _shown(status_box(_with(unkind), NOW_MS))


def test_categories_are_labelled_with_the_size_that_the_answer_reports() -> None:
    prompt = Category(id="prompt", name="System prompt", kind="used", tokens=7_026)
    chain = replace(CHAIN, categories=(prompt,), categories_tokens=32_997)
    assert "as of 32,997 tokens" in _shown(status_box(_with(chain), NOW_MS))
