"""The way of a FineTuneJob, from apply to a published version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.simulation import FACTS, NODE, Cluster, job


def test_happy_way() -> None:
    cluster = Cluster(job())
    seen = []
    cluster.settle()
    for _ in range(4):
        seen.append((cluster.phase, cluster.stage))
        cluster.succeed()
        cluster.settle()
        if cluster.phase == "Queued":
            seen.append(("Queued", ""))
            cluster.admit()
            cluster.settle()
    assert seen == [
        ("Preparing", "prepare"),
        ("Queued", ""),
        ("Training", "train"),
        ("Exporting", "export"),
        ("Evaluating", "evaluate"),
    ]
    assert cluster.phase == "Succeeded"
    assert "hold" not in cluster.status
    assert cluster.status["model"]["path"] == "/models/versions/0123-4567/model.gguf"


def test_events_tell_the_story() -> None:
    cluster = Cluster(job()).until("evaluate")
    cluster.succeed()
    cluster.settle()
    assert [(event.reason, event.message) for event in cluster.events] == [
        ("Preparing", "Attempt 1 of prepare."),
        ("Prepared", "300 rows read, 290 kept, 30 held out; 4000 tokens to learn from."),
        ("TrainingStarted", "Attempt 1 of train on node node1."),
        ("Trained", "102 steps, loss 2.500 → 0.412."),
        ("Exporting", "Attempt 1 of export on node node1."),
        ("Exported", "q4_k_m, 0.1 GiB."),
        ("Evaluating", "Attempt 1 of evaluate on node node1."),
        ("Evaluated", "Exact match 0% (base) → 80% (tuned)."),
        ("Published", "Version 0123-4567 (q4_k_m)."),
        ("Succeeded", "evaluate is done."),
    ]


def test_few_writes_before_the_first_job() -> None:
    plan = Cluster(job()).plan()
    kinds = [manifest["kind"] for manifest in plan.create]
    assert kinds == ["PersistentVolumeClaim", "PersistentVolumeClaim", "ConfigMap", "Job", "NetworkPolicy"]


def test_a_namespace_with_claims_needs_two_writes_to_the_first_job() -> None:
    claims: dict[str, Any] = {"finetune-cache": {}, "finetune-models": {}}
    plan = Cluster(job(), replace(FACTS, claims=claims)).plan()
    assert [manifest["kind"] for manifest in plan.create] == ["ConfigMap", "Job", "NetworkPolicy"]


def test_deleted_object_plans_nothing() -> None:
    cluster = Cluster(job()).until("train")
    cluster.object["metadata"]["deletionTimestamp"] = cluster.stamp()
    cluster.succeed()
    assert cluster.plan().empty


def test_no_train_job_without_a_hold() -> None:
    cluster = Cluster(job()).until("prepare")
    cluster.succeed()
    cluster.settle()
    assert cluster.phase == "Queued"
    assert [item["metadata"]["labels"]["finetune.dev/stage"] for item in cluster.kind("Job")] == ["prepare"]


@pytest.mark.parametrize("stage", ["prepare", "train", "export", "evaluate"])
def test_bad_data_fails_at_once(stage: str) -> None:
    cluster = Cluster(job()).until(stage)
    cluster.fail("DatasetInvalid", 65, "train.jsonl:7: messages[1].role is “asistant”.")
    cluster.settle()
    assert cluster.phase == "Failed"
    failed = cluster.condition("Failed")
    assert failed["reason"] == "DatasetInvalid"
    assert "train.jsonl:7" in failed["message"]
    assert "finetune validate" in failed["message"]
    assert "hold" not in cluster.status


def test_an_unreachable_hub_is_tried_for_ever() -> None:
    cluster = Cluster(job()).until("prepare")
    pauses = []
    for _ in range(12):
        cluster.fail("HubUnreachable", 82, "hub.example: connection refused.")
        plan = cluster.settle()
        assert cluster.phase == "Preparing"
        assert cluster.condition("Prepared")["reason"] == "HubUnreachable"
        pauses.append(plan.requeue_after)
        cluster.wait(plan.requeue_after or 0)
        cluster.settle()
    assert pauses == [30, 60, 120, 240] + [300] * 8
    cluster.succeed()
    cluster.settle()
    assert cluster.phase == "Queued"
    assert len(cluster.status["stages"]) <= 6


def test_failures_use_up_the_budget() -> None:
    cluster = Cluster(job(retries=2)).until("train")
    for _ in range(2):
        cluster.fail("StageFailed", 1)
        plan = cluster.settle()
        assert cluster.phase == "Training"
        assert plan.requeue_after
        cluster.wait(plan.requeue_after)
        cluster.settle()
    cluster.fail("StageFailed", 1)
    cluster.settle()
    assert cluster.phase == "Failed"
    assert cluster.status["stages"][-1]["attempt"] == 3


def test_more_retries_revive_a_failed_job() -> None:
    cluster = Cluster(job(retries=0)).until("train")
    cluster.fail("StageFailed", 1)
    cluster.settle()
    assert cluster.phase == "Failed"
    cluster.edit(retries=1)
    cluster.wait(30)
    cluster.settle()
    assert cluster.phase == "Queued"


DISRUPTIONS: dict[str, Any] = {
    "evicted": lambda cluster: cluster.end(1, reason="Evicted"),
    "refused after a reboot": lambda cluster: cluster.end(1, reason="UnexpectedAdmissionError"),
    "pod vanished": lambda cluster: cluster.lose_pod(),
    "drained": lambda cluster: cluster.end(
        137, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    ),
    "interrupted, checkpoint saved": lambda cluster: cluster.fail("Interrupted", 80),
    "low memory": lambda cluster: cluster.fail("HostMemoryPressure", 81),
}


@pytest.mark.parametrize("happening", DISRUPTIONS)
def test_disruptions_are_free_and_go_back_in_line(happening: str) -> None:
    cluster = Cluster(job(retries=0)).until("train")
    for _ in range(3):
        cluster.wait(60)
        DISRUPTIONS[happening](cluster)
        cluster.settle()
        assert cluster.phase == "Queued"
        assert "hold" not in cluster.status
        cluster.wait(30)
        cluster.admit()
        cluster.settle()
        assert cluster.phase == "Training"


def test_a_node_that_refuses_every_pod_makes_no_storm() -> None:
    cluster = Cluster(job()).until("prepare")
    pauses = []
    for _ in range(5):
        cluster.end(1, reason="OutOfcpu")
        plan = cluster.settle()
        pauses.append(plan.requeue_after)
        cluster.wait(plan.requeue_after or 0)
        cluster.settle()
    assert pauses == [None, None, 30, 60, 120]


def test_edit_while_preparing_ends_the_old_attempt_first() -> None:
    cluster = Cluster(job()).until("prepare")
    pod = cluster.pod()
    cluster.edit(training={"batchSize": 1})
    cluster.carry_out(cluster.plan())
    cluster.objects["Pod", pod["metadata"]["name"]] = pod
    cluster.settle()
    assert not cluster.kind("Job")
    cluster.objects.pop(("Pod", pod["metadata"]["name"]))
    cluster.settle()
    assert cluster.stage == "prepare"


def test_an_image_that_cannot_be_pulled_is_said_once() -> None:
    cluster = Cluster(job()).until("prepare")
    for reason, message in (
        ("ErrImagePull", "not found"),
        ("ImagePullBackOff", "Back-off"),
        ("ErrImagePull", "not found"),
    ):
        waiting = {"waiting": {"reason": reason, "message": message}}
        cluster.pod()["status"] = {"phase": "Pending", "containerStatuses": [{"name": "prepare", "state": waiting}]}
        cluster.settle()
    condition = cluster.condition("Prepared")
    assert (condition["reason"], condition["message"]) == ("ImagePullFailed", "Container prepare: not found")
    assert [event.reason for event in cluster.events].count("ImagePullFailed") == 1


def test_a_run_whose_node_has_left_goes_back_in_line() -> None:
    cluster = Cluster(job()).until("train")
    cluster.facts = replace(cluster.facts, nodes=(replace(NODE, name="node2"),))
    cluster.lose_pod()
    cluster.settle()
    assert cluster.phase == "Queued"
    cluster.admit()
    cluster.settle()
    assert cluster.status["hold"]["node"] == "node2"


def test_a_deleted_job_is_made_again() -> None:
    cluster = Cluster(job()).until("train")
    name = cluster.running["metadata"]["name"]
    cluster.vanish(name)
    cluster.settle()
    assert cluster.running["metadata"]["name"] == name


def test_out_of_memory_is_not_repeated() -> None:
    cluster = Cluster(job()).until("train")
    cluster.end(137, terminated="OOMKilled")
    cluster.settle()
    assert cluster.condition("Failed")["reason"] == "OutOfMemory"


def test_exit_0_without_a_result_is_a_failure() -> None:
    cluster = Cluster(job()).until("train")
    cluster.end(0, "done!")
    cluster.settle()
    assert cluster.phase == "Training"
    assert cluster.condition("Trained")["reason"] == "StageFailed"


def test_exit_0_of_another_run_is_a_failure() -> None:
    cluster = Cluster(job()).until("train")
    digest = cluster.object["status"]["runDigest"]
    cluster.object["status"]["runDigest"] = "f" * 64
    cluster.succeed()
    cluster.object["status"]["runDigest"] = digest
    cluster.settle()
    assert cluster.condition("Trained")["status"] == "False"


def test_retry_token_retries_from_the_last_good_stage() -> None:
    cluster = Cluster(job(), replace(FACTS)).until("export")
    cluster.fail("DiskFull", 85)
    cluster.settle()
    assert cluster.phase == "Failed"
    cluster.edit(retryToken="again")
    cluster.settle()
    assert cluster.phase == "Queued"
    cluster.admit()
    cluster.settle()
    assert cluster.stage == "export"
    assert cluster.phase == "Exporting"


def test_edit_after_a_failure_starts_over() -> None:
    cluster = Cluster(job()).until("train")
    cluster.fail("MemoryPlanExceeded", 75)
    cluster.settle()
    before = cluster.status["runDigest"]
    cluster.edit(training={"batchSize": 1})
    cluster.settle()
    assert cluster.phase == "Preparing"
    assert cluster.status["runDigest"] != before
    assert len(cluster.status["stages"]) == 1
    assert [item["metadata"]["labels"]["finetune.dev/stage"] for item in cluster.kind("Job")] == ["prepare"]


def test_edit_of_a_field_outside_the_run_starts_over_with_the_same_run() -> None:
    cluster = Cluster(job()).until("train")
    cluster.end(137, terminated="OOMKilled")
    cluster.settle()
    before = cluster.status["runDigest"]
    cluster.edit(memory="24Gi")
    cluster.settle()
    assert cluster.phase == "Preparing"
    assert cluster.status["runDigest"] == before


def test_edit_while_training_changes_nothing() -> None:
    cluster = Cluster(job()).until("train")
    before = cluster.status["runDigest"]
    cluster.edit(training={"batchSize": 1})
    cluster.settle()
    assert cluster.status["runDigest"] == before
    assert cluster.stage == "train"


def test_an_upgrade_of_the_operator_changes_nothing_about_a_run() -> None:
    cluster = Cluster(job()).until("train")
    image = cluster.running["spec"]["template"]["spec"]["containers"][0]["image"]
    settings = replace(FACTS.settings, trainer_image="registry.example/trainer:2")
    cluster.facts = replace(cluster.facts, settings=settings)
    assert cluster.settle().empty
    cluster.fail("Stalled", 90)
    cluster.settle()
    cluster.wait(30)
    cluster.settle()
    assert cluster.running["spec"]["template"]["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize("stage", ["prepare", "train", "export", "evaluate"])
def test_suspend_and_resume(stage: str) -> None:
    cluster = Cluster(job()).until(stage)
    cluster.edit(suspend=True)
    cluster.settle()
    assert cluster.phase == "Suspended"
    assert "hold" not in cluster.status
    assert not [item for item in cluster.kind("Job") if "status" not in item]
    cluster.edit(suspend=False)
    cluster.settle()
    if stage != "prepare":
        assert cluster.phase == "Queued"
        cluster.admit()
        cluster.settle()
    assert cluster.stage == stage
    assert cluster.status["stages"][-1]["attempt"] == 2


def test_the_hold_stays_until_the_pod_is_gone() -> None:
    cluster = Cluster(job()).until("train")
    cluster.edit(suspend=True)
    pod = cluster.pod()
    cluster.carry_out(cluster.plan())
    cluster.objects["Pod", pod["metadata"]["name"]] = pod
    cluster.settle()
    assert cluster.condition("Suspended")["reason"] == "Suspending"
    assert cluster.status["hold"]
    cluster.objects.pop(("Pod", pod["metadata"]["name"]))
    cluster.settle()
    assert cluster.phase == "Suspended"
    assert "hold" not in cluster.status


def test_finished_jobs_go_after_their_time() -> None:
    cluster = Cluster(job(ttlSecondsAfterFinished=100)).until("evaluate")
    cluster.succeed()
    plan = cluster.settle()
    assert plan.requeue_after == 100
    assert cluster.kind("Job")
    cluster.wait(100)
    cluster.settle()
    assert not cluster.kind("Job")
    assert cluster.phase == "Succeeded"


def test_a_job_is_only_deleted_once_its_end_is_in_the_status() -> None:
    cluster = Cluster(job()).until("train")
    cluster.fail("Stalled", 90)
    cluster.settle()
    cluster.wait(30)
    plan = cluster.plan()
    assert len(plan.create) >= 1
    cluster.carry_out(plan)
    cluster.settle()
    names = [item["metadata"]["name"].rpartition("-")[0] for item in cluster.kind("Job")]
    assert names == ["invoices-prepare-1", "invoices-train-2"]


def test_training_deadline_counts_all_attempts() -> None:
    cluster = Cluster(job(activeDeadlineSeconds=1000)).until("train")
    assert cluster.running["spec"]["activeDeadlineSeconds"] == 1000
    cluster.wait(400)
    cluster.fail("Stalled", 90)
    cluster.settle()
    cluster.wait(30)
    cluster.settle()
    assert cluster.running["spec"]["activeDeadlineSeconds"] == 600


def test_invalid_spec_is_said() -> None:
    cluster = Cluster(job(training={"epochs": "many"}))
    cluster.settle()
    assert cluster.phase == "Failed"
    assert "spec.training.epochs" in cluster.condition("Failed")["message"]
    assert cluster.events[-1].reason == "Failed"


def test_never_reuse_makes_a_run_of_its_own() -> None:
    one, two = Cluster(job("a")), Cluster(job("b"))
    never = Cluster(job("c", reuse="Never"))
    for cluster in (one, two, never):
        cluster.settle()
    assert one.status["runDigest"] == two.status["runDigest"] != never.status["runDigest"]
