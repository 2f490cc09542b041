"""The head of a safetensors file: which tensor lies where. Names a file that is something else as what it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

LENGTH_BYTES = 8
LONGEST_HEAD = 100_000_000
"""The limit of the format itself."""


@dataclass(frozen=True)
class Entry:
    """One tensor: its dtype by the format's name, its shape in elements, its place in the file in bytes."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.end - self.begin


@dataclass(frozen=True)
class Layout:
    """All tensors of one file, in the order of the head."""

    entries: dict[str, Entry]
    metadata: dict[str, str] | None


def read_layout(path: Path) -> Layout:
    """Read the head and check that the file is as long as it says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(LENGTH_BYTES)
        length = int.from_bytes(start, "little")
        if size < LENGTH_BYTES or length > min(LONGEST_HEAD, size - LENGTH_BYTES):
            raise _corrupt(path, _what_it_is(start + file.read(64), size))
        head = _parse(path, file.read(length))
    offset = LENGTH_BYTES + length
    metadata = head.pop("__metadata__", None)
    entries = {
        name: Entry(value["dtype"], tuple(value["shape"]), *(offset + place for place in value["data_offsets"]))
        for name, value in head.items()
    }
    expected = max((entry.end for entry in entries.values()), default=offset)
    if size != expected:
        raise _corrupt(path, f"it has {size} bytes, its head says {expected}")
    return Layout(entries, metadata)


def _parse(path: Path, head: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(head)
    except ValueError as error:
        raise _corrupt(path, f"its head is not JSON ({error})") from error
    return parsed


def _what_it_is(start: bytes, size: int) -> str:
    text = start.lstrip().lower()
    if text.startswith(b"version https://git-lfs"):
        return f"it is a Git LFS pointer of {size} bytes, not the file itself"
    if text.startswith((b"<!doctype", b"<html")):
        return f"it is a web page of {size} bytes"
    if text.startswith(b"gguf"):
        return "it is a GGUF file"
    if start.startswith(b"PK"):
        return "it is a zip archive, perhaps a pickled PyTorch file"
    return f"it has {size} bytes and no safetensors head"


def _corrupt(path: Path, what: str) -> StageError:
    return StageError("ModelCorrupt", f"{path} is not a whole safetensors file: {what}.")
