"""The unsloth recipe on its CPU backend, in a process of its own: it changes the libraries around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.training import Run

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


def test_unsloth_trains_the_same_adapter_shapes_as_trl(make_run: Callable[..., Run]) -> None:
    run = make_run(recipe="unsloth", max_steps=4)
    stale = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, run.root], env=os.environ | stale, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Removed variables of a distributed launch that this run is not part of: MASTER_ADDR" in done.stdout
    assert "with the eager loader" in done.stdout
    assert run.termination["result"]["train"]["steps"] == 4
    assert [row["step"] for row in run.losses] == [1, 2, 3, 4]
    config = json.loads((run.train / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["task_type"]) == (4, 8, "CAUSAL_LM")
    assert (run.train / "checkpoints" / "checkpoint-4" / "COMPLETE.json").exists()
