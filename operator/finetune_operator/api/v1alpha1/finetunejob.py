"""FineTuneJob: tune a model with a dataset, and prove, evaluate and (if asked) serve the result.

Descriptions are what ``kubectl explain`` shows. Defaults are applied in code, not in the schema, so that an
object in Git and the object in the cluster stay equal; each description says its default.
"""

from __future__ import annotations

from typing import Literal

from finetune_trainer.contract.results import (
    DatasetFacts,
    EvaluateFacts,
    ExportFacts,
    ModelFacts,
    TrainFacts,
)
from finetune_trainer.contract.runspec import DatasetFormat, Quantization, Scheduler
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
from finetune_operator.api.v1alpha1.inferenceservice import ServingSpec

Phase = Literal[
    "Pending", "Preparing", "Queued", "Training", "Exporting", "Evaluating", "Succeeded", "Failed", "Suspended"
]


class ModelSource(ApiModel):
    """The base model."""

    source: str = Field(
        min_length=6,
        max_length=512,
        pattern=r"^(hf://[^/@]+/[^/@]+(@[^/@]+)?|pvc://[^/]+(/.*)?)$",
        description="hf://owner/name, hf://owner/name@revision, or pvc://claim/path.",
    )
    token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="Token for a gated or private repository. Only prepare sees it."
    )
    chat_template: str | None = Field(
        default=None, max_length=32768, description="Jinja chat template in place of the repository's."
    )
    trust_remote_code: bool | None = Field(
        default=None, description="Run Python code out of the model's repository. false if not said."
    )


class Validation(ApiModel):
    """Which rows are held out: one of the fields."""

    fraction: float | None = Field(
        default=None, gt=0, lt=1, description="Part of the dataset, drawn with training.seed. 0.1 if nothing is said."
    )
    rows: int | None = Field(
        default=None, ge=1, le=100000, description="Number of rows of the dataset, drawn with training.seed."
    )
    source: str | None = Field(
        default=None, max_length=1024, description="A dataset of its own, in any form that dataset.source takes."
    )


class Dataset(ApiModel):
    """What to learn from."""

    source: str = Field(
        min_length=8,
        max_length=1024,
        pattern=r"^(hf://datasets/[^/@]+/[^/@]+(@[^/@]+)?/.+|https://.+|pvc://[^/]+/.+|configMap://[^/]+/.+)$",
        description="hf://datasets/owner/name[@revision]/path, https://…, pvc://claim/path, or configMap://name/key.",
    )
    token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="Bearer token for an https:// or a gated hf:// source. Only prepare sees it."
    )
    format: DatasetFormat | None = Field(
        default=None, description="Form of the rows; auto (recognised from the rows) if not said."
    )
    columns: dict[str, ShortText] | None = Field(
        default=None,
        max_length=16,
        description="Our name of a column to its name in the file, for example messages: dialogue.",
    )
    roles: dict[str, ShortText] | None = Field(
        default=None, max_length=16, description="A role's name in the file to system, user, assistant or tool."
    )
    system_prompt: str | None = Field(
        default=None, max_length=16384, description="System message for conversations that have none."
    )
    validation: Validation | None = Field(
        default=None, description="Held-out rows; a tenth of the dataset if not said."
    )
    max_truncated_fraction: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Rows longer than training.maxLength are dropped and counted; more than this part of them fails the job. 0 if not said.",
    )


class Lora(ApiModel):
    """Low-rank adapters."""

    rank: int | None = Field(default=None, ge=1, le=1024, description="Rank of the adapters; 16 if not said.")
    alpha: int | None = Field(
        default=None, ge=1, le=4096, description="Scale of the adapters (alpha/rank); twice the rank if not said."
    )
    dropout: float | None = Field(default=None, ge=0, lt=1, description="Dropout before the adapters; 0 if not said.")
    targets: list[ShortText] | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Linear modules by the last part of their name; attention and dense MLP if not said.",
    )
    rslora: bool | None = Field(default=None, description="Scale by alpha/sqrt(rank). false if not said.")


class Method(ApiModel):
    """How to tune: one of the fields."""

    lora: Lora | None = Field(default=None, description="Low-rank adapters.")


