"""The fixtures of the log's contract, for all suites of this folder."""

from tests.contract.logs import plain_log, under_test

__all__ = ["plain_log", "under_test"]
