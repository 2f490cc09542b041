"""What the check of a dataset found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from finetune_trainer.data import conversation

if TYPE_CHECKING:
    from finetune_trainer.data.conversation import Conversation
    from finetune_trainer.data.faults import Fault

SHOWN = 20
"""So many problems are told one by one; of the others, the number."""
_EXAMPLES = 5


class Failure(NamedTuple):
    """Why a dataset cannot be used: a reason out of the table, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend: where, what, how."""

    file: str
    message: str
    hint: str = ""
    line: int | None = None
    """Counts from 1."""
    field: str = ""
    """For example ``conversations[1]``."""
    turn: int | None = None
    """Counts from 0, as in the field."""

    def __str__(self) -> str:
        """Say it in one line, the file left out."""
        place = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.field) if part)
        end = "" if self.message.endswith("?") else "."
        return f"{place}{': ' if place else ''}{self.message}{end}{' ' if self.hint else ''}{self.hint}"


@dataclass
class Report:
    """The rows of one file that can be used, and everything that must be said about the others."""

    file: str
    format: str = ""
    conversations: list[Conversation] = field(default_factory=list)
    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason → rows: empty, noAnswer."""
    dropped_lines: dict[str, list[int]] = field(default_factory=dict)
    """Reason → the first few lines."""
    notes: Counter[str] = field(default_factory=Counter)
    """mergedTurns, trimmedTurns."""
    problems: list[Problem] = field(default_factory=list)
    """The first twenty."""
    problem_count: int = 0

    def add(self, fault: Fault, line: int | None = None) -> None:
        """Note a problem."""
        self.problem_count += 1
        if len(self.problems) < SHOWN:
            self.problems.append(
                Problem(self.file, fault.message, fault.hint, fault.line or line, fault.field, fault.turn)
            )

    def drop(self, reason: str, line: int) -> None:
        """Count a row that is left out."""
        self.dropped[reason] += 1
        lines = self.dropped_lines.setdefault(reason, [])
        if len(lines) < _EXAMPLES:
            lines.append(line)

    def digest(self) -> str:
        """sha256 over what the usable rows say."""
        return conversation.digest(self.conversations)

    def failure(self) -> Failure | None:
        """Why the file cannot be used, or None."""
        if self.problem_count:
            shown = " ".join(str(problem) for problem in self.problems)
            more = (
                f" … and {self.problem_count - len(self.problems)} more."
                if self.problem_count > len(self.problems)
                else ""
            )
            noun = "problem" if self.problem_count == 1 else "problems"
            return Failure("DatasetInvalid", f"{self.file}: {self.problem_count} {noun}. {shown}{more}")
        if not self.conversations:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())
            return Failure(
                "DatasetEmpty", f"{self.file}: 0 usable rows of {self.read}{f' ({reasons})' if reasons else ''}."
            )
        return None
