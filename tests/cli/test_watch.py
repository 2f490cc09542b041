"""What `finetune watch` shows and how it ends."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from finetune_operator.cli import watch
from rich.console import Console

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def job(name: str, phase: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "creationTimestamp": "2026-12-01T11:00:00Z"}
    return {"metadata": meta, "status": {"phase": phase} | status}


def shown(*jobs: dict[str, Any]) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(watch.render(list(jobs), NOW))
    return out.getvalue()


def test_a_training_job_shows_step_progress_loss_and_eta() -> None:
    progress = {"percent": 63, "display": {"step": "64/102", "percent": "63%", "loss": "0.571", "eta": "38m"}}
    line = shown(job("invoices", "Training", progress=progress)).splitlines()[1]
    assert line.split()[0:3] == ["invoices", "Training", "64/102"]
    assert line.split()[-4:] == ["63%", "0.571", "38m", "1h"]


def test_a_failure_says_why_below_the_table() -> None:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "DatasetInvalid",
        "message": "train.jsonl line 3: no answer",
    }
    assert "invoices: train.jsonl line 3: no answer" in shown(job("invoices", "Failed", conditions=[failed]))


def test_a_waiting_job_says_for_what() -> None:
    queue = {"position": 1, "waitingFor": "needs 91.2 GiB; 86.6 GiB free", "since": "2026-12-01T11:00:00Z"}
    assert "invoices: needs 91.2 GiB; 86.6 GiB free" in shown(job("invoices", "Queued", queue=queue))


EXITS = {
    "all succeeded": ((job("a", "Succeeded"), job("b", "Succeeded")), 0),
    "one failed": ((job("a", "Succeeded"), job("b", "Failed")), 1),
    "deleted while it was watched": ((), 1),
    "timed out while training": ((job("a", "Training"),), 2),
}


@pytest.mark.parametrize(("jobs", "status"), EXITS.values(), ids=EXITS.keys())
def test_exit_status(jobs: tuple[dict[str, Any], ...], status: int) -> None:
    assert watch.exit_status(list(jobs)) == status


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (90000, "1d")])
def test_short_duration(seconds: int, text: str) -> None:
    assert watch.short_duration(seconds) == text
