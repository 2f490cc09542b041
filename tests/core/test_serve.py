"""spec.serve: made once, taken over by a later job, never taken from somebody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.core.simulation import Cluster, job

SERVE = {"contextLength": 4096}


def finished(**spec: Any) -> Cluster:
    cluster = Cluster(job(**spec)).until("evaluate")
    cluster.succeed()
    return cluster


def test_the_service_of_a_job_that_succeeded() -> None:
    cluster = finished(serve=SERVE, runtimeClassName="fast", storage={"modelsClaim": "finetune-models"})
    cluster.settle()
    (made,) = cluster.applied
    assert made["metadata"] == {
        "name": "invoices",
        "namespace": "team",
        "labels": {"app.kubernetes.io/managed-by": "finetune-operator", "finetune.dev/managed-by-job": "true"},
    }
    assert made["spec"] == {
        "model": {"fromFineTuneJob": "invoices"},
        "contextLength": 4096,
        "runtimeClassName": "fast",
        "storageClaim": "finetune-models",
    }
    assert cluster.status["service"] == "invoices"
    assert cluster.events[-1].reason == "ServiceCreated"


def test_it_follows_the_spec() -> None:
    cluster = finished(serve=SERVE)
    cluster.settle()
    cluster.facts = replace(cluster.facts, service=cluster.applied[0])
    assert cluster.settle().empty
    cluster.edit(serve={"contextLength": 8192})
    assert cluster.plan().apply[0]["spec"]["contextLength"] == 8192


def test_a_deleted_service_stays_deleted() -> None:
    cluster = finished(serve=SERVE)
    cluster.settle()
    assert not cluster.plan().apply


def test_a_service_of_somebody_else_is_left_alone() -> None:
    cluster = finished(serve=SERVE)
    foreign = {"metadata": {"name": "invoices"}, "spec": {"model": {"fromFineTuneJob": "x"}}}
    cluster.facts = replace(cluster.facts, service=foreign)
    cluster.settle()
    assert not cluster.applied
    succeeded = cluster.condition("Succeeded")
    assert (succeeded["status"], succeeded["reason"]) == ("True", "ServeNameTaken")
    assert "service" not in cluster.status


def test_a_later_job_takes_the_service_over_and_keeps_it() -> None:
    first, second = finished(serve={"name": "chat"}), Cluster(job("newer", serve={"name": "chat"})).until("evaluate")
    first.settle()
    second.facts = replace(second.facts, service=first.applied[0])
    second.succeed()
    second.settle()
    assert second.applied[0]["spec"]["model"] == {"fromFineTuneJob": "newer"}
    first.facts = replace(first.facts, service=second.applied[0])
    assert first.settle().empty
