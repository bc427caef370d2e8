"""The entries of `context.commands`, and the view of a session that they give.

Defined in the library, which agents install on its own.
"""

from contextgauge.commands import COMMAND_CLASS_BY_KIND as COMMAND_CLASS_BY_KIND
from contextgauge.commands import COMMAND_VERSION as COMMAND_VERSION
from contextgauge.commands import CancelRequested as CancelRequested
from contextgauge.commands import CommandAccepted as CommandAccepted
from contextgauge.commands import CommandCalled as CommandCalled
from contextgauge.commands import CommandData as CommandData
from contextgauge.commands import CommandEntry as CommandEntry
from contextgauge.commands import CommandFinished as CommandFinished
from contextgauge.commands import CommandOutcome as CommandOutcome
from contextgauge.commands import CommandPlanned as CommandPlanned
from contextgauge.commands import CommandRequest as CommandRequest
from contextgauge.commands import CommandState as CommandState
from contextgauge.commands import CommandStep as CommandStep
from contextgauge.commands import CommandTrigger as CommandTrigger
from contextgauge.commands import CommandView as CommandView
from contextgauge.commands import CompactionDecided as CompactionDecided
from contextgauge.commands import CompactRequested as CompactRequested
from contextgauge.commands import ControlView as ControlView
from contextgauge.commands import DecisionView as DecisionView
from contextgauge.commands import TextDeleted as TextDeleted
from contextgauge.commands import ThresholdScope as ThresholdScope
from contextgauge.commands import ThresholdsSet as ThresholdsSet
