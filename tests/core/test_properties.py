"""Whatever happens to a job, in whatever order: the plan is at rest after it was carried out, and promises hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.simulation import Cluster, job

if TYPE_CHECKING:
    from collections.abc import Callable


def _if_running(act: Callable[[Cluster], Any]) -> Callable[[Cluster], Any]:
    return lambda cluster: act(cluster) if _unfinished(cluster) else None


def _unfinished(cluster: Cluster) -> list[Any]:
    return [item for item in cluster.kind("Job") if "status" not in item]


def _admit(cluster: Cluster) -> None:
    if cluster.phase == "Queued" and not cluster.object["spec"].get("suspend"):
        cluster.admit()


HAPPENINGS: dict[str, Callable[[Cluster], Any]] = {
    "succeeds": _if_running(lambda cluster: cluster.succeed()),
    "fails": _if_running(lambda cluster: cluster.fail("StageFailed", 1)),
    "bad data": _if_running(lambda cluster: cluster.fail("DatasetInvalid", 65)),
    "hub away": _if_running(lambda cluster: cluster.fail("HubUnreachable", 82)),
    "evicted": _if_running(lambda cluster: cluster.end(1, reason="Evicted")),
    "pod lost": _if_running(lambda cluster: cluster.lose_pod()),
    "OOM": _if_running(lambda cluster: cluster.end(137, terminated="OOMKilled")),
    "job deleted": _if_running(lambda cluster: cluster.vanish(cluster.running["metadata"]["name"])),
    "admitted": _admit,
    "suspend": lambda cluster: cluster.edit(suspend=True),
    "resume": lambda cluster: cluster.edit(suspend=False),
    "edit": lambda cluster: cluster.edit(training={"batchSize": 1 + cluster.object["metadata"]["generation"] % 4}),
    "retry": lambda cluster: cluster.edit(retryToken=str(cluster.object["metadata"]["generation"])),
    "time": lambda cluster: cluster.wait(45),
    "hours": lambda cluster: cluster.wait(7200),
}
LIVES = st.lists(st.sampled_from(sorted(HAPPENINGS)), max_size=25)


@given(LIVES)
@settings(max_examples=60, deadline=None)
def test_any_life(life: list[str]) -> None:
    cluster = Cluster(job(retries=1, ttlSecondsAfterFinished=3600))
    cluster.settle()
    for happening in life:
        HAPPENINGS[happening](cluster)
        cluster.settle()
        _promises(cluster)


def _promises(cluster: Cluster) -> None:
    running = _unfinished(cluster)
    assert len(running) <= 1, "two pods never work for one job"
    stages = [item["metadata"]["labels"]["finetune.dev/stage"] for item in running]
    if stages and stages != ["prepare"]:
        assert "hold" in cluster.status, "nothing but prepare runs without a hold"
    if cluster.phase in {"Succeeded", "Failed", "Suspended"}:
        assert not running
        assert "hold" not in cluster.status, "what has ended holds nothing"
    assert len(json.dumps(cluster.status)) < 64 * 1024
    attempts = [(record["name"], record["attempt"]) for record in cluster.status["stages"]]
    assert len(set(attempts)) == len(attempts)
    assert [item["type"] for item in cluster.status["conditions"]] == [
        "Prepared", "Admitted", "Trained", "Exported", "Evaluated", "Succeeded", "Failed", "Suspended",
    ]  # fmt: skip


@given(LIVES)
@settings(max_examples=25, deadline=None)
def test_a_good_end_can_always_be_reached(life: list[str]) -> None:
    """No order of happenings leaves a job stuck: resume, retry and a little luck bring it to its end."""
    cluster = Cluster(job(retries=1))
    cluster.settle()
    for happening in life:
        HAPPENINGS[happening](cluster)
        cluster.settle()
    for happening in ("resume", "retry", *(["hours", "admitted", "succeeds"] * 5)):
        HAPPENINGS[happening](cluster)
        cluster.settle()
    assert cluster.phase == "Succeeded"
