"""A stand-in for ``safetensors.safe_open`` that reads with pread into memory of its own and maps nothing.

What it must keep to (transformers reads from four threads):

- ``get_slice`` reads nothing; indexing it does.
- A returned tensor owns its storage: no buffer is shared between tensors or threads.
- A range leaves the page cache as soon as it was read.
- The file stays open until the last slice of it is gone; ``__exit__`` does not close it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

import torch

from finetune_trainer.loading.layout import Entry, read_layout
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK = 64 * 2**20
"""Bytes per read, and the size of a thread's staging buffer on the way to a GPU."""

DTYPES: dict[str, torch.dtype] = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "U16": torch.uint16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "I64": torch.int64,
    "U64": torch.uint64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E8M0": torch.float8_e8m0fnu,
    "F4": torch.float4_e2m1fn_x2,
}

_thread = threading.local()


class EagerFile:
    """One open safetensors file."""

    def __init__(self, path: Path, device: torch.device, on_read: Callable[[str], None]) -> None:
        """``on_read`` hears the name of every tensor that was read."""
        self.path = path
        self.layout = read_layout(path)
        self.device = device
        self.on_read = on_read
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)

    def keys(self) -> list[str]:
        """Names of the tensors, in natural order."""
        return sorted(self.layout.entries)

    def metadata(self) -> dict[str, str] | None:
        """What the writer noted."""
        return self.layout.metadata

    def get_slice(self, name: str) -> EagerSlice:
        """A tensor that is not read yet."""
        return EagerSlice(self, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        """A tensor, read now."""
        return self.get_slice(name)[...]

    def __enter__(self) -> Self:
        """Nothing to do: it is open."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Stay open: slices may still be read."""


class EagerSlice:
    """A tensor in a file. Indexing reads it whole and gives the part that was asked for."""

    def __init__(self, file: EagerFile, name: str) -> None:
        """Holds on to the file."""
        self._file = file
        self._name = name
        self._entry = file.layout.entries[name]

    def get_shape(self) -> list[int]:
        """In elements."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """By the format's name, for example ``BF16``."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Read."""
        whole = self._read()
        return whole if index is Ellipsis else whole[index].clone()

    def _read(self) -> torch.Tensor:
        entry = self._entry
        if entry.dtype not in DTYPES:
            raise StageError(
                "ModelUnsupported",
                f"{self._name} in {self._file.path} has the dtype {entry.dtype}, which this loader does not know.",
            )
        flat = torch.empty(entry.bytes, dtype=torch.uint8, device=self._file.device)
        for offset, size in _chunks(entry):
            _fill(flat[offset : offset + size], self._file, entry.begin + offset)
        self._file.on_read(self._name)
        return flat.view(DTYPES[entry.dtype]).view(_shape(entry))


def _shape(entry: Entry) -> tuple[int, ...]:
    """In torch's elements: two 4-bit numbers are one of them."""
    return (*entry.shape[:-1], entry.shape[-1] // 2) if entry.dtype == "F4" else entry.shape


def _chunks(entry: Entry) -> Iterator[tuple[int, int]]:
    for offset in range(0, entry.bytes, CHUNK):
        yield offset, min(CHUNK, entry.bytes - offset)


def _fill(target: torch.Tensor, file: EagerFile, position: int) -> None:
    """Read a range into the target, by way of this thread's own buffer if the target is on a GPU."""
    size = target.numel()
    buffer = target if target.device.type == "cpu" else _staging()[:size]
    _pread(file, memoryview(buffer.numpy()), position)
    if buffer is not target:
        target.copy_(buffer)
    os.posix_fadvise(file.descriptor, position, size, os.POSIX_FADV_DONTNEED)


def _pread(file: EagerFile, view: memoryview, position: int) -> None:
    done = 0
    while done < len(view):
        count = os.preadv(file.descriptor, [view[done:]], position + done)
        if count == 0:
            raise StageError("ModelCorrupt", f"{file.path} ends at byte {position + done}, but a tensor of it goes on.")
        done += count


def _staging() -> torch.Tensor:
    """This thread's pinned buffer; it is free with the thread."""
    if not hasattr(_thread, "staging"):
        _thread.staging = torch.empty(CHUNK, dtype=torch.uint8, pin_memory=True)
    staging: torch.Tensor = _thread.staging
    return staging
