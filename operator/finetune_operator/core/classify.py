"""What a Job and its pod tell about an attempt: still going, waiting for something, succeeded, failed, disrupted.

What Kubernetes did to a pod (eviction, reboot, a pod that vanished) is a disruption: nobody's fault, and free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from finetune_trainer.contract.reasons import BY_EXIT_CODE, REASONS, Retry
from finetune_trainer.contract.results import StageResult, Termination
from pydantic import ValidationError

from finetune_operator.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from finetune_operator.core.types import Manifest

Kind = Literal["Running", "Waiting", "Succeeded", "Failed", "Disrupted"]
COMPLETED = "Completed"
SIGTERM_EXIT = 143
MESSAGE_LENGTH = 1000

_DISRUPTIONS = frozenset(
    {"Evicted", "UnexpectedAdmissionError", "NodeLost", "NodeShutdown", "NodeAffinity", "Preempting", "Shutdown"}
    | {"Terminated", "PodVanished"}
)
"""pod.status.reason of pods that Kubernetes ended or refused."""
_WAITING = {
    "ImagePullBackOff": "ImagePullFailed",
    "ErrImagePull": "ImagePullFailed",
    "InvalidImageName": "ImagePullFailed",
    "ErrImageNeverPull": "ImagePullFailed",
    "CreateContainerConfigError": "SecretNotFound",
    "CreateContainerError": "PodRejected",
    "RunContainerError": "PodRejected",
}
"""Reason for which a container waits → our reason; all of these heal by themselves."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt stands."""

    kind: Kind
    reason: str = ""
    message: str = ""
    result: StageResult | None = None
    node: str = ""


def classify(
    job: Manifest,
    job_pods: Sequence[Manifest] = (),
    events: Sequence[Manifest] = (),
    run_digest: str = "",
    logs: Mapping[str, str] | None = None,
) -> Outcome:
    """Judge one attempt by its Job, its pods, the warnings about it, and the last lines of a pod that died silently."""
    end = _end_of(job)
    pod = max(job_pods, key=_created, default=None)
    if end is None:
        return _unfinished(job, pod, events)
    if end.get("reason") == "DeadlineExceeded":  # Kubernetes deletes the pod then: it may be gone already
        return Outcome("Failed", "DeadlineExceeded", "Training took longer than activeDeadlineSeconds.")
    if pod is None:
        return Outcome("Disrupted", "PodVanished", "The pod is gone, and with it what it had to say.")
    if alive(pod):
        return Outcome("Running", message="The Job has ended; its pod is about to.")  # the watches of both are two
    if end["type"] == "Complete":
        return _completed(pod, run_digest)
    return _failed(pod, (logs or {}).get(pod["metadata"]["name"], ""))


def belongs_to(pod: Manifest, job: Manifest) -> bool:
    """Is it a pod of this Job?"""
    return any(owner.get("uid") == job["metadata"].get("uid") for owner in pod["metadata"].get("ownerReferences", []))


def alive(pod: Manifest) -> bool:
    """May a process of this pod still run and use memory?"""
    return pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}


def waiting(pod: Manifest) -> Outcome | None:
    """Why a pod that should run does not."""
    for status in _container_statuses(pod):
        blocked = status.get("state", {}).get("waiting", {})
        if ours := _WAITING.get(blocked.get("reason", "")):
            text = blocked.get("message") or blocked["reason"]
            ours = "ConfigMapNotFound" if "configmap" in text and ours == "SecretNotFound" else ours
            return Outcome("Waiting", ours, f"Container {status['name']}: {text[:MESSAGE_LENGTH]}")
    for condition in pod.get("status", {}).get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            text = condition.get("message", "no node fits")
            return Outcome("Waiting", "Unschedulable", f"No node takes the pod: {text[:MESSAGE_LENGTH]}")
    return None


def rejected(events: Sequence[Manifest], name: str) -> Outcome | None:
    """A quota, a policy or an admission webhook refuses the pods of the named Job or ReplicaSet.

    Each try has a pod name of its own; it is left out of the sentence, so that the same refusal is said once.
    """
    for event in reversed(events):
        if event.get("reason") == "FailedCreate" and event.get("involvedObject", {}).get("name", "").startswith(name):
            message = re.sub(rf'"{re.escape(name)}[-a-z0-9]*"', f'"{name}"', event.get("message", ""))
            return Outcome("Waiting", "PodRejected", message[:MESSAGE_LENGTH])
    return None


