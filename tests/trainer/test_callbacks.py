"""What watches a training: journal, pacing and watchdog, with a clock of our own."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from finetune_trainer.stage import StageError
from finetune_trainer.train.journal import Journal, Losses
from finetune_trainer.train.pacing import Pacing
from finetune_trainer.train.stopping import Stop
from finetune_trainer.train.watchdog import Watchdog

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def state(step: int, *, total: int = 100, epoch: float = 0.5) -> Any:
    return SimpleNamespace(global_step=step, max_steps=total, epoch=epoch, num_input_tokens_seen=step * 50)


def control() -> Any:
    return SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=False)


@pytest.mark.parametrize(
    ("every", "step", "epoch", "age", "saves"),
    [
        (None, 7, 0.5, 599, False),
        (None, 7, 0.5, 600, True),
        (None, 7, 1.0, 29, False),
        (None, 7, 1.0, 30, True),
        (None, 100, 0.5, 0, True),
        (5, 10, 0.5, 0, True),
        (5, 11, 0.5, 6000, False),
        (5, 100, 0.5, 0, True),
    ],
)
def test_when_a_checkpoint_is_due(*, every: int | None, step: int, epoch: float, age: float, saves: bool) -> None:
    clock, answer = Clock(), control()
    pacing = Pacing(every, Stop(), clock)
    clock.now = age
    pacing.on_step_end(None, state(step, epoch=epoch), answer)
    assert answer.should_save is saves
    assert not answer.should_training_stop


def test_whoever_must_leave_saves_and_does_not_evaluate() -> None:
    stop, answer = Stop(), control()
    stop.request("HostMemoryPressure", "3 GiB left.")
    stop.request("Interrupted", "too late to be the reason")
    pacing = Pacing(None, stop)
    pacing.on_substep_end(None, state(3), answer)
    assert answer.should_save
    assert answer.should_training_stop
    answer.should_evaluate = True
    pacing.on_epoch_end(None, state(3), answer)
    assert not answer.should_evaluate
    with pytest.raises(StageError, match="3 GiB left") as caught:
        pacing.on_prediction_step(None, state(3), answer)
    assert caught.value.reason.name == "HostMemoryPressure"


def test_a_run_that_has_made_no_step_has_nothing_to_save() -> None:
    stop, answer = Stop(), control()
    stop.request("Interrupted", "now")
    Pacing(None, stop).on_substep_end(None, state(0), answer)
    assert answer.should_training_stop
    assert not answer.should_save


@pytest.mark.parametrize(
    ("durations", "silent", "stalled"),
    [
        ([], 1199, False),
        ([], 1201, True),
        ([1, 1, 1], 599, False),
        ([1, 1, 1], 601, True),
        ([100, 100, 5], 999, False),
        ([100, 100, 5], 1001, True),
    ],
)
def test_how_long_a_step_may_take(*, durations: list[float], silent: float, stalled: bool) -> None:
    clock = Clock()
    heard: list[float] = []
    watchdog = Watchdog(heard.append, clock)
    for seconds in durations:
        watchdog.on_step_begin(None, None, None)
        clock.now += seconds
        watchdog.on_step_end(None, None, None)
    clock.now += silent
    watchdog.look()
    assert bool(heard) is stalled


def test_losses_go_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    rows = [{"step": step, "loss": 9.0 - step, "learningRate": 0.1, "seconds": step * 1.0} for step in (1, 2, 3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 4, "lo')
    losses = Losses(path, resumed_step=2)
    losses.add({"step": 3, "loss": 5.5, "learningRate": 0.1, "seconds": 3.0})
    losses.complete(evalLoss=7.0)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["loss"] for row in written] == [8.0, 7.0, 5.5]
    assert written[-1]["evalLoss"] == 7.0
    assert losses.first == 8.0


def test_the_journal_reports_speed_and_time_left(tmp_path: Path) -> None:
    clock = Clock()
    sent: list[Any] = []
    journal = Journal(Losses(tmp_path / "losses.jsonl", 0), SimpleNamespace(send=sent.append), None, clock)  # type: ignore[arg-type]
    journal.on_train_begin(None, state(0), None)
    for step in (1, 2):
        journal.on_step_begin(None, state(step - 1), None)
        clock.now += 10
        journal.on_step_end(None, state(step), None)
        journal.on_log(None, state(step), None, logs={"loss": 2.0, "learning_rate": 1e-3})
    last = sent[-1].trainer_status
    metrics = {metric.name: metric.value for metric in last.metrics}
    assert len(sent) == 3
    assert last.estimated_remaining_seconds == 980
    assert metrics["tokensPerSecond"] == "5"
    assert metrics["step"] == "2"
    assert "resumedFromStep" not in metrics
