"""Reading, recognising and validating datasets: pure, needs the standard library and pydantic only.

``check(path_or_bytes, name, spec)`` is the whole of it; prepare and ``finetune validate`` call the same function.
"""

from finetune_trainer.data.check import check
from finetune_trainer.data.conversation import Conversation, Message
from finetune_trainer.data.report import Failure, Problem, Report

__all__ = ["Conversation", "Failure", "Message", "Problem", "Report", "check"]
