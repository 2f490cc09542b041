"""A version appears in one moment: a folder is filled beside its place and gets its name by rename.

MANIFEST.json is its last file. A folder without it, or under another name, does not exist for anybody.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from finetune_trainer.contract.paths import GGUF, MANIFEST
from finetune_trainer.files import copy_file, settle_folder, sha256_of
from finetune_trainer.stage import write_file

from finetune_server.manifest import FileEntry, Manifest

if TYPE_CHECKING:
    from pathlib import Path


def published(folder: Path) -> Manifest | None:
    """The manifest of a version that exists."""
    path = folder / MANIFEST
    return Manifest.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None


def publish(manifest: Manifest, folder: Path, gguf: Path, adapter: Path, texts: dict[str, str]) -> Manifest:
    """Fill, list, rename. Returns the manifest with its files."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    _link(gguf, partial / GGUF)
    _copy_folder(adapter, partial / "adapter")
    for name, text in texts.items():
        write_file(partial / name, text)
    complete = manifest.model_copy(update={"files": _entries(partial, manifest.export.sha256)})
    write_file(partial / MANIFEST, complete.to_json())
    settle_folder(partial)
    shutil.rmtree(folder, ignore_errors=True)  # one without a manifest: published() has said so
    partial.rename(folder)
    settle_folder(folder.parent)
    return complete


def _link(source: Path, target: Path) -> None:
    """Both names lie on one claim, so no byte is written; some file systems know no links and need a copy."""
    try:
        os.link(source, target)
    except OSError:
        copy_file(source, target)


def _copy_folder(source: Path, target: Path) -> None:
    target.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file():
            copy_file(path, target / path.name)
    settle_folder(target)


def _entries(folder: Path, gguf_sha256: str) -> list[FileEntry]:
    """Every file with its hash; the GGUF's is known from the export."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        FileEntry(
            path=str(path.relative_to(folder)),
            bytes=path.stat().st_size,
            sha256=gguf_sha256 if path.name == GGUF else sha256_of(path),
        )
        for path in paths
    ]
