"""MANIFEST.json: what a published version is, and the hash of every file in it. A folder without it does not exist."""

from __future__ import annotations

from finetune_trainer.contract.base import Wire
from finetune_trainer.contract.results import DatasetFacts, EvaluateFacts, ExportFacts, ModelFacts, TrainFacts
from finetune_trainer.contract.runspec import LoraSpec
from pydantic import Field


class FileEntry(Wire):
    """One file of the version; the path is relative to its folder."""

    path: str
    bytes: int
    sha256: str


class Manifest(Wire):
    """Written last, inside of a folder that gets its name by rename."""

    version: str
    run_digest: str
    inputs: str
    created_at: str
    base: str
    """The source as the job says it."""
    model: ModelFacts
    dataset: DatasetFacts
    recipe: str
    adapter: LoraSpec
    train: TrainFacts
    export: ExportFacts
    evaluate: EvaluateFacts
    trainer_image: str = ""
    server_image: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    """Library → version; ``llama.cpp`` → commit."""
    files: list[FileEntry] = Field(default_factory=list)
