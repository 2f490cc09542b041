"""How a server does: loaded, ready, or what is wrong with it, in the words of its own containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.reasons import REASONS

from finetune_operator.core import classify
from finetune_operator.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finetune_operator.core.types import Manifest


@dataclass(frozen=True)
class Health:
    """What one revision's Deployment and pods tell."""

    loaded: bool = False
    """The server answers: the model is in memory."""
    ready: bool = False
    reason: str = ""
    """Why it is neither, if something is wrong."""
    message: str = ""


def judge(deployment: Manifest | None, own_pods: Sequence[Manifest], events: Sequence[Manifest]) -> Health:
    """Judge a revision."""
    if deployment is None:
        return Health()
    ready = deployment.get("status", {}).get("readyReplicas", 0) >= 1
    loaded = ready or any(_started(pod) for pod in own_pods)
    if ready:
        return Health(loaded=True, ready=True)
    trouble = next((found for pod in own_pods if (found := _trouble(pod))), None)
    if trouble is None and not own_pods:
        trouble = classify.rejected(events, deployment["metadata"]["name"])
    return Health(loaded, ready, trouble.reason, trouble.message) if trouble else Health(loaded, ready)


def _started(pod: Manifest) -> bool:
    return any(status.get("started") for status in pod.get("status", {}).get("containerStatuses", []))


def _trouble(pod: Manifest) -> classify.Outcome | None:
    return classify.waiting(pod) or next((found for status in _statuses(pod) if (found := _crashed(status))), None)


def _crashed(status: dict[str, Any]) -> classify.Outcome | None:
    """A container that has ended before and is started again and again."""
    state = status.get("state", {})
    ended = state.get("terminated") or status.get("lastState", {}).get("terminated")
    if not ended or ended.get("exitCode") == 0 or "running" in state:
        return None
    if ended.get("reason") == "OOMKilled":
        hint = "Raise spec.memory, or lower contextLength or parallel."
        return classify.Outcome("Failed", "OutOfMemory", f"The server went over its memory limit. {hint}")
    said = classify.termination(ended)
    if said and said.reason in REASONS:
        return classify.Outcome("Failed", said.reason, f"{said.message} {REASONS[said.reason].hint}")
    last = redact(ended.get("message") or "").strip()[-classify.MESSAGE_LENGTH :]
    text = f"Container {status['name']} ended with exit status {ended.get('exitCode')}. {last}"
    return classify.Outcome("Failed", "ServerFailed", text.strip())


def _statuses(pod: Manifest) -> list[dict[str, Any]]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
