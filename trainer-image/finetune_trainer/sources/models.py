"""The base model: a hub's repository or a folder of a claim, seen in the same way."""

from __future__ import annotations

import fnmatch
import logging
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from finetune_trainer.sources import digests, shards
from finetune_trainer.sources.mounts import inside, listing
from finetune_trainer.sources.sizes import human
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from finetune_trainer.sources.hub import Repository

log = logging.getLogger("finetune")
CONFIG = "config.json"
SMALL = ("*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "*.py")
"""Configuration and tokenizer. Weights in other forms than safetensors are never fetched."""
DISK_MARGIN = 1024**3


class BaseModel(Protocol):
    """A base, at one revision."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def revision(self) -> str:
        """Commit, or digest of the files."""

    @property
    def folder(self) -> Path:
        """Where its files are, or will be."""

    def fetch_small(self) -> None:
        """Bring configuration and tokenizer."""

    def fetch_weights(self) -> list[shards.Tensor]:
        """Bring the weights and check every shard."""


@dataclass(frozen=True)
class ClaimModel:
    """A base in a folder of a claim."""

    name: str
    folder: Path
    revision: str

    @classmethod
    def open(cls, source: str, root: Path, path: str, memory: Path) -> ClaimModel:
        """Find the folder and take the digest of its files."""
        folder = inside(root, path, "ModelNotFound", source)
        if not (folder / CONFIG).is_file():
            raise StageError(
                "ModelNotFound", f"{source} has no {CONFIG}. {listing(folder if folder.is_dir() else folder.parent)}"
            )
        names = [
            entry.name
            for entry in folder.iterdir()
            if entry.is_file() and (_small(entry.name) or entry.suffix == ".safetensors")
        ]
        return cls(source, folder, digests.of_folder(folder, names, memory))

    def fetch_small(self) -> None:
        """Nothing to bring; refuse what is not what its name says."""
        try:
            shards.read_json(self.folder / CONFIG)
        except shards.Damaged as damaged:
            raise _corrupt(self.name, damaged) from damaged

    def fetch_weights(self) -> list[shards.Tensor]:
        """Nothing to bring; check every shard."""
        _has_safetensors({entry.name for entry in self.folder.iterdir()}, self.name)
        try:
            return shards.check(self.folder)
        except shards.Damaged as damaged:
            raise _corrupt(self.name, damaged) from damaged


@dataclass(frozen=True)
class HubModel:
    """A base in a repository of a hub."""

    repository: Repository

    @property
    def name(self) -> str:
        """Owner and name."""
        return self.repository.asked.name

    @property
    def revision(self) -> str:
        """The commit."""
        return self.repository.commit

    @property
    def folder(self) -> Path:
        """Where the cache keeps it."""
        return self.repository.folder

    def fetch_small(self) -> None:
        """Bring configuration and tokenizer."""
        if CONFIG not in self.repository.sizes:
            raise StageError(
                "ModelNotFound", f"{self.name} has no {CONFIG}: it is no model that transformers can load."
            )
        self.repository.fetch(self._small_names())
        with self._forgetting():
            shards.read_json(self.folder / CONFIG)

    def fetch_weights(self) -> list[shards.Tensor]:
        """Bring the weights and check every shard; a damaged one is fetched once more."""
        _has_safetensors(self.repository.sizes, self.name)
        with self._forgetting():
            names = shards.shard_names(self.folder)
        self._has_all(names)
        self._has_room(names)
        self.repository.fetch(names)
        try:
            return shards.check(self.folder)
        except shards.Damaged as damaged:
            log.warning("%s; fetching it once more.", damaged)
            self.repository.forget(damaged.path)
        self.repository.fetch(names)
        with self._forgetting():
            return shards.check(self.folder)

    def _small_names(self) -> list[str]:
        """Files of the top folder only: repositories keep other formats and originals below it."""
        return [name for name in self.repository.sizes if "/" not in name and _small(name)]

    def _has_all(self, names: list[str]) -> None:
        absent = [name for name in names if name not in self.repository.sizes]
        if absent:
            raise StageError("ModelCorrupt", f"{self.name}: the index names {absent[0]}, which the repository lacks.")

    def _has_room(self, names: list[str]) -> None:
        needed = self.repository.absent_bytes(names)
        free = shutil.disk_usage(self.repository.hub.cache).free
        if needed and needed + DISK_MARGIN > free:
            message = f"The weights of {self.name} need {human(needed)} more and {human(DISK_MARGIN)} to spare"
            raise StageError(
                "DiskFull", f"{message}; the cache claim at {self.repository.hub.cache} has {human(free)} free."
            )

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """A damaged file leaves the cache, so that the next attempt fetches it again."""
        try:
            yield
        except shards.Damaged as damaged:
            self.repository.forget(damaged.path)
            raise _corrupt(self.name, damaged) from damaged


def _small(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in SMALL)


def _corrupt(name: str, damaged: shards.Damaged) -> StageError:
    return StageError("ModelCorrupt", f"{name}: {damaged}.")


def _has_safetensors(names: Container[str], model: str) -> None:
    if shards.SINGLE not in names and shards.INDEX not in names:
        raise StageError(
            "ModelUnsupported",
            f"{model} has no {shards.SINGLE} and no {shards.INDEX}: other forms of weights are not read.",
        )
