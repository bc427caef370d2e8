"""The memory tool: files that an agent keeps across contexts, in a folder that it cannot leave."""

from contextgauge.compaction.memory.files import MemoryLimits
from contextgauge.compaction.memory.tool import MemoryTool

__all__ = ["MemoryLimits", "MemoryTool"]
