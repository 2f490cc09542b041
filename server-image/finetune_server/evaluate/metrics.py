"""How good answers are. Pure.

Exact: equal JSON where an object or a list is expected, else equal text without the spaces around it.
Field F1: over all (path, value) pairs of the expected and of the answered JSON, all rows together.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.results import Scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Fields = Counter[tuple[str, str, Any]]
"""(path, kind of value, value) → how often."""


@dataclass(frozen=True)
class Answer:
    """What a model said to one question."""

    text: str
    stopped: bool
    """It ended by itself, not at the limit."""
    tokens: int = 0
    refusal: str = ""
    """What the server said instead."""


def score(expected: Sequence[str], answers: Sequence[Answer], seconds: float) -> Scores:
    """Count over all rows; ``seconds`` is the time for all of them."""
    rows = len(expected)
    if not rows:
        return Scores()
    pairs = list(zip(expected, answers, strict=True))
    structured = [(want, answer) for want, answer in pairs if parse(want) is not None]
    tokens = sum(answer.tokens for answer in answers)
    return Scores(
        rows=rows,
        exact_match=sum(is_exact(want, answer.text) for want, answer in pairs) / rows,
        valid_json=_valid_json(structured),
        field_f1=_field_f1(structured),
        stop_rate=sum(answer.stopped for answer in answers) / rows,
        tokens_per_second=round(tokens / seconds, 1) if seconds else None,
    )


def is_exact(expected: str, answer: str) -> bool:
    """Is the answer right?"""
    wanted = parse(expected)
    if wanted is None:
        return expected.strip() == answer.strip()
    found = parse(answer)
    return found is not None and type(found) is type(wanted) and fields(found) == fields(wanted)


def parse(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that the text is, or None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def fields(value: Any) -> Fields:
    """Every leaf with its path; an empty object or list is a leaf."""
    return Counter(_leaves("", value))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(f"{path}[{index}]", inner)
    else:
        yield path, _kind(value), value if not isinstance(value, dict | list) else None


def _kind(value: Any) -> str:
    """JSON's kinds: 1 and 1.0 are one number, 1 and true are not equal."""
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _valid_json(structured: list[tuple[str, Answer]]) -> float | None:
    if not structured:
        return None
    return sum(parse(answer.text) is not None for _, answer in structured) / len(structured)


def _field_f1(structured: list[tuple[str, Answer]]) -> float | None:
    if not structured:
        return None
    right = wanted = found = 0
    for want, answer in structured:
        expected, answered = fields(parse(want)), _answered(answer.text)
        right += (expected & answered).total()
        wanted += expected.total()
        found += answered.total()
    return 2 * right / (wanted + found)


def _answered(text: str) -> Fields:
    value = parse(text)
    return Counter() if value is None else fields(value)
