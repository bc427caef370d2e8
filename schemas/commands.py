"""The entries of `context.commands`, and the view of a session that they give.

Defined in the library, which agents install on its own.
"""

from contextgauge.commands import *  # noqa: F403 -- all that is defined there
