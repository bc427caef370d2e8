"""Secrets are taken out of what a summariser is sent; words that only look alike stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.messages import Image, Message, Text, Thinking, ToolCall, ToolResult
from contextgauge.compaction.summarisers.redaction import Redaction
from tests.linear_time import is_linear

LETTERS = "abcDEF1234567890ghiJKL7890123456"
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
JWT = "eyJ" + LETTERS + ".eyJ" + LETTERS + "." + LETTERS

# Written in parts: a test of the repository refuses files that hold what looks like a secret.
SECRETS = {
    "openai": ("use {} here", "sk-" + "proj-" + LETTERS),
    "anthropic": ("use {} here", "sk-" + "ant-api03-" + LETTERS),
    "aws": ("key {}", "AKI" + "AIOSFODNN7EXAMPLE"),
    "github": ("git push https://{}@github.com/a/b", "gh" + "p_" + LETTERS),
    "gitlab": ("{}", "gl" + "pat-" + LETTERS),
    "slack": ("{}", "xox" + "b-123456789012-" + LETTERS),
    "google": ("{}", "AI" + "za" + LETTERS + "abc"),
    "stripe": ("{}", "sk_" + "live_" + LETTERS),
    "jwt": ("cookie: {}", JWT),
    "bearer": ("Authorization: Bearer {}", LETTERS),
    "basic": ('"Authorization": "Basic {}"', "dXNlcjpwYXNzd29yZA=="),
    "private key": ("before {} after", f"{BEGIN}\nMIIE{LETTERS}\n{END}"),
    "private key in JSON": ('{{"key": "{}"}}', f"{BEGIN}\\nMIIE{LETTERS}\\n{END}"),
    "url": ("postgres://app:{}@db:5432/x", "hunter2!"),
    "bearer of letters": ("Authorization: Bearer {}", "abcdefghijklmnop"),
    "bearer alone": ("bearer {}", "abcdefghijklmnop" * 2),
    "token header": ("curl -H 'Authorization: Token {}'", "0123456789abcdef0123"),
    "header in JSON": ('{{"authorization": "token {}"}}', "abcdefghijkl"),
    "variable": ("export DB_PASS={}", "hunter"),
    "variable alone": ("PASS={} ./run", "hunter"),
    "variable in small letters": ("db_pass: {}", "hunter22x"),
    "option of mysql": ("mysql -h db -u root -p{} app", "hunter"),
    "option in quotes": ("mysqldump -p'{}' app", "hunter"),
    "option of sshpass": ("sshpass -p {} ssh a@b", "hunter"),
    "parameter": ("GET /x?page=2&access_token={}&y=1", LETTERS),
    "password": ("password: {}", "correct-horse"),
    "quoted password": ("DB_PASSWORD = '{}'", "a b & c (d)"),
    "option": ("mysql --password {} -u root", "hunter22"),
    "environment": ("export AWS_SECRET_ACCESS_KEY={}", "abcd/efgh+1234567890"),
    "json": ('{{"api_key": "{}"}}', LETTERS),
    "after an escape": (r'{{"command": "a\n{}\nb"}}', "sk-" + LETTERS),
    "after an escape of an escape": (r"a\\t{} b", "gh" + "p_" + LETTERS),
    "after an escaped character": (r"a\u0027{}\u0027", "AKI" + "AIOSFODNN7EXAMPLE"),
    "variable after an escape": (r'{{"command": "set\nPASS={}\nrun"}}', "hunter"),
    "header after an escape": (r'{{"text": "a\r\nauthorization: Token {}"}}', LETTERS),
    "option after an escape": (r'{{"command": "cd x\nmysql -p{} app"}}', "hunter"),
    "json in json": ('{{\\"client_secret\\": \\"{}\\"}}', LETTERS),
}


@pytest.mark.parametrize(("place", "secret"), SECRETS.values(), ids=SECRETS)
def test_secret_is_taken_out_and_its_place_stays(place: str, secret: str) -> None:
    redaction = Redaction()
    text = redaction.text(place.format(secret))
    before, after = place.format("\0").split("\0")
    assert secret not in text
    assert text.startswith(before)
    assert text.endswith(after)
    assert "[redacted " in text
    assert redaction.count == 1


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096 and token_count = 15",
        "def f(token: Token, password: str) -> None: ...",
        "password = get_password()",
        "secret = os.environ['X1']",
        "a basic understanding of bearer tokens",
        "https://example.com:8080/a@b and git@github.com:a/b.git",
        "the commit 0123456789abcdef0123456789abcdef01234567",
        "task-list sk-short risk-assessment-of-the-whole-project",
        "tokens: 123 (45 %)",
        "mysql -u root -p app --port=3306",
        "PASS: tests/test_a.py and first_pass = True",
        "authorization: see the chapter on Authorization: none",
        "https://a:8080/x?to=b@c and mkdir -parents",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redaction = Redaction()
    assert (redaction.text(text), redaction.count) == (text, 0)


def test_a_password_in_a_url_may_have_an_at_sign() -> None:
    assert Redaction().text("postgres://u:pa@ss@h/db") == "postgres://u:[redacted password]@h/db"


def test_secret_that_recurs_counts_once() -> None:
    redaction = Redaction()
    redaction.text(f"Bearer {LETTERS}")
    redaction.text(f"Bearer {LETTERS} and again Bearer {LETTERS}")
    redaction.text(f"Bearer {LETTERS[::-1]}")
    assert redaction.count == 2


def test_all_texts_of_a_message_are_redacted_and_nothing_else_changes() -> None:
    secret = "gh" + "p_" + LETTERS
    thinking, image = Thinking(secret, 40), Image(100)
    message = Message(
        "assistant",
        (
            Text(f"a {secret}"),
            ToolCall("c", "run", f'{{"key":"{secret}"}}'),
            ToolResult("c", (Text(secret), image)),
            thinking,
        ),
        "m1",
    )
    redacted = Redaction().message(message)
    assert redacted.blocks == (
        Text("a [redacted key]"),
        ToolCall("c", "run", '{"key":"[redacted key]"}'),
        ToolResult("c", (Text("[redacted key]"), image)),
        thinking,
    )
    clean = Message("user", (Text("hello"),), "m2")
    assert Redaction().message(clean) is clean


@given(
    st.lists(
        st.sampled_from([place.format(secret) for place, secret in SECRETS.values()])
        | st.text(max_size=30),
        max_size=6,
    ).map(" ".join)
)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = Redaction().text(text)
    again = Redaction()
    assert (again.text(once), again.count) == (once, 0)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a-",
        "password=",
        'token="',
        "://",
        "bearer ",
        "eyJaaaaaaaaa.",
        BEGIN,
        "?token=",
        "sk-",
        "mysql ",
        "authorization: token ",
        "a://b:c@",
        "A_PASS=",
        "\\n",
        "\\nmysql -p",
    ],
)
def test_time_is_linear(unit: str) -> None:
    assert is_linear(lambda size: Redaction().text(unit * (size // len(unit))), 200_000)
