"""Repositories of a model hub: what they have, and fetching it into the cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.hf_api import RepoFile

from finetune_trainer.sources.address import Address  # noqa: TC001
from finetune_trainer.sources.hub_errors import Asked, told
from finetune_trainer.sources.progress import watching

PUBLIC = "https://huggingface.co"
_TIMEOUT = 30


@dataclass(frozen=True)
class Hub:
    """One hub, and the right to read from it."""

    endpoint: str
    cache: Path
    """HF_HOME/hub."""
    token: str | None = field(default=None, repr=False)

    def resolve(self, address: Address, kind: str) -> Repository:
        """The commit behind a revision, and its files with their sizes."""
        asked = Asked(kind, address.name, address.revision, self.endpoint, with_token=self.token is not None)
        api = HfApi(endpoint=self.endpoint, token=self.token or False)
        with told(asked):
            info = api.repo_info(address.name, revision=address.revision, repo_type=kind, timeout=_TIMEOUT)
            commit = str(info.sha)
            tree = api.list_repo_tree(address.name, recursive=True, revision=commit, repo_type=kind)
            sizes = {entry.path: entry.size for entry in tree if isinstance(entry, RepoFile)}
        return Repository(self, asked, commit, sizes)


@dataclass(frozen=True)
class Repository:
    """A repository at one commit."""

    hub: Hub
    asked: Asked
    commit: str
    sizes: dict[str, int]

    @property
    def folder(self) -> Path:
        """Where the cache keeps this commit."""
        return self.storage / "snapshots" / self.commit

    @property
    def storage(self) -> Path:
        """Where the cache keeps this repository: blobs/, refs/, snapshots/."""
        return self.hub.cache / f"{self.asked.kind}s--{self.asked.name.replace('/', '--')}"

    def absent_bytes(self, names: list[str]) -> int:
        """How much would have to be fetched."""
        return sum(self.sizes[name] for name in names if not (self.folder / name).exists())

    def fetch(self, names: list[str]) -> None:
        """Bring files into the cache; the ones that are there cost nothing."""
        with told(self.asked), watching(self.storage / "blobs", self.asked.name, self.absent_bytes(names)):
            snapshot_download(
                self.asked.name,
                repo_type=self.asked.kind,
                revision=self.commit,
                cache_dir=self.hub.cache,
                allow_patterns=names,
                endpoint=self.hub.endpoint,
                token=self.hub.token or False,
            )

    def fetch_one(self, name: str) -> Path:
        """Bring one file into the cache."""
        with told(self.asked):
            path = hf_hub_download(
                self.asked.name,
                name,
                repo_type=self.asked.kind,
                revision=self.commit,
                cache_dir=self.hub.cache,
                endpoint=self.hub.endpoint,
                token=self.hub.token or False,
            )
        return Path(path)

    def forget(self, path: Path) -> None:
        """Remove a damaged file from the cache, so that it is fetched again."""
        path.resolve().unlink(missing_ok=True)
        path.unlink(missing_ok=True)
