"""Both recipes on a real GPU; without one there is nothing to see here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.training import Run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")


@pytest.mark.parametrize("recipe", ["trl", "unsloth"])
def test_a_run_on_the_gpu_learns_and_reports_its_memory(make_run: Callable[..., Run], recipe: str) -> None:
    run = make_run(recipe=recipe, device="cuda", max_steps=20)
    done = run.start_alone()
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "with the eager loader" in done.stdout
    losses = [row["loss"] for row in run.losses]
    assert losses[-1] < losses[0]
    facts = run.termination["result"]["train"]
    assert facts["steps"] == 20
    assert facts["peakDeviceBytes"] > 0
    assert (run.train / "adapter" / "adapter_model.safetensors").exists()
