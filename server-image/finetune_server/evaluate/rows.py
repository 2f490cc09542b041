"""The held-out rows, as questions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Question:
    """The messages up to the answer, and the answer that is right."""

    prompt: list[dict[str, Any]]
    expected: str
    line: int
    """In the user's file, from 1."""


def read_questions(path: Path, most: int) -> list[Question]:
    """The first rows that ask something; plain text asks nothing."""
    questions: list[Question] = []
    with path.open(encoding="utf-8") as file:
        for text in file:
            row = json.loads(text)
            if row.get("prompt") and len(questions) < most:
                questions.append(Question(row["prompt"], row["answer"], row["line"]))
    return questions
