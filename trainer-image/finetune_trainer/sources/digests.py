"""sha256 of the files of a claim, remembered by size and time of change: a base of 70 GB is read once."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from finetune_trainer.files import sha256_of
from finetune_trainer.stage import locked, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def of_folder(folder: Path, names: Iterable[str], memory: Path) -> str:
    """One digest over names and contents. ``memory`` is a JSON file that remembers single files."""
    with locked(memory.with_suffix(".lock")):  # two jobs may start from the same base at once
        return _of_folder(folder, names, memory)


def _of_folder(folder: Path, names: Iterable[str], memory: Path) -> str:
    known: dict[str, str] = json.loads(memory.read_text(encoding="utf-8")) if memory.exists() else {}
    state = hashlib.sha256()
    for name in sorted(names):
        path = folder / name
        about = path.stat()
        key = f"{about.st_dev}:{about.st_ino}:{about.st_size}:{about.st_mtime_ns}:{about.st_ctime_ns}"
        if key not in known:
            known[key] = sha256_of(path)
            write_file(memory, json.dumps(known))
        state.update(f"{name}\0{known[key]}\n".encode())
    return state.hexdigest()
