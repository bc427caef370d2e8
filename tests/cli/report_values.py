"""What each question of the report should answer, computed from records without SQL."""

from tests.cli.report_compactions import CompactionAnswers
from tests.cli.report_contexts import ContextAnswers
from tests.cli.report_facts import Row
from tests.cli.report_tools import ToolAnswers
from tests.cli.report_trouble import TroubleAnswers

__all__ = ["ExpectedAnswers", "Row"]


class ExpectedAnswers(CompactionAnswers, ContextAnswers, ToolAnswers, TroubleAnswers):
    """The answers for records: a method for each question."""
