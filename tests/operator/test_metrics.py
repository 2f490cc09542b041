from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest
from finetune_operator import metrics, web
from finetune_operator.cluster.store import Store
from prometheus_client.parser import text_string_to_metric_families

from tests.support.edges import obj

if TYPE_CHECKING:
    from aiohttp.web import Application


def samples(name: str) -> dict[tuple[str, ...], float]:
    """Label values, in the order of their names → value."""
    families = text_string_to_metric_families(metrics.scrape().decode())
    return {tuple(s.labels.values()): s.value for family in families for s in family.samples if s.name == name}


def test_objects_are_counted_by_phase() -> None:
    hold = {"node": "n1", "hostBytes": 8, "deviceBytes": 2}
    jobs = [obj("FineTuneJob", str(n), status={"phase": "Training", "hold": hold}) for n in range(2)]
    metrics.observe([*jobs, obj("InferenceService", "s")])
    counted = samples("finetune_objects")
    assert counted == {("FineTuneJob", "Training"): 2, ("InferenceService", "Pending"): 1}
    assert samples("finetune_held_bytes") == {("host", "n1"): 16, ("device", "n1"): 4}


def test_what_is_gone_leaves_no_series() -> None:
    before = len(metrics.scrape())
    metrics.progress("default", "a", 40)
    assert samples("finetune_job_progress_ratio") == {("a", "default"): 0.4}
    metrics.progress("default", "a", None)
    metrics.progress("default", "never-there", None)
    assert len(metrics.scrape()) == before


async def ask(application: Application, path: str) -> tuple[int, str]:
    """One request to a server on a port of its own."""
    runner = await web.serve(application, 0)
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, await answer.text()
    finally:
        await runner.cleanup()


async def test_metrics_are_served_in_prometheus_format() -> None:
    store = Store()
    store.put(obj("FineTuneJob", "a", status={"phase": "Queued"}))
    status, text = await ask(web.metrics_of(store), "/metrics")
    assert status == 200
    assert 'finetune_objects{kind="FineTuneJob",phase="Queued"} 1.0' in text


@pytest.mark.parametrize(
    ("path", "alive", "ready", "wanted"),
    [
        ("/healthz", "", "starting", (200, "ok\n")),
        ("/readyz", "", "starting", (503, "starting\n")),
        ("/healthz", "no watch has told", "", (503, "no watch has told\n")),
        ("/readyz", "no watch has told", "", (200, "ok\n")),
    ],
)
async def test_probes_say_what_is_wrong(path: str, alive: str, ready: str, wanted: tuple[int, str]) -> None:
    assert await ask(web.health(lambda: alive, lambda: ready), path) == wanted