class Training(ApiModel):
    """The optimisation."""

    epochs: float | None = Field(
        default=None, gt=0, le=1000, description="Passes over the dataset; 3 if neither epochs nor maxSteps is said."
    )
    max_steps: int | None = Field(default=None, ge=1, le=10_000_000, description="Optimizer steps.")
    learning_rate: float | None = Field(default=None, gt=0, le=1, description="Peak learning rate; 0.0002 if not said.")
    batch_size: int | None = Field(default=None, ge=1, le=4096, description="Rows per forward pass; 2 if not said.")
    gradient_accumulation: int | None = Field(
        default=None, ge=1, le=4096, description="Forward passes per step; 4 if not said."
    )
    max_length: int | None = Field(
        default=None,
        ge=16,
        le=1048576,
        description="Longest row in tokens; longer rows are dropped and counted. 2048 if not said.",
    )
    warmup_steps: int | None = Field(
        default=None, ge=0, le=1_000_000, description="Steps until the peak learning rate; 5 if not said."
    )
    scheduler: Scheduler | None = Field(default=None, description="Shape of the learning rate; linear if not said.")
    weight_decay: float | None = Field(default=None, ge=0, le=1, description="Weight decay; 0.01 if not said.")
    max_grad_norm: float | None = Field(default=None, gt=0, le=1000, description="Gradient clipping; 1 if not said.")
    gradient_checkpointing: bool | None = Field(
        default=None, description="Compute activations twice to save memory; true if not said."
    )
    seed: int | None = Field(
        default=None, ge=0, le=4294967295, description="Seed of split, order and initialisation; 42 if not said."
    )
    responses_only: bool | None = Field(
        default=None, description="Learn from the assistant's words only; true if not said."
    )
    save_every_steps: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Steps between checkpoints; about ten minutes of steps if not said.",
    )
    keep_checkpoints: int | None = Field(
        default=None, ge=1, le=100, description="Newest complete checkpoints to keep; 2 if not said."
    )


class Runtime(ApiModel):
    """What trains."""

    recipe: Literal["auto", "unsloth", "trl"] | None = Field(
        default=None, description="unsloth, trl, or auto: unsloth on NVIDIA GPUs, trl elsewhere. auto if not said."
    )


class Evaluation(ApiModel):
    """How base and tuned model are compared."""

    samples: int | None = Field(
        default=None, ge=1, le=10000, description="Held-out rows to answer, at most; 64 if not said."
    )
    max_tokens: int | None = Field(
        default=None, ge=1, le=32768, description="Longest answer in tokens; 256 if not said."
    )


class Export(ApiModel):
    """The form of the exported model."""

    quantization: Quantization | None = Field(
        default=None, description="Type of the GGUF's weights; q4_k_m if not said."
    )


class Storage(ApiModel):
    """The claims of this namespace; made on first need, kept when a job is deleted."""

    cache_claim: str | None = Field(
        default=None, max_length=63, description="Claim for downloads; finetune-cache if not said."
    )
    models_claim: str | None = Field(
        default=None, max_length=63, description="Claim for runs and models; finetune-models if not said."
    )


class ServeSpec(ServingSpec):
    """An InferenceService without its model."""

    name: str | None = Field(
        default=None,
        max_length=63,
        pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        description="Name of the InferenceService; the job's name if not said.",
    )


class FineTuneJobSpec(Placement):
    """What to tune, with what, how, and what to do with the result."""

    model: ModelSource = Field(description="The base model.")
    dataset: Dataset = Field(description="What to learn from.")
    method: Method | None = Field(default=None, description="How to tune; LoRA of rank 16 if not said.")
    training: Training | None = Field(default=None, description="The optimisation.")
    runtime: Runtime | None = Field(default=None, description="What trains.")
    evaluation: Evaluation | None = Field(default=None, description="How base and tuned model are compared.")
    export: Export | None = Field(default=None, description="The form of the exported model.")
    serve: ServeSpec | None = Field(
        default=None, description="Serve the model when it is done: makes or updates an InferenceService."
    )
    storage: Storage | None = Field(default=None, description="The claims that are used.")
    priority: int | None = Field(
        default=None,
        ge=-1000,
        le=1000,
        description="Place in the queue for memory and GPUs: higher goes first. 0 if not said.",
    )
    suspend: bool | None = Field(
        default=None, description="Stop after the next checkpoint, and go on when false again."
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=60,
        le=31_536_000,
        description="Longest training time; downloads do not count. No limit if not said.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=31_536_000,
        description="Remove the finished Jobs after this time; never this object. Kept if not said.",
    )
    retries: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Failed attempts per stage that are repeated; disruptions do not count. 3 if not said.",
    )
    retry_token: str | None = Field(
        default=None, max_length=253, description="Any new value tries a failed job again from its last good stage."
    )
    reuse: Literal["IfIdentical", "Never"] | None = Field(
        default=None, description="Use a model that equal settings and data made before. IfIdentical if not said."
    )


