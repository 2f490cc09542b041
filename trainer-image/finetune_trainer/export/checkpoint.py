"""A model's safetensors files as they lie on the disk: names, types, shapes and places of the tensors.

The format: 8 bytes with the length of the header, the header (JSON), then the tensors without gaps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_LENGTH_BYTES = 8
_LARGEST_HEADER = 100 * 10**6
"""As safetensors itself allows."""


@dataclass(frozen=True)
class Tensor:
    """Where one tensor lies: ``start`` and ``end`` are offsets in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Shard:
    """One file."""

    path: Path
    head: bytes
    """Everything before the first tensor, as it is in the file."""
    tensors: tuple[Tensor, ...]
    """In the order of the file."""


@dataclass(frozen=True)
class Checkpoint:
    """All files of a model."""

    folder: Path
    shards: tuple[Shard, ...]

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor of every shard."""
        for shard in self.shards:
            yield from shard.tensors


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read the headers of all shards that the index names."""
    return Checkpoint(folder, tuple(read_shard(folder / name) for name in _shard_names(folder)))


def read_shard(path: Path) -> Shard:
    """Read one header, and see that the file is as long as it says."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if length > min(_LARGEST_HEADER, path.stat().st_size):
            raise StageError(
                "ModelCorrupt", f"{path} is not a safetensors file: its header would be {length} bytes long."
            )
        header = file.read(length)
    shard = Shard(path, length.to_bytes(_LENGTH_BYTES, "little") + header, tuple(_tensors(header)))
    expected = max((tensor.end for tensor in shard.tensors), default=len(shard.head))
    if path.stat().st_size != expected:
        raise StageError("ModelCorrupt", f"{path} has {path.stat().st_size} bytes; its header says {expected}.")
    return shard


def _shard_names(folder: Path) -> list[str]:
    index = folder / INDEX
    if not index.exists():
        return [SINGLE]
    weight_map: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    return sorted(set(weight_map.values()))


def _tensors(header: bytes) -> list[Tensor]:
    first = _LENGTH_BYTES + len(header)
    entries = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
    tensors = [
        _tensor(name, entry["dtype"], entry["shape"], entry["data_offsets"], first) for name, entry in entries.items()
    ]
    return sorted(tensors, key=lambda tensor: tensor.start)


def _tensor(name: str, dtype: str, shape: list[int], offsets: list[int], first: int) -> Tensor:
    return Tensor(name, dtype, tuple(shape), first + offsets[0], first + offsets[1])
