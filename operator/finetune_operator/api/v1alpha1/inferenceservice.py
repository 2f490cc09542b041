"""InferenceService: a tuned model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from finetune_operator.api.v1alpha1.common import (
    CONDITIONS,
    ApiModel,
    Condition,
    Hold,
    ObjectMeta,
    Placement,
    SecretKeyRef,
    ShortText,
)

Phase = Literal["Pending", "WaitingForModel", "Queued", "Loading", "Ready", "Suspended", "Failed"]


class ServedModel(ApiModel):
    """What is served."""

    from_fine_tune_job: str = Field(
        min_length=1,
        max_length=63,
        description="Name of a FineTuneJob in the same namespace; the service waits for it.",
    )


class Auth(ApiModel):
    """Who may ask."""

    type: Literal["ApiKey", "None"] | None = Field(
        default=None, description="ApiKey, or None: everybody who reaches the Service may ask. ApiKey if not said."
    )
    api_key_secret_ref: SecretKeyRef | None = Field(
        default=None,
        description="Secret with the key; <name>-api-key, made with a random key, if not said. The Secret is kept when the service is deleted.",
    )


class ServicePort(ApiModel):
    """The Service in front of the server."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = Field(
        default=None, description="Type of the Service; ClusterIP if not said."
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="Port of the Service; 8080 if not said.")


class ServingSpec(Placement):
    """How to serve."""

    context_length: int | None = Field(
        default=None,
        ge=256,
        le=1048576,
        description="Longest conversation in tokens, for each request; 16384 or the model's own limit if not said.",
    )
    parallel: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Requests at the same time, each with the whole contextLength; 1 if not said.",
    )
    kv_cache_type: Literal["f16", "bf16", "q8_0", "q4_0"] | None = Field(
        default=None, description="Type of the key-value cache; f16 if not said."
    )
    reasoning: Literal["on", "off", "auto"] | None = Field(
        default=None, description="May the model think before it answers? off if not said."
    )
    extra_args: list[ShortText] | None = Field(
        default=None, max_length=64, description="Arguments for llama-server that have no field here."
    )
    auth: Auth | None = Field(default=None, description="Who may ask; an API key is made if not said.")
    service: ServicePort | None = Field(default=None, description="The Service in front of the server.")


class InferenceServiceSpec(ServingSpec):
    """What to serve, and how."""

    model: ServedModel = Field(description="What is served.")
    storage_claim: str | None = Field(
        default=None, max_length=63, description="Claim with the models; finetune-models if not said."
    )
    suspend: bool | None = Field(default=None, description="Stop the server and give its memory back.")


class ResolvedModel(ApiModel):
    """The version that is served: it stays when the job is deleted."""

    job: str = Field(max_length=63)
    version: str = Field(max_length=128)
    path: str = Field(max_length=512)
    digest: str = Field(max_length=64)
    bytes: int = 0
    context_length: int = 0
    layers: int = 0
    key_value_heads: int = 0
    head_dim: int = 0


class InferenceServiceStatus(ApiModel):
    """What the operator saw. phase is computed from the conditions and never read back."""

    observed_generation: int | None = None
    phase: Phase | None = None
    conditions: list[Condition] = Field(default_factory=list, max_length=16, json_schema_extra=CONDITIONS)
    url: str | None = Field(default=None, max_length=512, description="Address inside the cluster, with /v1.")
    api_key_secret: str | None = Field(default=None, max_length=253)
    model: ResolvedModel | None = None
    context_length: int | None = None
    slots: int | None = None
    acceleration: Literal["cuda", "cpu"] | None = None
    hold: Hold | None = None


class InferenceService(ApiModel):
    """Serves a tuned model behind an OpenAI-compatible endpoint."""

    metadata: ObjectMeta
    spec: InferenceServiceSpec
    status: InferenceServiceStatus = InferenceServiceStatus()
