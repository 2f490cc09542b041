"""Progress: percent, ETA and the words for printer columns."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from finetune_operator.core.job import progress
from finetune_trainer.contract.progress import Metric, TrainerStatus
from finetune_trainer.contract.results import TrainFacts

from tests.core.simulation import START


def report(eta: int = 600, **metrics: Any) -> TrainerStatus:
    named = [Metric(name=name, value=str(value)) for name, value in metrics.items()]
    return TrainerStatus(estimated_remaining_seconds=eta, metrics=named)


def test_a_report_in_words() -> None:
    shown = progress.from_report(report(2280, step=64, totalSteps=102, loss=0.5712))
    assert shown.display is not None
    assert shown.display.model_dump() == {"step": "64/102", "percent": "62%", "loss": "0.571", "eta": "38m"}


ETAS: dict[str, tuple[dict[str, float], int | None]] = {
    "before the first step": ({"step": 0}, None),
    "after the first step": ({"step": 1}, None),
    "after the second step": ({"step": 2}, 600),
    "after a resume": ({"step": 51, "resumedFromStep": 50}, None),
    "two steps after a resume": ({"step": 52, "resumedFromStep": 50}, 600),
}


@pytest.mark.parametrize(("metrics", "eta"), ETAS.values(), ids=ETAS)
def test_eta(metrics: dict[str, Any], eta: int | None) -> None:
    assert progress.from_report(report(totalSteps=100, **metrics)).eta_seconds == eta


def test_100_percent_comes_with_the_result_only() -> None:
    shown = progress.from_report(report(step=100, totalSteps=100))
    assert shown.percent == 99
    done = progress.finished(TrainFacts(steps=100, loss=0.4), shown)
    assert done.display is not None
    assert (done.percent, done.display.step, done.display.eta) == (100, "100/100", None)


def test_nonsense_is_left_out() -> None:
    shown = progress.from_report(report(step="many", loss="nan", evalLoss="inf", totalSteps=10))
    assert (shown.step, shown.loss, shown.eval_loss, shown.percent) == (None, None, None, None)


def test_it_is_written_every_ten_seconds_at_most() -> None:
    first = progress.update(None, report(step=1, totalSteps=9), START)
    assert first is not None
    soon, later = START + timedelta(seconds=4), START + timedelta(seconds=10)
    assert progress.update(first, report(step=2, totalSteps=9), soon) == first
    assert progress.wait(first, soon) == 6
    second = progress.update(first, report(step=2, totalSteps=9), later)
    assert second is not None
    assert second.step == 2


def test_a_report_that_says_nothing_new_is_not_written() -> None:
    first = progress.update(None, report(step=1, totalSteps=9), START)
    assert progress.update(first, report(step=1, totalSteps=9), START + timedelta(hours=1)) == first
