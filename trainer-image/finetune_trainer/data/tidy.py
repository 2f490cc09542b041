"""One documented rule for each way in which a conversation is not quite one.

- Neighbours of the same role become one turn, joined by a blank line (results of tools stay apart).
- What follows the last answer teaches nothing and is cut off, and counted.
- No answer at all: the row is dropped as ``noAnswer``. A blank answer or question, or no turns: dropped as ``empty``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from finetune_trainer.data.conversation import Conversation, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

EMPTY = "empty"
NO_ANSWER = "noAnswer"


@dataclass
class Tidier:
    """Tidies conversations and counts what it did."""

    system_prompt: str | None = None
    notes: Counter[str] = field(default_factory=Counter)
    """mergedTurns and trimmedTurns: how many turns were merged into their neighbour or cut off the end."""

    def tidy(self, conversation: Conversation) -> Conversation | str:
        """The conversation as it can be learned, or the reason why it is dropped."""
        if conversation.text is not None:
            return conversation if conversation.text.strip() else EMPTY
        messages = self._merged(
            message for message in conversation.messages if not (message.role == "system" and message.blank)
        )
        if not messages:
            return EMPTY
        if not any(message.role == "assistant" for message in messages):
            return NO_ANSWER
        while messages[-1].role != "assistant":
            messages.pop()
            self.notes["trimmedTurns"] += 1
        if any(message.blank and message.role in {"user", "assistant"} for message in messages):
            return EMPTY
        return replace(conversation, messages=self._with_system(messages))

    def _merged(self, messages: Iterable[Message]) -> list[Message]:
        merged: list[Message] = []
        for message in messages:
            if merged and merged[-1].role == message.role != "tool":
                merged[-1] = _join(merged[-1], message)
                self.notes["mergedTurns"] += 1
            else:
                merged.append(message)
        return merged

    def _with_system(self, messages: list[Message]) -> tuple[Message, ...]:
        if self.system_prompt and all(message.role != "system" for message in messages):
            return (Message("system", self.system_prompt), *messages)
        return tuple(messages)


def _join(first: Message, second: Message) -> Message:
    content = "\n\n".join(text for text in (first.content, second.content) if text)
    return Message(first.role, content, first.tool_calls + second.tool_calls, {**first.extra, **second.extra})