def termination(state: Mapping[str, Any]) -> Termination | None:
    """The termination message of a container of ours, if it is one."""
    try:
        return Termination.model_validate_json(state.get("message") or "")
    except ValidationError:
        return None


def _unfinished(job: Manifest, pod: Manifest | None, events: Sequence[Manifest]) -> Outcome:
    if pod is None:
        return rejected(events, job["metadata"]["name"]) or Outcome("Running")
    node = pod.get("spec", {}).get("nodeName", "")
    if alive(pod) and "deletionTimestamp" in pod["metadata"]:
        text = f"The pod is told to end; if it does not, look at node {node}: it may have stopped answering."
        return Outcome("Running", "Ending", text, node=node)
    return waiting(pod) or Outcome("Running", node=node)


def _completed(pod: Manifest, run_digest: str) -> Outcome:
    """Exit 0 counts only with a complete result of the same run."""
    states = _terminated(pod)
    said = termination(states[-1]) if states else None
    if said and said.reason == COMPLETED and said.run_digest == run_digest and said.result and _complete(said.result):
        return Outcome("Succeeded", COMPLETED, said.message, said.result)
    return Outcome("Failed", "StageFailed", "The container exited with 0, but without a complete result of this run.")


def _complete(result: StageResult) -> bool:
    """Does the result hold what its stage is there to find?"""
    found = {"prepare": result.model, "train": result.train, "export": result.export, "evaluate": result.evaluate}
    return found[result.stage] is not None


def _failed(pod: Manifest, log: str) -> Outcome:
    if disruption := _disruption(pod):
        return disruption
    failed = next((state for state in _terminated(pod) if state.get("exitCode") != 0), None)
    if failed is None:
        return Outcome("Disrupted", "PodVanished", "The pod was removed before it had ended.")
    said = termination(failed)
    reason = _reason(failed, said)
    if failed.get("exitCode") == SIGTERM_EXIT and said is None:
        return Outcome("Disrupted", "Interrupted", "The container was told to end.")
    message = said.message if said else _last_words(failed, log)
    kind: Kind = "Disrupted" if REASONS[reason].retry is Retry.FREE else "Failed"
    return Outcome(kind, reason, message)


def _disruption(pod: Manifest) -> Outcome | None:
    status = pod.get("status", {})
    reason = status.get("reason", "")
    if reason in _DISRUPTIONS or reason.startswith("OutOf"):
        return Outcome("Disrupted", reason, status.get("message", "")[:MESSAGE_LENGTH])
    for condition in status.get("conditions", []):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            text = condition.get("message", "")[:MESSAGE_LENGTH]
            return Outcome("Disrupted", condition.get("reason") or "Disrupted", text)
    return None


def _reason(state: Mapping[str, Any], said: Termination | None) -> str:
    if state.get("reason") == "OOMKilled":
        return "OutOfMemory"
    if said and said.reason in REASONS:
        return said.reason
    known = BY_EXIT_CODE.get(state.get("exitCode", 1))
    return known.name if known else "StageFailed"


def _last_words(state: Mapping[str, Any], log: str) -> str:
    if state.get("reason") == "OOMKilled":
        return "The kernel ended the process: it went over the pod's memory limit."
    text = redact(state.get("message") or log).strip()
    last = f" Last lines: {text[-MESSAGE_LENGTH:]}" if text else ""
    return f"Exit status {state.get('exitCode')}.{last}"


def _end_of(job: Manifest) -> dict[str, Any] | None:
    ends = {"Complete", "Failed"}
    conditions: list[dict[str, Any]] = job.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] in ends and item["status"] == "True"), None)


def finished(job: Manifest) -> bool:
    """Has the Job ended, one way or the other?"""
    return _end_of(job) is not None


def _created(pod: Manifest) -> str:
    created: str = pod["metadata"].get("creationTimestamp", "")
    return created


def _container_statuses(pod: Manifest) -> list[dict[str, Any]]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _terminated(pod: Manifest) -> list[dict[str, Any]]:
    """States of the containers that have ended, init containers first."""
    states = [status.get("state", {}) for status in _container_statuses(pod)]
    return [state["terminated"] for state in states if "terminated" in state]
