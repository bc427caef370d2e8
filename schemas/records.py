"""The derived records, the values on `context.events`: the contract of everything downstream.

Defined in the library, which agents install on its own.
"""

from contextgauge.record_words import *  # noqa: F403 -- all that is defined there
from contextgauge.records import *  # noqa: F403 -- all that is defined there
