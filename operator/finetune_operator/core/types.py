"""What the pure core takes and gives. No kopf, no client, no clock, no files in this package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from finetune_trainer.contract.progress import TrainerStatus

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""


@dataclass(frozen=True, order=True)
class ObjectRef:
    """The address of an object."""

    api_version: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Settings:
    """What the chart's values say; the same for every object."""

    operator_namespace: str
    trainer_image: str
    server_image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    default_platform: str = "auto"
    hub_endpoint: str | None = None
    allow_private_addresses: bool = False
    progress_url: str = ""
    """https://<service>.<namespace>.svc:<port>/v1/progress"""
    progress_ca: str = ""
    """PEM of the CA that signs the progress endpoint's leaf."""
    memory_floor_bytes: int = 12 * 2**30
    """Never planned away on unified memory; other platforms keep 1 GiB."""
    storage_class: str | None = None
    cache_size: str = "200Gi"
    models_size: str = "200Gi"
    gpu_resource: str = "nvidia.com/gpu"
    runtime_class: str = "nvidia"


@dataclass(frozen=True)
class NodeFacts:
    """One node, as admission sees it."""

    name: str
    allocatable_bytes: int
    gpus: int
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    unschedulable: bool = False
    taints: tuple[Mapping[str, str], ...] = ()
    requested_bytes: int = 0
    """Memory requests of pods that are not ours."""
    requested_gpus: int = 0
    """GPUs asked for by pods that are not ours."""


@dataclass(frozen=True)
class Facts:
    """What the operator knows besides the object and its children."""

    settings: Settings
    nodes: tuple[NodeFacts, ...] = ()
    secret_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Secrets of the namespace that the object names and that exist → their keys."""
    config_map_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    claims: Mapping[str, Manifest] = field(default_factory=dict)
    """PersistentVolumeClaims of the namespace that the object names and that exist."""
    progress: TrainerStatus | None = None
    """The last report of the running attempt."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """Pod name → last 30 lines, redacted, for pods that died without a termination message."""
    job: Manifest | None = None
    """The FineTuneJob that an InferenceService names, if it exists."""
    service: Manifest | None = None
    """The InferenceService that spec.serve names, if it exists."""


@dataclass(frozen=True)
class Children:
    """What exists and is owned by the object (or named by it), as the watch last saw it."""

    jobs: tuple[Manifest, ...] = ()
    pods: tuple[Manifest, ...] = ()
    deployments: tuple[Manifest, ...] = ()
    services: tuple[Manifest, ...] = ()
    config_maps: tuple[Manifest, ...] = ()
    events: tuple[Manifest, ...] = ()
    """Warning events of our Jobs and ReplicaSets (FailedCreate), newest last."""


@dataclass(frozen=True)
class EventRecord:
    """An Event on the object itself, sent after the status was written."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


@dataclass(frozen=True)
class Plan:
    """What to do now. Carrying it out and planning again gives an empty plan."""

    create: tuple[Manifest, ...] = ()
    """Create-only: AlreadyExists with our owner UID is success."""
    apply: tuple[Manifest, ...] = ()
    """Server-side apply, field manager finetune-operator."""
    delete: tuple[ObjectRef, ...] = ()
    status: Manifest | None = None
    """The whole new status, or None if nothing changed."""
    events: tuple[EventRecord, ...] = ()
    requeue_after: float | None = None
    """Seconds until it is worth planning again without a change; None: only on a change."""

    @property
    def empty(self) -> bool:
        """Nothing to do."""
        return not (self.create or self.apply or self.delete or self.status is not None)


@dataclass(frozen=True)
class Holder:
    """An object that asks for memory and GPUs, or has them."""

    kind: str
    namespace: str
    name: str
    uid: str
    priority: int
    since: datetime
    """When it began to wait: first come, first served within a priority."""
    host_bytes: int
    device_bytes: int
    gpus: int
    platform: str
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node: str | None = None
    """Set when it holds; None when it waits."""


@dataclass(frozen=True)
class Decision:
    """What admission says to one waiting holder."""

    holder: Holder
    node: str | None
    """Where it may run; None: it waits."""
    position: int = 0
    message: str = ""
    """The sum, in words: needs, budget, holders by name, what would let it run."""
