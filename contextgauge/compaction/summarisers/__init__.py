"""Summarisers that ask a language model: `docs/COMPACTION.md` shows how to choose one.

AnthropicModel, ChatModel, ResponsesModel, GeminiModel   one call each, through the official SDK
ModelSummariser    makes a summariser of one: parts, deadlines, repetitions, checks, redaction
SummariserChain    asks the next summariser where one fails
"""

from contextgauge.compaction.summarisers.anthropic import AnthropicModel
from contextgauge.compaction.summarisers.chain import SummariserChain
from contextgauge.compaction.summarisers.gemini import GeminiModel
from contextgauge.compaction.summarisers.model import Answer, Model
from contextgauge.compaction.summarisers.model_summariser import CallLimits, ModelSummariser
from contextgauge.compaction.summarisers.naming import summariser_named
from contextgauge.compaction.summarisers.openai import ChatModel, ResponsesModel

__all__ = [
    "Answer",
    "AnthropicModel",
    "CallLimits",
    "ChatModel",
    "GeminiModel",
    "Model",
    "ModelSummariser",
    "ResponsesModel",
    "SummariserChain",
    "summariser_named",
]
