from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster.watchdog import LONGEST_WAIT, Watchdog

from tests.support.edges import FakeClient, Manifest, job_spec, obj, waiting

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue


class Cluster:
    """A cluster whose watch can be cut."""

    def __init__(self, client: FakeClient, observer: Observer) -> None:
        self.client, self.observer, self.cut = client, observer, False

    def write(self, manifest: Manifest) -> Manifest:
        """Somebody creates or changes an object."""
        made = self.client._stamped(manifest)
        if not self.cut:
            self.observer.told("MODIFIED", made)
        return made


@pytest.fixture
def cluster(client: FakeClient, observer: Observer) -> Cluster:
    return Cluster(client, observer)


@pytest.fixture
def watchdog(client: FakeClient, observer: Observer, queue: Queue) -> Watchdog:
    return Watchdog(client, observer, queue, None)  # type: ignore[arg-type]


JOB = obj("FineTuneJob", "a", uid="u1", spec=job_spec())


async def test_all_is_well_while_the_watch_tells_everything(cluster: Cluster, watchdog: Watchdog) -> None:
    for _ in range(3):
        cluster.write(JOB)
        await watchdog.compare()
    assert watchdog.complaint() == ""


async def test_a_watch_that_is_only_late_is_not_dead(cluster: Cluster, watchdog: Watchdog) -> None:
    cluster.cut = True
    late = cluster.write(JOB)
    await watchdog.compare()
    assert watchdog.complaint() == ""
    cluster.observer.told("ADDED", late)
    await watchdog.compare()
    assert watchdog.complaint() == ""


async def test_a_dead_watch_is_noticed_at_the_second_look(cluster: Cluster, watchdog: Watchdog) -> None:
    cluster.write(JOB)
    cluster.cut = True
    cluster.write(JOB)
    await watchdog.compare()
    await watchdog.compare()
    assert watchdog.complaint() == "no watch has told of FineTuneJob default/a for a minute"


async def test_our_own_writes_do_not_hide_a_dead_watch(cluster: Cluster, watchdog: Watchdog) -> None:
    cluster.write(JOB)
    cluster.cut = True
    cluster.observer.wrote(cluster.write(JOB), by=None)
    await watchdog.compare()
    await watchdog.compare()
    assert watchdog.complaint()


async def test_a_busy_object_is_no_dead_watch(cluster: Cluster, watchdog: Watchdog) -> None:
    """Each look sees a change that is too new to have been told; the one before was told."""
    for _ in range(4):
        cluster.cut = True
        newest = cluster.write(JOB)
        await watchdog.compare()
        cluster.observer.told("MODIFIED", newest)
    assert watchdog.complaint() == ""


async def test_a_deletion_that_no_watch_told_is_noticed(
    cluster: Cluster, watchdog: Watchdog, queue: Queue, client: FakeClient
) -> None:
    cluster.write(JOB)
    pod = cluster.write(obj("Pod", "p", labels={"finetune.dev/job-uid": "u1"}))
    await waiting(queue)
    del client.objects[next(key for key in client.objects if key.kind == "Pod")]
    await watchdog.compare()
    assert cluster.observer.store.find(pod["metadata"]["uid"])
    await watchdog.compare()
    assert cluster.observer.store.find(pod["metadata"]["uid"]) is None
    assert await waiting(queue) == ["FineTuneJob/a"]


async def test_workers_that_hang_are_noticed(watchdog: Watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog._queue, "oldest", lambda: LONGEST_WAIT + 1)
    assert "has waited for 301 s" in watchdog.complaint()


async def test_every_object_is_looked_at_again_now_and_then(cluster: Cluster, watchdog: Watchdog, queue: Queue) -> None:
    cluster.write(JOB)
    await waiting(queue)
    watchdog.resync()
    assert await waiting(queue) == ["FineTuneJob/a"]
