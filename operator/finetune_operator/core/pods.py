"""Parts of pods that every pod of ours shares: all of them pass the restricted Pod Security Standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_operator.api.v1alpha1.common import manifest
from finetune_operator.core import platforms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from finetune_operator.api.v1alpha1.common import Placement
    from finetune_operator.core.types import NodeFacts, Settings

UID = 10001
"""One user in all images: what one stage writes, the next one may read."""

CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
COMMON_ENV = {"HOME": "/tmp", "TMPDIR": "/tmp", "HF_HOME": "/cache/hf", "PYTHONUNBUFFERED": "1"}  # noqa: S108


def base_spec(placement: Placement, settings: Settings, *, gpu: bool) -> dict[str, Any]:
    """Everything of a pod's spec but containers, volumes and affinity."""
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "nodeSelector": placement.node_selector,
        "tolerations": [manifest(toleration) for toleration in placement.tolerations or ()],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "runtimeClassName": (placement.runtime_class_name or settings.runtime_class) if gpu else None,
    }
    return {key: value for key, value in spec.items() if value or value is False}


def resources(memory: str, settings: Settings, *, gpu: bool) -> dict[str, Any]:
    """Memory as request and limit; a little CPU as a request, so that a stage uses what is free."""
    limits = {"memory": memory} | ({settings.gpu_resource: "1"} if gpu else {})
    return {"requests": {"cpu": "250m", "memory": memory}, "limits": limits}


def env(values: dict[str, str]) -> list[dict[str, Any]]:
    """Plain variables, sorted: the same values give the same manifest."""
    return [{"name": name, "value": values[name]} for name in sorted(values)]


def secret_env(name: str, secret: str, key: str) -> dict[str, Any]:
    """A variable out of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def claim_volume(name: str, claim: str) -> dict[str, Any]:
    """A volume on a claim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    """Where a container sees a volume."""
    return {"name": name, "mountPath": path} | ({"readOnly": True} if read_only else {})


def on_nodes(node_names: Iterable[str]) -> dict[str, Any]:
    """Affinity to nodes by name: the scheduler still checks that the pod fits."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in sorted(node_names)
    ]
    if not terms:
        return {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def gpu_nodes(placement: Placement, nodes: Iterable[NodeFacts]) -> list[str]:
    """Nodes where the GPU stages of a run may go: the claims must be bound there by whichever pod comes first."""
    return [node.name for node in nodes if node.gpus and platforms.selects(placement.node_selector, node)]
