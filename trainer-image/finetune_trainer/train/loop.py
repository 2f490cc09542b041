"""Drives a recipe's trainer from its newest checkpoint to the end, watched, and says what was measured."""

from __future__ import annotations

import logging
import os
import resource
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

import torch
from transformers import PrinterCallback

from finetune_trainer.contract.results import TrainFacts
from finetune_trainer.guard import Floors, host_available
from finetune_trainer.stage import StageError, report_failure
from finetune_trainer.ticker import Ticker
from finetune_trainer.train.journal import Journal, Losses
from finetune_trainer.train.pacing import Pacing
from finetune_trainer.train.probe import WarmUp
from finetune_trainer.train.progress import Endpoint, Reporter
from finetune_trainer.train.watchdog import Watchdog, give_up

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from finetune_trainer.train.checkpoints import Checkpoint
    from finetune_trainer.train.job import TrainJob
    from finetune_trainer.train.resumable import Resumable

log = logging.getLogger("finetune")

MEMORY_LOOK_SECONDS = 1.0


def run(trainer: Resumable, job: TrainJob) -> TrainFacts:
    """Train to the end, or raise what ended it before."""
    trainer.store = job.checkpoints
    trainer.remove_callback(PrinterCallback)
    resumed = job.checkpoints.newest()
    if resumed:
        log.info("Going on from step %d.", resumed.step)
    watchdog = Watchdog(partial(give_up, job.paths))
    with ExitStack() as stack:
        reporter = stack.enter_context(closing(Reporter(Endpoint.from_environment())))
        journal = Journal(
            Losses(job.losses, resumed.step if resumed else 0), reporter, resumed.step if resumed else None
        )
        for callback in (
            journal,
            Pacing(job.spec.training.save_every_steps, job.stop),
            watchdog,
            WarmUp(job.spec, trainer),
        ):
            trainer.add_callback(callback)
        stack.enter_context(watchdog.ticker())
        stack.enter_context(_memory_watch(job))
        _train(trainer, job, resumed)
        _evaluate(trainer, job, journal)
    return _facts(trainer, journal, resumed)


def _train(trainer: Resumable, job: TrainJob, resumed: Checkpoint | None) -> None:
    if (
        resumed and resumed.step >= trainer.args.max_steps
    ):  # only the end was missing; the Trainer would take one step more
        trainer._load_from_checkpoint(str(resumed.path))  # noqa: SLF001 - there is no public way
        trainer.state = trainer.state.load_from_json(str(resumed.path / "trainer_state.json"))
        return
    with job.stop.looked_at():
        trainer.train(resume_from_checkpoint=str(resumed.path) if resumed else None)
    if job.stop.error:
        step = trainer.state.global_step
        saved = f"Step {step} of {trainer.args.max_steps} is saved." if step else "No step was done yet."
        raise StageError(job.stop.error.reason.name, f"{job.stop.error.message} {saved}")


def _evaluate(trainer: Resumable, job: TrainJob, journal: Journal) -> None:
    """Evaluate the final weights, if the loop did not end with that."""
    if len(job.validation) and journal.evaluated_step != trainer.state.global_step:
        trainer.evaluate()


def _memory_watch(job: TrainJob) -> AbstractContextManager[object]:
    """Watch the host's memory, if the run was admitted with a floor."""
    floor = job.spec.memory.floor_bytes
    if not floor:
        return ExitStack()
    floors = Floors.above(floor, job.model.largest_tensor_bytes)
    soft = partial(job.stop.request, "HostMemoryPressure")

    def hard(message: str) -> None:
        os._exit(report_failure(job.paths, StageError("HostMemoryPressure", message)))

    return Ticker("memory", MEMORY_LOOK_SECONDS, lambda: floors.look(host_available(), soft, hard))


def _facts(trainer: Resumable, journal: Journal, resumed: Checkpoint | None) -> TrainFacts:
    losses = journal.losses
    return TrainFacts(
        steps=trainer.state.global_step,
        first_loss=losses.first,
        loss=losses.last.get("loss"),
        eval_loss=journal.eval_loss,
        tokens_per_second=journal.tokens_per_second,
        peak_host_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        peak_device_bytes=torch.cuda.max_memory_reserved() if torch.cuda.is_available() else 0,
        resumed_from_step=resumed.step if resumed else None,
        seconds=round(losses.last.get("seconds", 0.0), 3),
    )
