"""What both kinds share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

GROUP = "finetune.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

ShortText = Annotated[str, Field(max_length=253)]
"""Bounded, because the API server weighs every rule by the longest text that it could meet."""

Platform = Literal["auto", "dgx-spark", "nvidia-gpu", "cpu"]


class ApiModel(BaseModel):
    """Frozen, camelCase outside. A field that we do not know was pruned by the API server already."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", use_attribute_docstrings=True
    )


class SecretKeyRef(ApiModel):
    """A key of a Secret in the same namespace."""

    name: str = Field(min_length=1, max_length=253, description="Name of the Secret.")
    key: str = Field(
        default="token", min_length=1, max_length=253, description="Key within the Secret; token if not said."
    )


class Toleration(ApiModel):
    """A toleration, as in a pod."""

    key: str | None = Field(default=None, max_length=316, description="Key of the taint; empty matches all keys.")
    operator: Literal["Exists", "Equal"] | None = Field(default=None, description="Exists or Equal; Equal if not said.")
    value: str | None = Field(default=None, max_length=63, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint; empty matches all."
    )
    toleration_seconds: int | None = Field(
        default=None, ge=0, description="Seconds to stay on a node with a NoExecute taint."
    )


class Placement(ApiModel):
    """Where pods run and what they may use."""

    platform: Platform | None = Field(
        default=None,
        description="Kind of machine: dgx-spark (GB10: one memory for CPU and GPU), nvidia-gpu (memory of its own), cpu, or auto (read from the node). auto if not said.",
    )
    memory: str | None = Field(
        default=None,
        max_length=32,
        pattern=r"^[1-9][0-9]*(Mi|Gi|Ti)$",
        description="Host memory to plan with in place of the computed amount, for example 24Gi.",
    )
    node_selector: dict[str, ShortText] | None = Field(
        default=None, max_length=32, description="Labels that the node must have."
    )
    tolerations: list[Toleration] | None = Field(
        default=None, max_length=32, description="Taints of nodes that the pods accept."
    )
    runtime_class_name: str | None = Field(
        default=None, max_length=253, description="RuntimeClass of pods that use a GPU; nvidia if not said."
    )


class Condition(ApiModel):
    """metav1.Condition."""

    type: str = Field(max_length=316)
    status: Literal["True", "False", "Unknown"]
    observed_generation: int | None = None
    last_transition_time: str
    reason: str = Field(min_length=1, max_length=1024)
    message: str = Field(default="", max_length=4096)


class Hold(ApiModel):
    """Memory and GPUs that admission gave to an object; it ends when its pods are gone."""

    node: str = Field(max_length=253)
    host_bytes: int = 0
    device_bytes: int = 0
    gpus: int = 0
    since: str


class ObjectMeta(ApiModel):
    """The part of metadata that decisions need."""

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


CONDITIONS: JsonDict = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
"""Conditions merge by type, whoever applies them."""


def manifest(model: BaseModel) -> dict[str, Any]:
    """The object as Kubernetes writes it: camelCase, nothing that is unset."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
