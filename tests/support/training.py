"""A run of the train stage in a folder of its own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune_trainer import stage
from finetune_trainer.train.work import work

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec


PROGRAM = """
import sys
from pathlib import PurePosixPath
from finetune_trainer import stage
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.train.work import work

root = PurePosixPath(sys.argv[1])
stage.RUNSPEC_PATH = root / "runspec.json"
stage.TERMINATION_LOG = root / "termination"
stage.RunPaths = lambda digest: RunPaths(digest, models=root / "models", cache=root / "cache")
sys.exit(stage.run_stage("train", work))
"""
"""The stage in a process of its own, with its folders below the first argument."""


@dataclass(frozen=True)
class Run:
    """A run whose prepare stage has finished."""

    spec: RunSpec
    paths: RunPaths
    root: Path

    @property
    def train(self) -> Path:
        return Path(self.paths.stage("train"))

    @property
    def losses(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.train / "losses.jsonl").read_text().splitlines()]

    def start(self) -> int:
        """Run the stage as the pod's command does; returns the exit status."""
        return stage.run_stage("train", work)

    def start_alone(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the stage in a process of its own, because Unsloth changes the libraries around it."""
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, self.root],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def termination(self) -> dict[str, Any]:
        """What Kubernetes shows as the termination message."""
        message: dict[str, Any] = json.loads((self.root / "termination").read_text())
        return message


def write_rows(path: Path, count: int) -> None:
    """Random rows whose second half is learned."""
    numbers = random.Random(count)  # noqa: S311 - rows, not secrets
    with path.open("w") as file:
        for line in range(count):
            ids = [numbers.randint(3, 20) for _ in range(numbers.randint(8, 40))]
            half = len(ids) // 2
            row = {"input_ids": ids, "labels": [-100] * half + ids[half:], "prompt": [], "answer": "", "line": line}
            file.write(json.dumps(row) + "\n")