class StageRecord(ApiModel):
    """One attempt of one stage, recorded before its Job may be removed."""

    name: Literal["prepare", "train", "export", "evaluate"]
    attempt: int
    run_digest: str = Field(max_length=64)
    outcome: Literal["Running", "Succeeded", "Failed", "Disrupted", "Suspended", "Retried"]
    failures: int = Field(default=0, description="Failed attempts of this stage so far that count against retries.")
    reason: str = Field(default="", max_length=64)
    message: str = Field(default="", max_length=2048)
    started_at: str | None = None
    finished_at: str | None = None


class ProgressDisplay(ApiModel):
    """Progress in words, for printer columns, which cannot format numbers."""

    step: str | None = Field(default=None, max_length=32)
    percent: str | None = Field(default=None, max_length=8)
    loss: str | None = Field(default=None, max_length=16)
    eta: str | None = Field(default=None, max_length=16)


class Progress(ApiModel):
    """Where training is."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    percent: int | None = None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    tokens_per_second: float | None = None
    eta_seconds: int | None = None
    resumed_from_step: int | None = None
    display: ProgressDisplay | None = None
    updated_at: str | None = None


class MemoryStatus(ApiModel):
    """The memory plan of the training stage, in bytes."""

    host: int = 0
    device: int = 0
    parts: dict[str, int] = Field(default_factory=dict, description="Part of the plan to bytes.")
    budget: int | None = None
    available: int | None = None
    gpus: int = 0
    platform: str = Field(default="", max_length=32, description="The platform that auto was resolved to.")


class ModelStatus(ApiModel):
    """The model version that this job made."""

    version: str = Field(max_length=128)
    path: str = Field(max_length=512)
    digest: str = Field(max_length=64)
    quantization: str = Field(default="", max_length=16)
    bytes: int = 0
    context_length: int = 0
    base_revision: str = Field(default="", max_length=128)
    layers: int = 0
    key_value_heads: int = 0
    head_dim: int = 0
    reused: bool = False


class QueueStatus(ApiModel):
    """Why a job waits."""

    position: int
    waiting_for: str = Field(max_length=1024)
    since: str


class FineTuneJobStatus(ApiModel):
    """What the operator saw. phase is computed from the conditions and never read back."""

    observed_generation: int | None = None
    phase: Phase | None = None
    conditions: list[Condition] = Field(default_factory=list, max_length=16, json_schema_extra=CONDITIONS)
    run_digest: str | None = Field(default=None, max_length=64)
    spec_digest: str | None = Field(
        default=None, max_length=64, description="Digest of the spec that this run was made from."
    )
    retry_token: str | None = Field(default=None, max_length=253, description="The retryToken that was last acted on.")
    stages: list[StageRecord] = Field(
        default_factory=list,
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "attempt"]},
    )
    hold: Hold | None = None
    progress: Progress | None = None
    dataset: DatasetFacts | None = None
    base: ModelFacts | None = Field(default=None, description="What prepare learned about the base model.")
    train: TrainFacts | None = Field(default=None, description="What training measured.")
    export: ExportFacts | None = Field(default=None, description="The exported file.")
    memory: MemoryStatus | None = None
    model: ModelStatus | None = None
    evaluation: EvaluateFacts | None = None
    queue: QueueStatus | None = None
    service: str | None = Field(
        default=None, max_length=63, description="The InferenceService that serves this job's model."
    )
    started_at: str | None = None
    finished_at: str | None = None


class FineTuneJob(ApiModel):
    """Tunes a language model with a dataset."""

    metadata: ObjectMeta
    spec: FineTuneJobSpec
    status: FineTuneJobStatus = FineTuneJobStatus()
