"""`contextgauge control --check` and what is wrong before a worker starts."""

from pathlib import Path

from tests.conftest import Command

RULES = """\
[[targets]]
name = "ops"
url = "https://hooks.example/secret-path"

[[rules]]
name = "full"
when = "pressure"
at_percent = 85
models = ["claude-*", "!*haiku*"]
targets = ["ops"]

[[rules]]
name = "bad"
when = "failed"
targets = ["ops"]

[[rules]]
name = "silent"
when = "stalled"
after = "150s"
targets = ["ops"]

[[rules]]
name = "often"
when = "thrash"
count = 3
within = "1h"
targets = ["ops"]

[[rules]]
name = "no room"
when = "exhausted"
reasons = ["prompt_too_long"]
targets = ["ops"]
"""


def test_a_file_is_checked_and_told_in_words(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES)
    done = command("control", "--check", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "alerts.toml: 5 rules, 1 target; nothing older than 15 min is alerted on\n"
        "  full: 85 % of a window used, models claude-* !*haiku* → ops\n"
        "  bad: a compaction blocked or failed → ops\n"
        "  silent: a compaction silent for 150 s → ops\n"
        "  often: 3 compactions within 1 h → ops\n"
        "  no room: no room left (prompt_too_long) → ops\n"
    )


def test_faults_are_told_with_their_lines_and_the_code_is_2(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES.replace("at_percent = 85", "at_percent = 850").replace("1h", "hour"))
    done = command("control", "--check", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "contextgauge: alerts.toml:8: at_percent is 850: give a whole number, 1 to 100",
        (
            'contextgauge: alerts.toml:27: within is \'hour\': give a time such as "90s", "10m" or '
            '"2h", 1s to 1d'
        ),
    ]
    assert "secret-path" not in done.stderr


def test_without_rules_it_says_how_to_name_them(command: Command) -> None:
    done = command("control")
    assert done.returncode == 2
    assert "give --rules FILE, or set CONTEXTGAUGE_ALERTS_FILE" in done.stderr


def test_a_topic_that_is_missing_is_told(
    command: Command, tmp_path: Path, kafka: str, prefix: str
) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(RULES)
    done = command("control", "--rules", str(file), BOOTSTRAP_SERVERS=kafka, TOPIC_PREFIX=prefix)
    assert done.returncode == 2
    assert "run `contextgauge topics create`" in done.stderr
