"""What `contextgauge demo` prints about lines that could not be sent or read."""

from collections import Counter

import pytest

from streams.cli.demo.report import print_totals
from streams.flow.publish.publish import PublishCounts


def test_what_could_not_be_sent_is_counted_by_its_reasons(
    capsys: pytest.CaptureFixture[str],
) -> None:
    published = PublishCounts(messages=1, refused=1, sessions={"s"})
    print_totals(published, 2, Counter(not_json=1), Counter(misrouted=3), 0.5)
    shown = capsys.readouterr().out
    assert "1 message of 1 session became 2 records in 0.5 s" in shown
    assert "1 line could not be sent: 1 not_json" in shown
    assert "3 messages (3 misrouted)" in shown
    print_totals(published, 2, Counter(no_session=2, not_json=1), Counter(), 0.5)
    assert "3 lines could not be sent: 2 no_session, 1 not_json" in capsys.readouterr().out
