"""The train stage from top to bottom."""

from __future__ import annotations

import logging
import shutil
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.contract.results import ModelFacts, StageResult, TrainFacts
from finetune_trainer.guard import require_memory
from finetune_trainer.memory import plan_training
from finetune_trainer.stage import StageError, now, read_result, require_result
from finetune_trainer.train import environment
from finetune_trainer.train.checkpoints import CheckpointStore
from finetune_trainer.train.job import TrainJob
from finetune_trainer.train.stopping import Stop

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec

log = logging.getLogger("finetune")

LIBRARIES = ("torch", "transformers", "trl", "peft")
"""A checkpoint is resumed only under the versions that made it."""


def work(spec: RunSpec, paths: RunPaths) -> StageResult:
    """Train, unless this very training is done already."""
    prepared = require_result(paths, "prepare")
    done = read_result(paths, "train")
    if done and done.inputs == prepared.inputs:
        log.info("Already done.")
        return done
    if prepared.model is None:
        raise StageError("StageFailed", f"{paths.result('prepare')} says nothing about the model.")
    started = now()
    environment.apply(spec, paths)
    facts = _train(spec, paths, prepared.model, prepared.inputs)
    return StageResult(
        stage="train",
        run_digest=paths.run_digest,
        inputs=prepared.inputs,
        message=_sentence(facts),
        started_at=started,
        finished_at=now(),
        train=facts,
    )


def _train(spec: RunSpec, paths: RunPaths, model: ModelFacts, inputs: str) -> TrainFacts:
    stop = Stop()
    with stop.on_sigterm():
        from finetune_trainer.train.device import require_device, within_memory  # noqa: PLC0415 - imports torch

        # Before the recipe: without a GPU, Unsloth cannot even be imported, and says so in its own words.
        require_device(spec.device)
        # Unsloth must be imported before transformers is; torch may come before both.
        recipe = import_module(f"finetune_trainer.recipes.{spec.recipe}")
        require_memory(plan_training(model, spec).host_certain_bytes)
        job = _job(spec, paths, model, inputs, stop)
        with within_memory(spec):
            facts: TrainFacts = recipe.train(job)
    shutil.rmtree(job.checkpoints.staging, ignore_errors=True)
    return facts


def _job(spec: RunSpec, paths: RunPaths, model: ModelFacts, inputs: str, stop: Stop) -> TrainJob:
    """Read the rows."""
    from finetune_trainer.train.rows import read_rows  # noqa: PLC0415 - imports torch, after the environment

    stamp = {"run digest": paths.run_digest, "data": inputs} | {f"{name} version": version(name) for name in LIBRARIES}
    prepared = Path(paths.stage("prepare"))
    return TrainJob(
        spec=spec,
        paths=paths,
        model=model,
        rows=read_rows(prepared / "train.jsonl"),
        validation=read_rows(prepared / "validation.jsonl"),
        checkpoints=CheckpointStore(Path(paths.stage("train")) / "checkpoints", stamp, spec.training.keep_checkpoints),
        stop=stop,
    )


def _sentence(facts: TrainFacts) -> str:
    held_out = "" if facts.eval_loss is None else f", {facts.eval_loss:.3f} on held-out rows"
    first, last = facts.first_loss or 0, facts.loss or 0
    return f"Trained {facts.steps} steps in {facts.seconds:.0f} s: loss {first:.3f} → {last:.3f}{held_out}."
