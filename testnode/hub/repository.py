"""A repository is a folder; its one commit is a digest of what is in it.

``.gated`` in the folder lists tokens, one a line, without which no file is given out. ``.faults.json`` says what
goes wrong when a file is asked for, see ``faults``.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

KINDS = ("models", "datasets")


@dataclass(frozen=True)
class Repository:
    """One model or dataset."""

    name: str
    folder: Path

    def files(self) -> dict[str, Path]:
        """Path in the repository → file."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        names = ((str(path.relative_to(self.folder)), path) for path in found)
        return {name: path for name, path in names if not name.startswith(".")}

    def commit(self) -> str:
        """40 hex digits, which change with the contents."""
        lines = "".join(f"{name} {etag(path)}\n" for name, path in self.files().items())
        return hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()

    def has(self, revision: str) -> bool:
        """Is it the branch main, or the commit?"""
        return revision in {"main", self.commit()}

    def tokens(self) -> set[str] | None:
        """The tokens that open it; None: it is open to everybody."""
        gate = self.folder / ".gated"
        return set(gate.read_text().split()) if gate.exists() else None

    def faults(self) -> dict[str, dict[str, int]]:
        """Path → what goes wrong with it."""
        path = self.folder / ".faults.json"
        found: dict[str, dict[str, int]] = json.loads(path.read_text()) if path.exists() else {}
        return found


def find(root: Path, kind: str, name: str) -> Repository | None:
    """The repository of that name, or None."""
    folder = root / kind / name
    inside = folder.resolve().is_relative_to((root / kind).resolve())
    return Repository(name, folder) if inside and folder.is_dir() else None


def etag(path: Path) -> str:
    """sha256 of a file."""
    about = path.stat()
    return _digest(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
