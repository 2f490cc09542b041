"""Which tokens are learned: those that the model is to write, and the one with which it ends its turn.

For each answer the conversation before it is rendered as the server will render it, up to the place where the model
begins. If that text is the beginning of the whole, the answer starts right there. It ends with the last special token
before the next turn. A template that renders earlier turns in another way once more follows (some drop the reasoning
of old answers) leaves such answers unlearned; they are counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.data.faults import Fault
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from finetune_trainer.data import Conversation
    from finetune_trainer.prepare.tokenizer import Tokenizer

IGNORED = -100
"""The label of a token that is read but not learned."""


@dataclass(frozen=True)
class Labelled:
    """One row as training takes it: two lists of the same length."""

    input_ids: list[int]
    labels: list[int]
    unlearned_turns: int = 0


@dataclass(frozen=True)
class Labeller:
    """Renders, tokenizes and labels conversations."""

    tokenizer: Tokenizer
    responses_only: bool = True

    def label(self, row: Conversation) -> Labelled:
        """Raises Fault for what is wrong with the row, StageError for what is wrong with the template."""
        if row.text is not None:
            ids = self.tokenizer.encode_plain(row.text)
            return Labelled(ids, list(ids))
        whole = self.tokenizer.render(row.templated(), row, ask=False)
        _no_none(whole, row)
        ids, offsets = self.tokenizer.encode(whole)
        regions = [
            self._region(row, index, whole) for index, turn in enumerate(row.messages) if turn.role == "assistant"
        ]
        spans = [self._span(ids, offsets, region) for region in regions if region]
        if not regions[-1]:
            raise StageError("EndOfTurnMismatch", _REWRITES.format(line=row.line))
        labels = [IGNORED] * len(ids)
        for start, end in spans if self.responses_only else [(0, len(ids))]:
            labels[start:end] = ids[start:end]
        return Labelled(ids, labels, regions.count(None))

    def _region(self, row: Conversation, index: int, whole: str) -> tuple[int, int] | None:
        """Where in the text an answer starts, and where the turn after it starts."""
        messages = row.templated()
        before = self._prefix(row, messages[:index], whole, ask=True)
        if before is None:
            return None
        through = (
            len(whole) if index + 1 == len(messages) else self._prefix(row, messages[: index + 1], whole, ask=False)
        )
        return (before, through) if through else None

    def _prefix(self, row: Conversation, messages: list[dict[str, object]], whole: str, *, ask: bool) -> int | None:
        """The length of a rendered beginning, if it is one."""
        try:
            text = self.tokenizer.render(messages, row, ask=ask)
        except Fault:  # a template may refuse a beginning that it takes as part of a whole
            return None
        return len(text) if whole.startswith(text) else None

    def _span(self, ids: list[int], offsets: list[tuple[int, int]], region: tuple[int, int]) -> tuple[int, int]:
        """The tokens of an answer, its end of turn included; what the template puts after that is not learned."""
        inside = [at for at, (start, end) in enumerate(offsets) if end > region[0] and start < region[1]]
        closing = next(
            (at for at in reversed(inside) if ids[at] in self.tokenizer.special | self.tokenizer.stops), None
        )
        if closing is None:
            raise StageError(
                "EndOfTurnMismatch",
                "The chat template puts no special token after an answer: the model would never stop.",
            )
        self._must_stop(ids[closing])
        return inside[0], closing + 1

    def _must_stop(self, token: int) -> None:
        name = self.tokenizer.name(token)
        if token not in self.tokenizer.stops:
            stops = ", ".join(self.tokenizer.name(stop) for stop in sorted(self.tokenizer.stops)) or "nothing"
            message = f"The chat template ends an answer with {name}, and generation stops at {stops}"
            raise StageError("EndOfTurnMismatch", f"{message}: the model would never stop.")
        if token == self.tokenizer.inner.bos_token_id != self.tokenizer.inner.eos_token_id:
            raise StageError("EndOfTurnMismatch", f"The chat template ends an answer with {name}, which begins a text.")


_REWRITES = (
    "Line {line}: the chat template renders a conversation in another way once its answer follows,"
    " so where the answer begins cannot be told."
)


def _no_none(whole: str, row: Conversation) -> None:
    """A template that prints a missing value teaches the model to say the word None."""
    said = json.dumps([row.templated(), row.tools], ensure_ascii=False)
    if whole.count("None") > said.count("None"):
        hint = "Give the field that is missing, or set model.chatTemplate to one that leaves it out."
        raise Fault("the chat template prints the word None in place of a value", hint=hint, line=row.line)
