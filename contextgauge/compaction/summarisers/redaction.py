"""Secrets out of texts before they are sent to a summariser: keys, tokens, passwords.

Known by their shape (a provider's prefix, a PEM block) or their place (after `password =`, in a
URL, in a header). What is found is replaced by `[redacted …]`; the rest stays as it is. It is a
precaution, no proof: a secret that looks like any other word is not recognised.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Final

from contextgauge.compaction.messages import (
    Block,
    Content,
    ContextCompaction,
    Message,
    Text,
    ToolCall,
    ToolResult,
)

AFTER_ESCAPE: Final = r"(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})"
"""After an escape in JSON, such as the n of `\\n`, a word begins: a call's arguments are JSON."""

_START: Final = rf"(?:(?<![A-Za-z0-9])|{AFTER_ESCAPE})"

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----)[^\"]){0,20000}"  # in JSON, no further than its text
    r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)

_KEY: Final = re.compile(
    rf"{_START}(?:"
    r"sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, OpenRouter and others
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,}"  # Stripe
    r"|A[KS]IA[0-9A-Z]{16}"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"  # Slack
    r"|AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}"  # Google
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}|hf_[A-Za-z0-9]{20,}"
    r"|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|dop_v1_[0-9a-f]{40,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"  # SendGrid
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JSON web token
    r")"
)

_HEADER: Final = re.compile(
    rf"(?i)({_START}(?:bearer|basic)\s{{1,3}})"
    r"(?:(?=[A-Za-z._~+/-]{0,40}[0-9=])[A-Za-z0-9._~+/-]{12,}={0,2}|[A-Za-z]{24,})"
)
"""A digit or padding is needed, or more letters than words have: `basic` is a common word too."""

_AUTHORIZATION: Final = re.compile(
    rf"(?i)({_START}authorization[\"'\\]{{0,3}}\s{{0,3}}[:=]\s{{0,3}}[\"'\\]{{0,3}}"
    r"(?:basic|bearer|token|key|api-?key|jwt|oauth|negotiate)\s{1,3})"
    r"(?!https?:)[A-Za-z0-9._~+/=:-]{8,}"
)
"""After the name of a header and its scheme, letters alone are a secret too."""

_IN_URL: Final = re.compile(
    r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'\\]{0,100}:)"
    r"[^\s@/\"'\\]{1,200}(?:@[^\s@/?#,;&\"'\\]{1,100}){0,3}(?=@)"
)
"""Up to the last `@` before the path: a password may have one."""

_PARAMETER: Final = re.compile(
    r"(?i)([?&](?:[a-z_-]{0,20}(?:token|api_?key|secret|password|signature)|key|sig)=)"
    r"[^&\s\"'#\[\]\\]{6,}"
)

_PLACE: Final = r"[\"'\\]{0,3}\s{0,3}(?::=|=>|=|:)\s{0,3}"

_PASSWORD: Final = re.compile(
    rf"(?i)((?:passw(?:or)?d|passphrase|pwd|(?-i:[A-Z]_PASS|{_START}PASS(?==)))(?:{_PLACE}|(?<=--password)\s))"
    r"(?:([\"'\\]{1,3})(?!\[redacted)[^\"'\\\n]{4,200}(?=\\?[\"'])"  # in quotes, anything
    r"|[^\s\"'\\,;&(){}\[\]<>$]{4,200}(?![\w(.\[]))"  # no call, no variable
)

_OPTION: Final = re.compile(
    rf"({_START}(?:mysql(?:dump|admin|import)?|mariadb(?:-dump)?)\b[^\n|;&]{{0,200}}?\s-p[\"']?"
    rf"|{_START}sshpass\s{{1,3}}-p\s{{0,3}}[\"']?)"
    r"[^\s\"'\\$\[]{3,200}"
)
"""Written at the option, without a name."""

_TOKEN: Final = re.compile(
    r"(?i)((?:secret|token|credential|[a-z]_pass|(?:api|access|private|account|secret)[_-]?key)"
    rf"(?:{_PLACE}|(?<=--token)\s|(?<=--api-key)\s))([\"'\\]{{0,3}})"
    r"(?=[^\s\"'\\]{0,100}[0-9])(?=[^\s\"'\\]{0,100}[A-Za-z])"
    r"[^\s\"'\\,;&(){}\[\]<>$]{8,300}(?![\w(.\[])"
)
"""A letter and a digit are needed: `token: Token` and `max_token: 4096` are no secrets."""

_PATTERNS: Final = (
    (_PRIVATE_KEY, "private key"),
    (_KEY, "key"),
    (_IN_URL, "password"),
    (_PARAMETER, "token"),
    (_AUTHORIZATION, "token"),
    (_HEADER, "token"),
    (_OPTION, "password"),
    (_PASSWORD, "password"),
    (_TOKEN, "token"),
)
"""Each match begins with its groups, which stay: they say where the secret was."""


class Redaction:
    """Redacts texts and counts what was found: a secret that recurs counts once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    @property
    def count(self) -> int:
        """Number of different secrets so far."""
        return len(self._seen)

    def text(self, text: str) -> str:
        """Return the text without its secrets. Doing it twice changes nothing more."""
        for pattern, kind in _PATTERNS:
            text = pattern.sub(partial(self._replace, kind), text)
        return text

    def message(self, message: Message) -> Message:
        """Return the message without secrets; the same object where it has none.

        Thinking and opaque items stay: a provider refuses them changed.
        """
        blocks = tuple(self._block(block) for block in message.blocks)
        return message if blocks == message.blocks else replace(message, blocks=blocks)

    def _block(self, block: Block) -> Block:
        match block:
            case Text():
                return self._text_block(block)
            case ToolCall():
                arguments = self.text(block.arguments)
                changed = arguments != block.arguments
                return replace(block, arguments=arguments) if changed else block
            case ToolResult():
                content = tuple(self._content(each) for each in block.content)
                return block if content == block.content else replace(block, content=content)
            case ContextCompaction():
                summary = self.text(block.summary)
                return block if summary == block.summary else replace(block, summary=summary)
            case _:
                return block

    def _content(self, content: Content) -> Content:
        return self._text_block(content) if isinstance(content, Text) else content

    def _text_block(self, block: Text) -> Text:
        text = self.text(block.text)
        return block if text == block.text else replace(block, text=text)

    def _replace(self, kind: str, match: "re.Match[str]") -> str:
        place = "".join(each or "" for each in match.groups())
        self._seen.add(hash(match[0][len(place) :]))
        return f"{place}[redacted {kind}]"
