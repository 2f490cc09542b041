"""What can be wrong with a dataset, and what else a key may have been meant to be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ALIASES = {
    "value": ("text", "content", "message", "body"),
    "content": ("value", "text", "message", "body"),
    "from": ("role", "speaker", "author"),
    "role": ("from", "speaker", "author"),
    "messages": ("conversations", "conversation", "dialogue", "dialog", "chat", "turns"),
    "conversations": ("messages", "conversation", "dialogue", "dialog", "chat", "turns"),
    "instruction": ("question", "query", "prompt", "input"),
    "output": ("response", "answer", "completion", "target"),
    "prompt": ("question", "query", "instruction", "input"),
    "completion": ("response", "answer", "output", "chosen"),
    "text": ("content", "document", "body"),
}
"""Other names under which the same thing is often written."""


class Fault(Exception):  # noqa: N818 - a fault of the data, not of the program
    """Something wrong with a file or a row: what, where in it, and what to do."""

    def __init__(
        self, message: str, *, hint: str = "", line: int | None = None, field: str = "", turn: int | None = None
    ) -> None:
        """Take the sentence; ``line`` counts from 1, ``turn`` from 0, as in ``conversations[0]``."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.field = field
        self.turn = turn


def missing(key: str, found: Iterable[str], *, field: str = "", turn: int | None = None) -> Fault:
    """A key is not there; says which of the keys that are there may be it."""
    found = list(found)
    meant = meant_by(key, found)
    hint = f"Did you mean the key '{meant}'? Rename it, or set dataset.columns: {{{key}: {meant}}}." if meant else ""
    return Fault(f"'{key}' missing (keys here: {', '.join(found) or 'none'})", hint=hint, field=field, turn=turn)


def meant_by(key: str, found: list[str]) -> str | None:
    """The key among those found that is a known alias or looks alike."""
    lower = {one.casefold(): one for one in found}
    alias = next((lower[name] for name in ALIASES.get(key, ()) if name in lower), None)
    close = difflib.get_close_matches(key, list(lower), n=1, cutoff=0.7)
    return lower[close[0]] if close else alias


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")
