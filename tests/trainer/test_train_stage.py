"""The train stage as a pod runs it, with the real libraries and a tiny model."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from finetune_trainer.contract.runspec import MemorySpec
from finetune_trainer.guard import GIB
from finetune_trainer.train import loop
from finetune_trainer.train.watchdog import Watchdog
from safetensors.torch import load_file
from transformers import Trainer

from tests.support.training import Run

MakeRun = Callable[..., Run]


def adapter_of(run: Run) -> dict[str, Any]:
    tensors: dict[str, Any] = load_file(run.train / "adapter" / "adapter_model.safetensors")
    return tensors


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def sigterm_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Send SIGTERM to ourselves when the training comes to an event for the n-th time, as the kubelet may."""

    def arm(event: str, time: int) -> None:
        original, seen = getattr(Watchdog, event), []

        def counted(self: Any, *args: Any, **kwargs: Any) -> None:
            seen.append(1)
            if len(seen) == time:
                os.kill(os.getpid(), signal.SIGTERM)
            original(self, *args, **kwargs)

        monkeypatch.setattr(Watchdog, event, counted)

    return arm


@pytest.fixture
def undisturbed(make_run: MakeRun) -> Run:
    """The same run without any interruption."""
    run = make_run("undisturbed", gradient_accumulation=3)
    assert run.start() == 0
    return run


def test_trl_trains_an_adapter_and_says_what_it_measured(make_run: MakeRun) -> None:
    run = make_run()
    assert run.start() == 0
    facts = run.termination["result"]["train"]
    assert facts["steps"] == 8
    assert facts["firstLoss"] > facts["loss"] > 0
    assert facts["evalLoss"] > 0
    assert facts["peakHostBytes"] > 2**20
    assert [row["step"] for row in run.losses] == list(range(1, 9))
    assert [row["step"] for row in run.losses if "evalLoss" in row] == [4, 8]
    config = json.loads((run.train / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "someone/tiny"
    assert all(tensor.dtype.is_floating_point and tensor.element_size() == 4 for tensor in adapter_of(run).values())
    assert not (run.train / "checkpoints" / ".staging").exists()


def test_a_finished_stage_does_nothing_again(make_run: MakeRun) -> None:
    run = make_run(max_steps=1)
    assert run.start() == 0
    result = run.train / "result.json"
    (run.train / "adapter" / "adapter_model.safetensors").write_bytes(b"untouched")
    assert run.start() == 0
    assert (run.train / "adapter" / "adapter_model.safetensors").read_bytes() == b"untouched"
    assert result.exists()


@pytest.mark.parametrize(
    ("event", "time", "saved_step"),
    [("on_step_end", 5, 6), ("on_substep_end", 11, 7), ("on_prediction_step", 1, 3)],
    ids=["after a step", "between two micro-batches", "in an evaluation"],
)
def test_sigterm_saves_and_the_resumed_run_ends_as_if_undisturbed(
    *,
    undisturbed: Run,
    make_run: MakeRun,
    sigterm_at: Callable[[str, int], None],
    event: str,
    time: int,
    saved_step: int,
) -> None:
    run = make_run("interrupted", gradient_accumulation=3, save_every_steps=3)
    sigterm_at(event, time)
    assert run.start() == 80
    assert run.termination["reason"] == "Interrupted"
    assert not (run.train / "result.json").exists()
    saved = sorted(path.parent.name for path in (run.train / "checkpoints").glob("*/COMPLETE.json"))
    assert saved[-1] == f"checkpoint-{saved_step}"
    assert run.start() == 0
    assert run.termination["result"]["train"]["resumedFromStep"] == saved_step
    assert [row["loss"] for row in run.losses] == [row["loss"] for row in undisturbed.losses]
    assert same(adapter_of(run), adapter_of(undisturbed))


def test_a_run_that_lacks_only_its_end_is_not_trained_further(make_run: MakeRun) -> None:
    run = make_run(max_steps=3)
    assert run.start() == 0
    first = adapter_of(run)
    (run.train / "result.json").unlink()
    assert run.start() == 0
    assert run.termination["result"]["train"]["steps"] == 3
    assert run.termination["result"]["train"]["evalLoss"] > 0
    assert same(first, adapter_of(run))


def test_a_target_that_the_model_lacks_is_named_with_those_it_has(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    broken = run.spec.model_copy(update={"lora": run.spec.lora.model_copy(update={"targets": ["q_proj", "query"]})})
    monkeypatch.setattr("finetune_trainer.stage.RunSpec.model_validate_json", lambda _text: broken)
    assert run.start() == 74
    assert "no linear module query; it has down_proj, gate_proj" in run.termination["message"]


def test_a_gpu_that_is_not_there_is_never_replaced_by_the_cpu(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    wanted = run.spec.model_copy(update={"device": "cuda"})
    monkeypatch.setattr("finetune_trainer.stage.RunSpec.model_validate_json", lambda _text: wanted)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run.start() == 76
    assert "sees none" in run.termination["message"]


def test_a_host_that_runs_out_of_memory_is_left_in_time(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(max_steps=10_000)
    floor = MemorySpec(floor_bytes=2 * GIB)
    guarded = run.spec.model_copy(update={"memory": floor})
    monkeypatch.setattr("finetune_trainer.stage.RunSpec.model_validate_json", lambda _text: guarded)
    monkeypatch.setattr(loop, "host_available", lambda: (5 * GIB // 2) if run.losses else 5 * GIB)
    monkeypatch.setattr(loop, "MEMORY_LOOK_SECONDS", 0.01)
    assert run.start() == 81
    assert "The host has 2.5 GiB left, less than the floor of 3.0 GiB" in run.termination["message"]
    assert list((run.train / "checkpoints").glob("*/COMPLETE.json"))


def test_a_card_that_is_too_small_is_said_in_numbers(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Trainer, "training_step", run_out)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (GIB, 4 * GIB))
    run = make_run()
    assert run.start() == 75
    assert "2 rows of 64 tokens do not fit" in run.termination["message"]
    assert "1.0 of 4.0 GiB are free" in run.termination["message"]


def test_a_loss_that_is_no_number_ends_the_run(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "training_step", lambda *_args, **_kwargs: torch.tensor(float("nan")))
    run = make_run(max_steps=2)
    assert run.start() == 1
    assert "The loss became nan at step 1" in run.termination["message"]


def test_folders_are_where_the_contract_says(make_run: MakeRun) -> None:
    run = make_run(max_steps=1)
    assert run.start() == 0
    assert Path(run.paths.result("train")).exists()
    assert (run.train / "adapter" / "adapter_config.json").exists()
