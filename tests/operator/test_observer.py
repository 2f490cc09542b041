from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster.resources import Key

from tests.support.edges import Manifest, job_spec, obj, waiting

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue

JOB = obj("FineTuneJob", "a", uid="u1", spec=job_spec(serve={"name": "chat"}))
SERVICE = obj("InferenceService", "chat", uid="u2", spec={"model": {"fromFineTuneJob": "a"}})

CASES = [
    ("a custom resource is looked at", [], JOB, ["FineTuneJob/a"]),
    ("a child makes its owner be looked at", [JOB], obj("Job", "j", owner=("FineTuneJob", "u1")), ["FineTuneJob/a"]),
    (
        "a pod makes the owner of its Job be looked at",
        [JOB],
        obj("Pod", "p", labels={"finetune.dev/job-uid": "u1"}, owner=("Job", "x")),
        ["FineTuneJob/a"],
    ),
    ("a stranger's child wakes nobody", [JOB], obj("Job", "j", owner=("FineTuneJob", "u9")), []),
    ("a service that waits is woken by its job", [SERVICE], JOB, ["FineTuneJob/a", "InferenceService/chat"]),
    ("a job is woken by the service that it made", [JOB], SERVICE, ["InferenceService/chat", "FineTuneJob/a"]),
    ("an unrelated service is left alone", [obj("InferenceService", "x", spec={"model": {}})], JOB, ["FineTuneJob/a"]),
]


@pytest.mark.parametrize(("known", "news", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_who_is_looked_at(
    observer: Observer, queue: Queue, known: list[Manifest], news: Manifest, wanted: list[str]
) -> None:
    for manifest in known:
        observer.store.put(manifest)
    observer.told("ADDED", news)
    assert await waiting(queue) == wanted


async def test_an_echo_of_our_own_write_wakes_nobody(observer: Observer, queue: Queue) -> None:
    observer.wrote(JOB, by=Key("FineTuneJob", "default", "a"))
    assert await waiting(queue) == []
    observer.told("MODIFIED", JOB)
    assert await waiting(queue) == []
    assert observer.seen[Key("FineTuneJob", "default", "a")] == 1


async def test_our_own_write_wakes_those_who_wait_for_it(observer: Observer, queue: Queue) -> None:
    observer.store.put(SERVICE)
    observer.wrote(JOB, by=Key("FineTuneJob", "default", "a"))
    assert await waiting(queue) == ["InferenceService/chat"]


async def test_a_deletion_is_taken_in(observer: Observer, queue: Queue) -> None:
    observer.told("ADDED", JOB)
    observer.told("ADDED", obj("Job", "j", uid="jj", owner=("FineTuneJob", "u1")))
    await waiting(queue)
    observer.admission.clear()
    observer.told("DELETED", obj("Job", "j", uid="jj", version=5, owner=("FineTuneJob", "u1")))
    assert await waiting(queue) == ["FineTuneJob/a"]
    assert observer.admission.is_set()
    assert Key("Job", "default", "j") not in observer.seen


async def test_a_late_deletion_of_a_namesake_is_ignored(observer: Observer) -> None:
    observer.told("ADDED", JOB)
    observer.told("DELETED", obj("FineTuneJob", "a", uid="older"))
    assert observer.store.get("FineTuneJob", "default", "a")


@pytest.mark.parametrize(("phase", "wakes"), [("Running", False), ("Succeeded", True), ("Failed", True)])
async def test_admission_is_woken_when_a_pod_ends(observer: Observer, phase: str, wakes: bool) -> None:  # noqa: FBT001
    observer.told("MODIFIED", obj("Pod", "p", labels={"finetune.dev/job-uid": "u1"}, status={"phase": phase}))
    assert observer.admission.is_set() is wakes
