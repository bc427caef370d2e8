"""The views in Redis: the contract of the readers.

Defined in the library, which agents install on its own.
"""

from contextgauge.compaction_views import *  # noqa: F403 -- as below
from contextgauge.distributions import *  # noqa: F403 -- as below
from contextgauge.views import *  # noqa: F403 -- all that is defined there
