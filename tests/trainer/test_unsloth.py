"""The unsloth recipe on its CPU backend, in a process of its own: it changes the libraries around it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.training import Run


def test_unsloth_trains_the_same_adapter_shapes_as_trl(make_run: Callable[..., Run]) -> None:
    run = make_run(recipe="unsloth", max_steps=4)
    stale = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}
    done = run.start_alone(**stale)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Removed variables of a distributed launch that this run is not part of: MASTER_ADDR" in done.stdout
    assert "with the eager loader" in done.stdout
    assert run.termination["result"]["train"]["steps"] == 4
    assert [row["step"] for row in run.losses] == [1, 2, 3, 4]
    config = json.loads((run.train / "adapter" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["task_type"]) == (4, 8, "CAUSAL_LM")
    assert (run.train / "checkpoints" / "checkpoint-4" / "COMPLETE.json").exists()
