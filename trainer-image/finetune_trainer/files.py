"""Large files: written to the disk for certain, and out of the page cache afterwards.

On a box where CPU and GPU share one memory, CUDA counts the page cache as used: whoever reads or writes gigabytes
drops them again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK = 16 * 2**20
"""Bytes read at a time."""


def settle(file: BinaryIO) -> None:
    """Bring what was written to the disk, and drop the file from the page cache."""
    file.flush()
    os.fsync(file.fileno())
    drop(file)


def drop(file: BinaryIO) -> None:
    """Drop a file that was read from the page cache."""
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def blocks(file: BinaryIO, count: int | None = None) -> Iterator[bytes]:
    """The next ``count`` bytes (all if not said), a block at a time; fewer if the file ends before."""
    left = count
    while left is None or left > 0:
        block = file.read(BLOCK if left is None else min(BLOCK, left))
        if not block:
            return
        left = None if left is None else left - len(block)
        yield block


def copy_file(source: Path, target: Path) -> None:
    """Copy the bytes (of what a link points to) and settle them."""
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, BLOCK)
        settle(writer)
        drop(reader)


def settle_folder(folder: Path) -> None:
    """Bring a folder's own entries to the disk: renames are only certain after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle_all(folder: Path) -> None:
    """Bring every file below a folder to the disk, and the folders' own entries."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        elif path.is_dir():
            settle_folder(path)
    settle_folder(folder)


def sha256_of(path: Path) -> str:
    """Hash a file; the page cache is as it was afterwards."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for block in blocks(file):
            digest.update(block)
            os.posix_fadvise(file.fileno(), 0, file.tell(), os.POSIX_FADV_DONTNEED)
    return digest.hexdigest()
