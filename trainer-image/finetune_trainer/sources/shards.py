"""Reading and checking safetensors files by their headers: no tensor is loaded.

A file is 8 bytes of header length, the header (JSON), and the data. A whole one is exactly as long as its header says.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.files import drop

if TYPE_CHECKING:
    from pathlib import Path

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_MAX_HEADER = 100_000_000


class Damaged(Exception):  # noqa: N818 - says what the file is
    """A file that is not what its name says; the message tells what it is instead."""

    def __init__(self, path: Path, message: str) -> None:
        """Take the file and what is wrong with it."""
        super().__init__(f"{path.name} {message}")
        self.path = path


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a shard."""

    name: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of a model, or what stands in its place."""
    refuse_impostors(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Damaged(path, f"is not JSON ({error}; {path.stat().st_size} bytes)") from error
    if not isinstance(value, dict):
        raise Damaged(path, "must hold a JSON object")
    return value


def refuse_impostors(path: Path) -> None:
    """Name the things that take a file's place when a download went wrong."""
    with path.open("rb") as file:
        start = file.read(512)
    size = path.stat().st_size
    if not start:
        raise Damaged(path, "is empty")
    if start.startswith(b"version https://git-lfs"):
        expected = next(
            (line.split()[1] for line in start.decode(errors="replace").splitlines() if line.startswith("size ")), "?"
        )
        raise Damaged(
            path, f"is a Git LFS pointer of {size} bytes, not the file of {expected} bytes: run `git lfs pull`"
        )
    if start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        raise Damaged(path, f"is a web page of {size} bytes, perhaps of a login or an error")


def shard_names(folder: Path) -> list[str]:
    """The weight files that the index names, or the single one."""
    index = folder / INDEX
    if not index.exists():
        return [SINGLE]
    return sorted(set(weight_map(folder).values()))


def weight_map(folder: Path) -> dict[str, str]:
    """The index: tensor → file."""
    index = folder / INDEX
    found = read_json(index).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise Damaged(index, "has no weight_map")
    if any("/" in str(name) for name in found.values()):
        raise Damaged(index, "names files outside of the model's folder")
    return found


def check(folder: Path) -> list[Tensor]:
    """Check every shard and the completeness of the index; returns all tensors."""
    tensors: list[Tensor] = []
    for name in shard_names(folder):
        path = folder / name
        if not path.exists():
            raise Damaged(path, "is missing, though the index names it")
        tensors += header(path)
    if (folder / INDEX).exists():
        absent = sorted(weight_map(folder).keys() - {tensor.name for tensor in tensors})
        if absent:
            raise Damaged(folder / INDEX, f"names {len(absent)} tensors that no shard has, {absent[0]} first")
    return tensors


def header(path: Path) -> list[Tensor]:
    """The tensors of one file whose size is what its header says."""
    refuse_impostors(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(_MAX_HEADER, size):
            raise Damaged(path, f"is cut off or no safetensors file: {size} bytes, with a header of {length}")
        raw = file.read(length)
        drop(file)
    tensors = _parse(path, raw)
    expected = 8 + length + sum(tensor.bytes for tensor in tensors)
    if size != expected:
        raise Damaged(
            path, f"has {size} bytes, and {expected} are expected: it is {'cut off' if size < expected else 'too long'}"
        )
    return tensors


def _parse(path: Path, raw: bytes) -> list[Tensor]:
    try:
        entries = json.loads(raw)
        entries.pop("__metadata__", None)
        spans = sorted((*entry["data_offsets"], name, tuple(entry["shape"])) for name, entry in entries.items())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(path, f"has a header that cannot be read ({error})") from error
    end = 0
    for start, stop, name, _ in spans:
        if start != end or stop < start:
            raise Damaged(path, f"has a gap before {name}: its data starts at {start} instead of {end}")
        end = stop
    return [Tensor(name, shape, stop - start) for start, stop, name, shape in spans]
