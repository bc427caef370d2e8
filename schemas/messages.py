"""Inbound messages and what publishers write alongside them, on `agent.messages`.

Defined in the library, which agents install on its own.
"""

from contextgauge.messages import AGENT_ID_HEADER as AGENT_ID_HEADER
from contextgauge.messages import AGENT_MESSAGES_TOPIC as AGENT_MESSAGES_TOPIC
from contextgauge.messages import INHERITED_HEADER as INHERITED_HEADER
from contextgauge.messages import MAX_DEPTH as MAX_DEPTH
from contextgauge.messages import MESSAGE_LIMIT_BYTES as MESSAGE_LIMIT_BYTES
from contextgauge.messages import NO_SESSION as NO_SESSION
from contextgauge.messages import OBSERVED_HEADER as OBSERVED_HEADER
from contextgauge.messages import OBSERVED_LIVE as OBSERVED_LIVE
from contextgauge.messages import REDRIVEN_HEADER as REDRIVEN_HEADER
from contextgauge.messages import SETTINGS_HEADER as SETTINGS_HEADER
from contextgauge.messages import TASK_ID_HEADER as TASK_ID_HEADER
from contextgauge.messages import THREAD_ID_HEADER as THREAD_ID_HEADER
from contextgauge.messages import DeadLetter as DeadLetter
from contextgauge.messages import DeadReason as DeadReason
