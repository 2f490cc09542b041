"""pvc:// and configMap:// sources: files of a mounted volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

_LISTED = 10


def inside(root: Path, path: str, reason: str, source: str) -> Path:
    """A path below a mount that exists and does not lead out of it, be it by ``..`` or by a link."""
    found = (root / path.lstrip("/")).resolve()
    if not found.is_relative_to(root.resolve()):
        raise StageError("InvalidSpec", f"{source} leads out of the volume: '..' and links may not.")
    if not found.exists():
        raise StageError(reason, f"{source} does not exist. {listing(_nearest(found))}")
    return found


def listing(folder: Path) -> str:
    """What is in a folder, in a sentence."""
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir() if entry.name[:2] != "..")
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"The folder '{folder.name}' has: {', '.join(names[:_LISTED]) or 'nothing'}{more}."


def _nearest(path: Path) -> Path:
    """The deepest folder on the way to a path that does exist."""
    return next(parent for parent in path.parents if parent.is_dir())
