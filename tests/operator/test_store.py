from __future__ import annotations

import pytest
from finetune_operator.cluster.resources import Key
from finetune_operator.cluster.store import Store

from tests.support.edges import obj

CR = obj("FineTuneJob", "a", uid="u1")


@pytest.fixture
def store() -> Store:
    made = Store()
    made.put(CR)
    return made


def test_older_news_is_no_news(store: Store) -> None:
    assert not store.put(obj("FineTuneJob", "a", uid="u1", version=1))
    assert store.put(obj("FineTuneJob", "a", uid="u1", version=10))
    assert not store.put(obj("FineTuneJob", "a", uid="u1", version=9))


def test_children_are_found_by_owner_or_label(store: Store) -> None:
    store.put(obj("Job", "j", owner=("FineTuneJob", "u1")))
    store.put(obj("Pod", "p", labels={"finetune.dev/job-uid": "u1"}, owner=("Job", "Job-j")))
    store.put(obj("ConfigMap", "c", owner=("FineTuneJob", "u1")))
    store.put(obj("Job", "other", owner=("FineTuneJob", "u2")))
    found = store.children(CR)
    assert [[each["metadata"]["name"] for each in kind] for kind in (found.jobs, found.pods, found.config_maps)] == [
        ["j"],
        ["p"],
        ["c"],
    ]


def test_warnings_belong_to_the_owner_of_what_they_are_about(store: Store) -> None:
    store.put(obj("Job", "j", owner=("FineTuneJob", "u1")))
    store.put(obj("Deployment", "d", owner=("FineTuneJob", "u1")))
    about_job = {"kind": "Job", "namespace": "default", "name": "j"}
    about_set = {"kind": "ReplicaSet", "namespace": "default", "name": "d-6f7"}
    store.put(obj("Event", "e1", version=6, involvedObject=about_job))
    store.put(obj("Event", "e2", version=5, involvedObject=about_set))
    store.put(obj("Event", "e3", involvedObject=about_job | {"name": "somebody-else"}))
    assert [each["metadata"]["name"] for each in store.children(CR).events] == ["e2", "e1"]
    assert store.owner_of(obj("Event", "e1", involvedObject=about_job)) == Key("FineTuneJob", "default", "a")


def test_an_object_of_the_same_name_replaces_the_old_one(store: Store) -> None:
    store.put(obj("Job", "j", uid="old", owner=("FineTuneJob", "u1")))
    store.put(obj("Job", "j", uid="new", version=5, owner=("FineTuneJob", "u1")))
    assert store.find("old") is None
    assert len(store.children(CR).jobs) == 1
    assert store.remove(Key("Job", "default", "j"), "old") is None
    assert store.remove(Key("Job", "default", "j"), "new")
    assert not store.children(CR).jobs


def test_what_we_deleted_is_seen_as_ending(store: Store) -> None:
    store.put(obj("Job", "j", owner=("FineTuneJob", "u1")))
    store.deleting(Key("Job", "default", "j"), "2026-12-01T03:00:00Z")
    assert store.children(CR).jobs[0]["metadata"]["deletionTimestamp"]


def test_what_nobody_looks_at_is_not_kept(store: Store) -> None:
    fat = obj("Pod", "p", spec={"nodeName": "n1", "containers": [{"name": "x" * 1000}]}, owner=("FineTuneJob", "u1"))
    fat["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    store.put(fat)
    (kept,) = store.children(CR).pods
    assert kept["spec"] == {"nodeName": "n1"}
    assert "managedFields" not in kept["metadata"]
    assert "managedFields" in fat["metadata"]
