"""The operator's own metrics. Labels are few and bounded; the series of an object go with the object."""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from finetune_operator.core.types import Manifest

# When a series began is of no use to anybody here, and doubles the scrape.
disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY = CollectorRegistry()
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)

RECONCILE_SECONDS = Histogram(
    "finetune_reconcile_duration_seconds",
    "Time of one look at an object.",
    ["kind"],
    buckets=_BUCKETS,
    registry=REGISTRY,
)
ERRORS = Counter("finetune_reconcile_errors", "Looks at an object that failed.", ["kind", "error"], registry=REGISTRY)
API_CALLS = Counter("finetune_api_calls", "Calls to the API server.", ["method", "kind", "status"], registry=REGISTRY)
QUEUE_DEPTH = Gauge("finetune_queue_depth", "Objects that wait to be looked at.", registry=REGISTRY)
OBJECTS = Gauge("finetune_objects", "Objects by phase.", ["kind", "phase"], registry=REGISTRY)
HELD_BYTES = Gauge("finetune_held_bytes", "Memory that admission has given out.", ["node", "memory"], registry=REGISTRY)
LAST_EVENT = Gauge("finetune_watch_last_event_timestamp_seconds", "When a watch last told anything.", registry=REGISTRY)
PROGRESS = Gauge(
    "finetune_job_progress_ratio", "How far the training of a job is.", ["namespace", "name"], registry=REGISTRY
)
REPORTS = Counter("finetune_progress_reports", "Reports from trainers, by answer.", ["status"], registry=REGISTRY)


def scrape() -> bytes:
    """Everything, as Prometheus reads it."""
    return generate_latest(REGISTRY)


def observe(objects: Iterable[Manifest]) -> None:
    """Count objects by phase and memory by node; what is not there any more goes to nothing."""
    phases: Tally[tuple[str, str]] = Tally()
    held: Tally[tuple[str, str]] = Tally()
    for manifest in objects:
        status = manifest.get("status", {})
        phases[manifest["kind"], status.get("phase", "Pending")] += 1
        if hold := status.get("hold"):
            held[hold["node"], "host"] += hold.get("hostBytes", 0)
            held[hold["node"], "device"] += hold.get("deviceBytes", 0)
    _replace(OBJECTS, phases)
    _replace(HELD_BYTES, held)


def progress(namespace: str, name: str, percent: int | None) -> None:
    """The progress of a job; None removes its series."""
    if percent is not None:
        PROGRESS.labels(namespace, name).set(percent / 100)
    else:
        PROGRESS.remove(namespace, name)


def _replace(gauge: Gauge, values: Tally[tuple[str, str]]) -> None:
    gauge.clear()
    for labels, value in values.items():
        gauge.labels(*labels).set(value)
