"""What the API server refuses is said by the condition that waits for it."""

from __future__ import annotations

from finetune_operator.core import refusal

from tests.core.simulation import START, Cluster, job


def test_the_stage_that_cannot_begin_says_why_and_goes_on_later() -> None:
    cluster = Cluster(job())
    plan = cluster.plan()
    assert plan.status
    patch = refusal.status_patch(cluster.object, plan.status, "Job x cannot be created: exceeded quota", START)
    assert patch
    assert set(patch) == {"conditions", "phase"}, "no attempt, no hold: nothing has begun"
    cluster.object["status"] = patch
    prepared = cluster.condition("Prepared")
    assert (prepared["status"], prepared["reason"]) == ("False", "CreateFailed")
    again = cluster.plan()
    assert again.status
    assert refusal.status_patch(cluster.object, again.status, prepared["message"], START) is None
    cluster.settle()
    assert cluster.condition("Prepared")["reason"] == "Running"
    assert [event.reason for event in cluster.events] == ["Preparing"]


def test_a_later_stage_names_itself() -> None:
    cluster = Cluster(job()).until("train")
    cluster.succeed()
    plan = cluster.plan()
    assert plan.status
    patch = refusal.status_patch(cluster.object, plan.status, "no", START)
    assert patch
    assert patch["phase"] == "Exporting"
    assert [each["type"] for each in patch["conditions"] if each["reason"] == "CreateFailed"] == ["Exported"]
