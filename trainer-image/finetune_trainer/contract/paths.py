"""Where everything lies on the claims. Pure: nothing here touches a file.

Two claims: ``/cache`` (downloads, base GGUFs, compiled kernels) and ``/models`` (runs and versions)::

    /models/runs/<run>/prepare/   train.jsonl validation.jsonl report.json result.json tokenizer/
    /models/runs/<run>/train/     checkpoints/ adapter/ losses.jsonl result.json
    /models/runs/<run>/export/    merged/ model.gguf result.json
    /models/runs/<run>/evaluate/  answers.jsonl result.json
    /models/versions/<version>/   model.gguf adapter/ report.md MANIFEST.json
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Stage = Literal["prepare", "train", "export", "evaluate"]
STAGES: tuple[Stage, ...] = ("prepare", "train", "export", "evaluate")

CACHE_MOUNT = PurePosixPath("/cache")
MODELS_MOUNT = PurePosixPath("/models")
SOURCES_MOUNT = PurePosixPath("/sources")
"""pvc:// and configMap:// sources: /sources/model, /sources/dataset, /sources/validation."""
PROGRESS_CA = PurePosixPath("/run/finetune/ca.crt")
PROGRESS_TOKEN = PurePosixPath("/var/run/secrets/finetune.dev/token")
TERMINATION_LOG = PurePosixPath("/dev/termination-log")

MANIFEST = "MANIFEST.json"
GGUF = "model.gguf"
REPORT = "report.md"
RESULT = "result.json"
MERGE_RESULT = "merge.json"
"""Of the merge, which is the first half of the export stage."""


@dataclass(frozen=True)
class RunPaths:
    """The folders of one run, named by the first 16 hex digits of its digest."""

    run_digest: str
    models: PurePosixPath = MODELS_MOUNT
    cache: PurePosixPath = CACHE_MOUNT

    @property
    def root(self) -> PurePosixPath:
        """The run's own folder."""
        return self.models / "runs" / self.run_digest[:16]

    def stage(self, stage: Stage) -> PurePosixPath:
        """The folder of one stage."""
        return self.root / stage

    def result(self, stage: Stage) -> PurePosixPath:
        """The result of one stage: written last, by rename."""
        return self.stage(stage) / RESULT

    @property
    def lock(self) -> PurePosixPath:
        """Held (flock) by whichever pod works in this run's folder."""
        return self.root / "lock"

    @property
    def hub_cache(self) -> PurePosixPath:
        """HF_HOME."""
        return self.cache / "hf"

    @property
    def base_gguf(self) -> PurePosixPath:
        """Converted bases, by revision, quantization and llama.cpp commit."""
        return self.cache / "gguf"

    def version(self, version: str) -> PurePosixPath:
        """A published model version."""
        return self.models / "versions" / version

    def version_of(self, inputs: str) -> PurePosixPath:
        """Where this run publishes: its settings, and what they were applied to."""
        return self.version(f"{self.run_digest[:16]}-{inputs[:8]}")
