"""JSON with the words that a person needs when it is broken."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from finetune_trainer.data.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

WRAPPERS = ("data", "rows", "train", "examples", "samples", "records", "items")
"""Keys under which whole datasets are found as one list."""
_SPACE = re.compile(r"[ \t\r\n]*")
_ONE_PER_LINE = "Write JSON Lines: one object per line, with no comma between them."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON lets a key stand twice and keeps the last: that loses data without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Fault(
            f"the key '{twice}' stands twice in one object", hint="Give each row one line and each key one value."
        )
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _decode(text: str, start: int) -> tuple[object, int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise Fault(
            f"not JSON: {error.msg} at character {error.colno}",
            hint="Correct the line, or write it again with a JSON library.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise Fault(f"JSON that cannot be read: {error}") from error
    return value, _skip(text, end)


def _skip(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def loads(text: str) -> object:
    """One value and nothing after it."""
    value, end = _decode(text, _skip(text, 0))
    if end == len(text):
        return value
    rest = text[end]
    ask = ": is this a comma-separated list?" if rest == "," else ""
    raise Fault(f"text after the object ('{rest}'){ask}", hint=_ONE_PER_LINE)


def unfinished(text: str) -> bool:
    """Does the text end inside of a value?"""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip())
    except (ValueError, RecursionError):  # too long a number, too deep a nest
        return False
    return False


def spans_lines(text: str) -> bool:
    """Is this the first line of an object that goes on below, as pretty-printers write it?"""
    return text.endswith("\n") and text.lstrip().startswith("{") and unfinished(text)


def wrapper_key(value: object) -> str | None:
    """The key under which an object holds a whole dataset."""
    if not isinstance(value, dict):
        return None
    lists = [key for key in WRAPPERS if isinstance(value.get(key), list)]
    return lists[0] if len(lists) == 1 and all(isinstance(row, dict) for row in value[lists[0]]) else None


def single(text: str, number: int) -> Iterator[tuple[int, object]]:
    """A text that is one object: a wrapper's rows, or the object itself as the only row."""
    try:
        value = loads(text)
    except Fault as fault:
        raise Fault(fault.message, hint=_ONE_PER_LINE, line=number) from fault
    key = wrapper_key(value)
    if key is None:
        yield number, value
        return
    start = re.search(rf'"{key}"\s*:\s*\[', text)
    yield from _elements(text, start.end() if start else 0, number)


def array(text: str) -> Iterator[tuple[int, object]]:
    """A text that is one array: its elements with the lines on which they start."""
    yield from _elements(text, text.index("[") + 1, 1, alone=True)


def _elements(text: str, start: int, number: int, *, alone: bool = False) -> Iterator[tuple[int, object]]:
    counted, at = 0, _skip(text, start)
    while text[at : at + 1] != "]":
        number += text.count("\n", counted, at)
        counted = at
        try:
            value, at = _decode(text, at)
        except Fault as fault:
            raise Fault(fault.message, hint=fault.hint, line=number) from fault
        yield number, value
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise Fault(
                "the array is cut off or a comma is missing",
                hint="Copy or write the file again.",
                line=number + text.count("\n", counted, at),
            )
    if alone and text[at + 1 :].strip():
        raise Fault(
            "text after the array",
            hint="Write one array, or one object per line.",
            line=number + text.count("\n", counted, _skip(text, at + 1)),
        )
