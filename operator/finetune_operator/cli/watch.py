"""``finetune watch``: follow jobs in a live table until they are done."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from finetune_operator.cli.cluster import Cluster, Manifest, fail

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS = 1.0
FINISHED = frozenset({"Succeeded", "Failed"})
_COLOURS = {"Succeeded": "green", "Failed": "red", "Queued": "yellow", "Suspended": "yellow", "Training": "cyan"}


def watch(
    name: Annotated[str | None, typer.Argument(help="Name of a FineTuneJob; all in the namespace if not said.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace; the context's if not said.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="json: one line per change; table. json in a pipe.")
    ] = None,
    timeout: Annotated[int | None, typer.Option(help="Give up after this many seconds.")] = None,
) -> None:
    """Follow jobs until they are done. The exit status is 0 if all succeeded, 1 if one failed, 2 after the timeout."""
    cluster = Cluster(namespace)
    if name is not None and cluster.get("finetunejobs", name) is None:
        raise fail(f"There is no FineTuneJob {cluster.namespace}/{name}. See `kubectl get ftj`.")
    fetch = _fetcher(cluster, name)
    as_json = (output or ("table" if sys.stdout.isatty() else "json")) == "json"
    deadline = time.monotonic() + timeout if timeout else None
    jobs = _follow_json(fetch, deadline) if as_json else _follow_table(fetch, deadline)
    raise typer.Exit(exit_status(jobs))


def exit_status(jobs: list[Manifest]) -> int:
    """0: all succeeded; 1: one failed or vanished; 2: not all are done."""
    phases = [_status(job).get("phase") for job in jobs]
    if not phases or "Failed" in phases:
        return 1
    return 0 if all(phase == "Succeeded" for phase in phases) else 2


def _fetcher(cluster: Cluster, name: str | None) -> Callable[[], list[Manifest]]:
    def fetch() -> list[Manifest]:
        if name is None:
            return cluster.list("finetunejobs")
        job = cluster.get("finetunejobs", name)
        return [] if job is None else [job]

    return fetch


def _status(job: Manifest) -> dict[str, Any]:
    status: dict[str, Any] = job.get("status") or {}
    return status


def _done(jobs: list[Manifest], deadline: float | None) -> bool:
    if deadline is not None and time.monotonic() > deadline:
        return True
    return all(_status(job).get("phase") in FINISHED for job in jobs)


def _follow_json(fetch: Callable[[], list[Manifest]], deadline: float | None) -> list[Manifest]:
    seen: dict[str, str] = {}
    while True:
        jobs = fetch()
        for job in jobs:
            line = json.dumps(summary(job), sort_keys=True)
            if seen.get(job["metadata"]["name"]) != line:
                seen[job["metadata"]["name"]] = line
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
        if _done(jobs, deadline):
            return jobs
        time.sleep(POLL_SECONDS)


def _follow_table(fetch: Callable[[], list[Manifest]], deadline: float | None) -> list[Manifest]:
    with Live(console=Console(), refresh_per_second=4) as live:
        while True:
            jobs = fetch()
            live.update(render(jobs, datetime.now(UTC)))
            if _done(jobs, deadline):
                return jobs
            time.sleep(POLL_SECONDS)


def summary(job: Manifest) -> dict[str, Any]:
    """What one line of JSON says about a job."""
    status = _status(job)
    progress = {key: value for key, value in (status.get("progress") or {}).items() if key != "display"}
    said = {"name": job["metadata"]["name"], "phase": status.get("phase", "Pending"), "message": message(status)}
    return said | {
        key: value for key, value in (("progress", progress), ("evaluation", status.get("evaluation"))) if value
    }


def message(status: dict[str, Any]) -> str:
    """The sentence that matters now: of the failure, of what is waited for, or of the success."""
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    for type_, wanted in (("Failed", "True"), ("Suspended", "True"), ("Succeeded", "True")):
        if conditions.get(type_, {}).get("status") == wanted:
            return str(conditions[type_].get("message", ""))
    if waiting := (status.get("queue") or {}).get("waitingFor"):
        return str(waiting)
    return next(
        (str(one.get("message", "")) for one in conditions.values() if one["status"] == "False" and one.get("message")),
        "",
    )


def render(jobs: list[Manifest], now: datetime) -> Group:
    """The live table, and below it a sentence for each job that has one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("NAME", "PHASE", "STEP", "PROGRESS", "LOSS", "ETA", "AGE"):
        table.add_column(column, no_wrap=True)
    for job in jobs:
        table.add_row(*_row(job, now))
    notes = [Text(f"{job['metadata']['name']}: {said}", style="dim") for job in jobs if (said := message(_status(job)))]
    return Group(table, *notes)


def _row(job: Manifest, now: datetime) -> list[Any]:
    status = _status(job)
    phase = status.get("phase", "Pending")
    shown = (status.get("progress") or {}).get("display") or {}
    percent = (status.get("progress") or {}).get("percent")
    bar = Table.grid(padding=(0, 1))
    if percent is not None:
        bar.add_row(ProgressBar(total=100, completed=percent, width=20), f"{percent}%")
    age = now - datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    return [
        job["metadata"]["name"],
        Text(phase, style=_COLOURS.get(phase, "")),
        shown.get("step", ""),
        bar,
        shown.get("loss", ""),
        shown.get("eta", ""),
        short_duration(int(age.total_seconds())),
    ]


def short_duration(seconds: int) -> str:
    """Seconds as kubectl writes an age: 42s, 7m, 3h, 2d."""
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{letter}"
    return f"{max(0, seconds)}s"
