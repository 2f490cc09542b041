"""What a Job and its pod tell, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from finetune_operator.core.classify import classify
from finetune_trainer.contract.results import StageResult, Termination, TrainFacts

DIGEST = "d" * 64
RESULT = StageResult(stage="train", run_digest=DIGEST, train=TrainFacts(steps=1))
EMPTY = StageResult(stage="train", run_digest=DIGEST)


def ended(kind: str = "Failed", reason: str = "BackoffLimitExceeded") -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "reason": reason}
    return {"metadata": {"name": "job", "uid": "1"}, "status": {"conditions": [condition]}}


RUNNING: dict[str, Any] = {"metadata": {"name": "job", "uid": "1"}, "status": {"active": 1}}


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pod"}, "spec": {"nodeName": "spark"}, "status": status}


def terminated(exit_code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": exit_code, "reason": reason, "message": message}}
    return pod(phase="Failed" if exit_code else "Succeeded", containerStatuses=[{"name": "train", "state": state}])


def blocked(reason: str, message: str = "why") -> dict[str, Any]:
    waiting = {"waiting": {"reason": reason, "message": message}}
    return pod(phase="Pending", containerStatuses=[{"name": "train", "state": waiting}])


def said(reason: str, message: str = "It says so.") -> str:
    return Termination(reason=reason, message=message, run_digest=DIGEST).to_message()


COMPLETED = Termination(reason="Completed", message="Done.", run_digest=DIGEST, result=RESULT).to_message()
NOTHING_FOUND = Termination(reason="Completed", message="Done.", run_digest=DIGEST, result=EMPTY).to_message()
OF_ANOTHER_RUN = Termination(reason="Completed", message="Done.", run_digest="e" * 64, result=RESULT).to_message()
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
DRAINED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}

ENDING = {**pod(phase="Running"), "metadata": {"name": "pod", "deletionTimestamp": "2026-12-01T03:00:00Z"}}

CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str, str]] = {
    "no pod yet": (RUNNING, [], "Running", ""),
    "running": (RUNNING, [pod(phase="Running")], "Running", ""),
    "told to end": (RUNNING, [ENDING], "Running", "Ending"),
    "completed": (ended("Complete"), [terminated(0, message=COMPLETED)], "Succeeded", "Completed"),
    "exit 0, another run's result": (
        ended("Complete"),
        [terminated(0, message=OF_ANOTHER_RUN)],
        "Failed",
        "StageFailed",
    ),
    "exit 0, an empty result": (ended("Complete"), [terminated(0, message=NOTHING_FOUND)], "Failed", "StageFailed"),
    "exit 0, no result": (ended("Complete"), [terminated(0)], "Failed", "StageFailed"),
    "completed, and the pod's end is not known yet": (ended("Complete"), [pod(phase="Running")], "Running", ""),
    "failed, and the pod still saves its work": (ended(), [pod(phase="Running")], "Running", ""),
    "completed, and the pod is gone": (ended("Complete"), [], "Disrupted", "PodVanished"),
    "failed, and the pod is gone": (ended(), [], "Disrupted", "PodVanished"),
    "failed before a container ended": (ended(), [pod(phase="Failed")], "Disrupted", "PodVanished"),
    "evicted": (ended(), [pod(phase="Failed", reason="Evicted")], "Disrupted", "Evicted"),
    "refused after a reboot": (
        ended(),
        [pod(phase="Failed", reason="UnexpectedAdmissionError")],
        "Disrupted",
        "UnexpectedAdmissionError",
    ),
    "no CPU left on the node": (ended(), [pod(phase="Failed", reason="OutOfcpu")], "Disrupted", "OutOfcpu"),
    "drained": (
        ended(),
        [{**terminated(143), "status": {**terminated(143)["status"], "conditions": [DRAINED]}}],
        "Disrupted",
        "EvictionByEvictionAPI",
    ),
    "SIGTERM without a word": (ended(), [terminated(143)], "Disrupted", "Interrupted"),
    "checkpoint saved": (ended(), [terminated(80, message=said("Interrupted"))], "Disrupted", "Interrupted"),
    "low memory": (ended(), [terminated(81)], "Disrupted", "HostMemoryPressure"),
    "OOM kill": (ended(), [terminated(137, "OOMKilled")], "Failed", "OutOfMemory"),
    "killed": (ended(), [terminated(137)], "Failed", "OutOfMemory"),
    "bad data": (ended(), [terminated(65, message=said("DatasetInvalid"))], "Failed", "DatasetInvalid"),
    "exit code alone": (ended(), [terminated(70)], "Failed", "ModelGated"),
    "unknown exit code": (ended(), [terminated(3)], "Failed", "StageFailed"),
    "a reason that we do not know": (ended(), [terminated(1, message=said("Sunspots"))], "Failed", "StageFailed"),
    "too long": (ended(reason="DeadlineExceeded"), [terminated(143)], "Failed", "DeadlineExceeded"),
    "too long, and the pod is gone": (ended(reason="DeadlineExceeded"), [], "Failed", "DeadlineExceeded"),
    "image cannot be pulled": (RUNNING, [blocked("ImagePullBackOff")], "Waiting", "ImagePullFailed"),
    "image name is wrong": (RUNNING, [blocked("InvalidImageName")], "Waiting", "ImagePullFailed"),
    "secret is gone": (
        RUNNING,
        [blocked("CreateContainerConfigError", 'secret "hf" not found')],
        "Waiting",
        "SecretNotFound",
    ),
    "config map is gone": (
        RUNNING,
        [blocked("CreateContainerConfigError", 'configmap "rows" not found')],
        "Waiting",
        "ConfigMapNotFound",
    ),
    "no node": (RUNNING, [pod(phase="Pending", conditions=[UNSCHEDULABLE])], "Waiting", "Unschedulable"),
}


@pytest.mark.parametrize(("job", "pods", "kind", "reason"), CASES.values(), ids=CASES)
def test_classify(job: dict[str, Any], pods: list[dict[str, Any]], kind: str, reason: str) -> None:
    outcome = classify(job, pods, run_digest=DIGEST)
    assert (outcome.kind, outcome.reason) == (kind, reason)


def test_the_failed_init_container_is_the_one_that_counts() -> None:
    merge = {"name": "merge", "state": {"terminated": {"exitCode": 87, "message": said("MergeNotProven", "off by 1")}}}
    waits = {"name": "convert", "state": {"waiting": {"reason": "PodInitializing"}}}
    outcome = classify(ended(), [pod(phase="Failed", initContainerStatuses=[merge], containerStatuses=[waits])])
    assert (outcome.reason, outcome.message) == ("MergeNotProven", "off by 1")


def test_a_refused_pod_is_told_by_the_event_about_its_own_job() -> None:
    events = [
        {"reason": "FailedCreate", "involvedObject": {"name": "job"}, "message": "exceeded quota"},
        {"reason": "FailedCreate", "involvedObject": {"name": "another"}, "message": "something else"},
    ]
    outcome = classify(RUNNING, [], events)
    assert (outcome.kind, outcome.reason, outcome.message) == ("Waiting", "PodRejected", "exceeded quota")


def test_without_a_termination_message_the_log_speaks() -> None:
    outcome = classify(ended(), [terminated(1)], logs={"pod": "Traceback\nValueError: bad"})
    assert "Exit status 1." in outcome.message
    assert "ValueError: bad" in outcome.message
