"""Opening what a run names: its dataset, its validation set, its base."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.data import Report, check
from finetune_trainer.prepare.split import Split, split
from finetune_trainer.sources import address
from finetune_trainer.sources.datasets import TOKEN_ENV, Datasets
from finetune_trainer.sources.hub import PUBLIC, Hub
from finetune_trainer.sources.models import BaseModel, ClaimModel, HubModel
from finetune_trainer.sources.web import Rules
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec


def hub(spec: RunSpec, paths: RunPaths, token: str | None) -> Hub:
    """The hub of this run: the spec's, the environment's or the public one."""
    endpoint = spec.hub_endpoint or os.environ.get("HF_ENDPOINT") or PUBLIC
    return Hub(endpoint.rstrip("/"), Path(paths.hub_cache) / "hub", token or None)


def open_model(spec: RunSpec, paths: RunPaths, sources: Path) -> BaseModel:
    """The base at one revision; of a hub's, nothing is fetched yet."""
    where = address.parse(spec.model.source, "model.source")
    if where.scheme == "pvc":
        return ClaimModel.open(spec.model.source, sources / "model", where.path, Path(paths.cache) / "digests.json")
    return HubModel(hub(spec, paths, os.environ.get("HF_TOKEN")).resolve(where, "model"))


def read_rows(spec: RunSpec, paths: RunPaths, sources: Path) -> tuple[list[Report], Split]:
    """The rows to learn from and the rows held out, all of them checked."""
    token = os.environ.get(TOKEN_ENV) or os.environ.get("HF_TOKEN")
    downloads = Path(paths.stage("prepare")) / "downloads"
    datasets = Datasets(hub(spec, paths, token), sources, downloads, Rules(spec.allow_private_addresses))
    named = {"dataset": spec.dataset.source, "validation": spec.dataset.validation.source}
    reports = [_checked(spec, datasets.open(source, role), source) for role, source in named.items() if source]
    shutil.rmtree(downloads, ignore_errors=True)
    rows = reports[0].conversations
    held_out = reports[1].conversations if len(reports) > 1 else None
    parts = Split(rows, held_out) if held_out else split(rows, spec.dataset.validation, spec.training.seed)
    return reports, parts


def _checked(spec: RunSpec, file: Path, source: str) -> Report:
    report = check(file, address.file_name(source), spec.dataset)
    failure = report.failure()
    if failure:
        raise StageError(failure.reason, failure.message)
    return report


def digest(revision: str, reports: list[Report]) -> str:
    """What chains the stages: the base's revision and what every row says."""
    parts = [revision, *(report.digest() for report in reports)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
