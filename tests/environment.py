"""The environment of the tests: a new user's, whatever the one who runs them has set or keeps."""

import atexit
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from contextgauge.user_folders import cache_folder

_READ_BY_PREFIX = (
    *("ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_"),
    *("CONTEXTGAUGE_", "TTY_", "XDG_"),
)
"""Variables of agent runtimes, of providers, of the product and of terminals begin so."""

_READ_BY_NAME = frozenset(
    {
        *("ALL_PROXY", "FTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
        *("CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"),
        *("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING"),
        *("PYTHONOPTIMIZE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONWARNINGS"),
        *("BROWSER", "CDPATH"),
    }
)
"""Others that the product, its libraries or Python read."""


def settle(environment: MutableMapping[str, str]) -> None:
    """Remove from an environment what is its user's own, and give it an empty home.

    What is fetched once stays where it is: Kafka's jars.
    """
    cache = Path(cache_folder()).parent
    for name in list(environment):
        if name.startswith(_READ_BY_PREFIX) or name.upper() in _READ_BY_NAME:
            del environment[name]
    # A worker of pytest ends without a word: its home is in that of the process that started it.
    is_worker = "PYTEST_XDIST_WORKER" in environment
    home = tempfile.mkdtemp(
        prefix="contextgauge-home-", dir=environment["HOME"] if is_worker else None
    )
    if not is_worker:
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    environment.update(HOME=home, XDG_CACHE_HOME=str(cache), TERM="xterm")
