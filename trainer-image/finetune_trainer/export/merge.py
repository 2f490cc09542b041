"""W + Δ, streaming: the merged files have the base's names, order, types and headers, and memory holds a block.

The sum is made in fp32 and rounded to nearest once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, BinaryIO

import torch

from finetune_trainer.files import blocks, copy_file, drop, settle
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from finetune_trainer.export.adapter import Update
    from finetune_trainer.export.checkpoint import Checkpoint, Shard, Tensor

log = logging.getLogger("finetune")

ROWS_BYTES = 64 * 2**20
"""fp32 bytes of the rows that are merged at a time."""
_WEIGHT_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx", ".ot")


def merge(base: Checkpoint, updates: Mapping[str, Update], target: Path) -> None:
    """Write the merged model into a folder that exists and is empty."""
    for number, shard in enumerate(base.shards, start=1):
        log.info("Merging %s (%d of %d)", shard.path.name, number, len(base.shards))
        _merge_shard(shard, updates, target / shard.path.name)
    for path in sorted(base.folder.iterdir()):
        if path.is_file() and not path.name.endswith(_WEIGHT_ENDINGS):
            copy_file(path, target / path.name)


def _merge_shard(shard: Shard, updates: Mapping[str, Update], target: Path) -> None:
    with shard.path.open("rb") as reader, target.open("wb") as writer:
        writer.write(reader.read(len(shard.head)))
        for tensor in shard.tensors:
            writer.writelines(_content(reader, tensor, updates.get(tensor.name)))
        settle(writer)
        drop(reader)


def _content(reader: BinaryIO, tensor: Tensor, update: Update | None) -> Iterator[bytes]:
    """The bytes of one tensor; the reader stands at its start."""
    if update is None:
        yield from blocks(reader, tensor.end - tensor.start)
        return
    for _, summed, dtype in summed_rows(reader, tensor, update):
        yield to_bytes(summed.to(dtype))


def summed_rows(
    reader: BinaryIO, tensor: Tensor, update: Update
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.dtype]]:
    """Δ and W + Δ in fp32, some rows at a time, with the type that they are stored in."""
    dtype = _torch_dtype(tensor)
    _check_shapes(tensor, update)
    rows, columns = tensor.shape
    step = max(1, ROWS_BYTES // (4 * columns))
    for first in range(0, rows, step):
        count = min(step, rows - first)
        content = bytearray(reader.read(count * columns * dtype.itemsize))
        weight = torch.frombuffer(content, dtype=dtype).reshape(count, columns).float()
        delta = (update.b[first : first + count] @ update.a) * update.scale
        yield delta, weight + delta, dtype


def to_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes as safetensors stores them."""
    return bytes(tensor.contiguous().view(torch.uint8).numpy())


def _torch_dtype(tensor: Tensor) -> torch.dtype:
    dtypes = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
    if tensor.dtype not in dtypes:
        raise StageError(
            "ModelUnsupported",
            f"{tensor.name} is stored as {tensor.dtype}; an adapter is merged into F32, F16 or BF16.",
        )
    return dtypes[tensor.dtype]


def _check_shapes(tensor: Tensor, update: Update) -> None:
    found = (update.b.shape[0], update.a.shape[1])
    if found != tensor.shape or update.b.shape[1] != update.a.shape[0]:
        raise StageError(
            "MergeNotProven", f"{tensor.name} has the shape {tensor.shape}; the adapter's update has {found}."
        )
