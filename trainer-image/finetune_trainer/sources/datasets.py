"""A dataset's file on this machine, from wherever it comes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.sources import address
from finetune_trainer.sources.mounts import inside, listing
from finetune_trainer.sources.web import Download, Rules
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.sources.address import Address
    from finetune_trainer.sources.hub import Hub

_LISTED = 10
TOKEN_ENV = "DATASET_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class Datasets:
    """Opens datasets."""

    hub: Hub
    sources: Path
    """Where claims and ConfigMaps are mounted."""
    downloads: Path
    """Where https:// sources go."""
    rules: Rules

    def open(self, source: str, role: str) -> Path:
        """The file behind a source; ``role`` is dataset or validation."""
        where = address.parse(source, f"{role}.source")
        if where.scheme in {"pvc", "configMap"}:
            return _file(inside(self.sources / role, where.path, "DatasetNotFound", source), source)
        if where.scheme == "https":
            return Download(where.name, self.downloads / role, os.environ.get(TOKEN_ENV), self.rules).run()
        return self._from_hub(where)

    def _from_hub(self, where: Address) -> Path:
        repository = self.hub.resolve(where, "dataset")
        if where.path not in repository.sizes:
            data = [name for name in repository.sizes if ".json" in name][:_LISTED]
            has = f"It has: {', '.join(data)}." if data else "It has no .json or .jsonl file; other forms are not read."
            raise StageError("DatasetNotFound", f"The dataset repository {where.name} has no file {where.path}. {has}")
        return repository.fetch_one(where.path)


def _file(path: Path, source: str) -> Path:
    if path.is_dir():
        raise StageError("DatasetNotFound", f"{source} is a folder, and one file is needed. {listing(path)}")
    return path
