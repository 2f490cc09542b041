"""RunSpec: everything a stage needs to know, frozen at the first attempt and mounted into every pod.

Shapes and units: sizes are in bytes, times in seconds, lengths in tokens, learning rates are absolute.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from finetune_trainer.contract.base import Wire

RUNSPEC_PATH = "/run/finetune/runspec.json"
"""Where every stage finds its RunSpec."""

Recipe = Literal["trl", "unsloth"]
Device = Literal["cpu", "cuda"]
DatasetFormat = Literal["auto", "messages", "sharegpt", "alpaca", "prompt-completion", "text"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup"]
Quantization = Literal["f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m"]


class ModelSpec(Wire):
    """The base model."""

    source: str
    """``hf://owner/name[@revision]`` or ``pvc://claim/path`` (mounted at /sources/model)."""
    chat_template: str | None = None
    """A Jinja chat template in place of the one in the repository."""
    trust_remote_code: bool = False


class ValidationSpec(Wire):
    """Which rows are held out: exactly one field is set."""

    fraction: float | None = None
    rows: int | None = None
    source: str | None = None


class DatasetSpec(Wire):
    """Where the rows come from and how to read them."""

    source: str
    """``hf://datasets/owner/name[@revision]/path``, ``https://…``, ``pvc://claim/path`` or ``configMap://name/key``."""
    format: DatasetFormat = "auto"
    columns: dict[str, str] = Field(default_factory=dict)
    """Our name of a column → its name in the file, for example ``{"messages": "dialogue"}``."""
    roles: dict[str, str] = Field(default_factory=dict)
    """A role's name in the file → system, user, assistant or tool."""
    system_prompt: str | None = None
    """Set before every conversation that has no system message of its own."""
    validation: ValidationSpec = ValidationSpec(fraction=0.1)
    max_truncated_fraction: float = 0.0
    """Rows longer than maxLength are dropped and counted; more than this fraction of them fails the run."""


class LoraSpec(Wire):
    """Low-rank adapters."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: list[str] = Field(
        default_factory=lambda: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    )
    """Names of linear modules (the last part of a module's path)."""
    rslora: bool = False


class TrainingSpec(Wire):
    """The optimisation, resolved: no field is left to a library's default."""

    epochs: float | None = None
    max_steps: int | None = None
    learning_rate: float = 2e-4
    batch_size: int = 2
    gradient_accumulation: int = 4
    max_length: int = 2048
    warmup_steps: int = 5
    scheduler: Scheduler = "linear"
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    gradient_checkpointing: bool = True
    seed: int = 42
    responses_only: bool = True
    """Learn from the assistant's tokens only."""
    save_every_steps: int | None = None
    """None: about ten minutes of measured steps."""
    keep_checkpoints: int = 2


class EvaluationSpec(Wire):
    """How base and tuned model are compared."""

    samples: int = 64
    """Held-out rows that are answered, at most."""
    max_tokens: int = 256


class ExportSpec(Wire):
    """The form of the exported model."""

    quantization: Quantization = "q4_k_m"


class MemorySpec(Wire):
    """What this run was admitted with, in bytes; the guard in the pod keeps to it."""

    host_bytes: int = 0
    device_bytes: int = 0
    floor_bytes: int = 0


class Identity(Wire):
    """Whose run this is. Not part of the digest: two jobs with equal settings are one run."""

    namespace: str
    name: str
    uid: str


class RunSpec(Wire):
    """The frozen settings of one run."""

    identity: Identity
    model: ModelSpec
    dataset: DatasetSpec
    lora: LoraSpec = LoraSpec()
    training: TrainingSpec = TrainingSpec()
    evaluation: EvaluationSpec = EvaluationSpec()
    export: ExportSpec = ExportSpec()
    recipe: Recipe = "trl"
    device: Device = "cpu"
    platform: str = "cpu"
    memory: MemorySpec = MemorySpec()
    hub_endpoint: str | None = None
    """HF_ENDPOINT of the prepare pod; None is the public hub."""
    allow_private_addresses: bool = False
    """May an https:// dataset live on a private, link-local or cluster address?"""
    trainer_image: str = ""
    server_image: str = ""
    salt: str = ""
    """The UID of the job when ``reuse: Never``; else empty."""

    def digest(self) -> str:
        """The run digest: sha256 (64 hex digits) over everything but the identity, the memory plan and the hub's address."""
        settings = self.model_copy(
            update={"identity": Identity(namespace="", name="", uid=""), "memory": MemorySpec(), "hub_endpoint": None}
        )
        return hashlib.sha256(settings.to_json().encode()).hexdigest()
