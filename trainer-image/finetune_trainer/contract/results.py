"""What a stage found: ``result.json`` on the claim, and the termination message (at most 3 KiB)."""

from __future__ import annotations

from pydantic import Field

from finetune_trainer.contract.base import Wire
from finetune_trainer.contract.paths import Stage

TERMINATION_BYTES = 3072
"""The kubelet cuts a message at 4096 bytes; this leaves room for what it adds."""


class DatasetFacts(Wire):
    """Counted by prepare; token counts are after templating and labelling."""

    read: int = 0
    kept: int = 0
    """Rows to learn from and rows held out, together."""
    dropped: dict[str, int] = Field(default_factory=dict)
    """Reason → rows, for example ``{"tooLong": 3, "noAnswer": 1}``."""
    validation_rows: int = 0
    tokens: int = 0
    trainable_tokens: int = 0
    longest: int = 0
    digest: str = ""
    """sha256 over the rows as read."""


class ModelFacts(Wire):
    """What prepare learned about the base."""

    revision: str = ""
    """Commit of the hub's repository, or a digest of the files of a claim."""
    path: str = ""
    """Folder with config.json, tokenizer and shards, as the pods see it."""
    architecture: str = ""
    parameters: int = 0
    bytes: int = 0
    largest_tensor_bytes: int = 0
    hidden_size: int = 0
    layers: int = 0
    vocab_size: int = 0
    intermediate_size: int = 0
    key_value_heads: int = 0
    head_dim: int = 0
    trainable_parameters: int = 0
    """Of the adapter that method.lora describes."""


class TrainFacts(Wire):
    """What train measured."""

    steps: int = 0
    first_loss: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    tokens_per_second: float | None = None
    peak_host_bytes: int = 0
    peak_device_bytes: int = 0
    resumed_from_step: int | None = None
    seconds: float = 0


class ExportFacts(Wire):
    """The exported file."""

    bytes: int = 0
    sha256: str = ""
    quantization: str = ""
    bits_per_weight: float | None = None
    fallback_tensors: int = 0
    """Tensors whose rows do not fit the quantization's blocks and took a larger type."""
    merged_modules: int = 0
    largest_rounding: float | None = None
    """The largest ‖round(W+Δ)-(W+Δ)‖/‖Δ‖ over the merged modules."""


class Scores(Wire):
    """Generation metrics over the held-out rows, each 0 to 1."""

    rows: int = 0
    exact_match: float = 0
    valid_json: float | None = None
    """None if the expected answers are not JSON."""
    field_f1: float | None = None
    stop_rate: float = 0
    tokens_per_second: float | None = None


class EvaluateFacts(Wire):
    """Base beside tuned, and where the version was published."""

    base: Scores = Scores()
    tuned: Scores = Scores()
    version: str = ""
    """Folder name under /models/versions."""
    servable: bool = True
    context_length: int = 0
    """The longest context that the model was made for, in tokens."""


class StageResult(Wire):
    """The complete result of one stage. ``inputs`` chains it to the result before it."""

    stage: Stage
    run_digest: str
    inputs: str = ""
    """Digest of what this stage worked on; a result with other inputs is not this run's."""
    message: str = ""
    """One sentence for people."""
    started_at: str = ""
    finished_at: str = ""
    dataset: DatasetFacts | None = None
    model: ModelFacts | None = None
    train: TrainFacts | None = None
    export: ExportFacts | None = None
    evaluate: EvaluateFacts | None = None


class Termination(Wire):
    """The termination message of a stage's container: how it ended, and its result if it ended well."""

    reason: str
    """``Completed`` or a name out of the table of reasons."""
    message: str
    run_digest: str = ""
    result: StageResult | None = None

    def to_message(self) -> str:
        """JSON of at most TERMINATION_BYTES bytes: the sentence is shortened until it fits."""
        text = self.to_json()
        excess = len(text.encode()) - TERMINATION_BYTES
        if excess <= 0:
            return text
        kept = max(0, len(self.message) - excess - 8)
        return self.model_copy(update={"message": self.message[:kept] + " …"}).to_json()
