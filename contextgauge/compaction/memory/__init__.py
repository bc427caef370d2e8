"""The memory tool: files that an agent keeps across contexts, in a folder that it cannot leave.

`tool.py` takes the commands, `paths.py` refuses names that could mean another place, `files.py`
opens each folder relative to the one before without following links, `answers.py` writes what the
model reads. A file is replaced as a whole, under a lock.
"""

from contextgauge.compaction.memory.files import MemoryLimits
from contextgauge.compaction.memory.tool import MemoryTool

__all__ = ["MemoryLimits", "MemoryTool"]
