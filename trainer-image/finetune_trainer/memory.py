"""What training needs, computed before anything runs. Pure: the operator plans with it, the stage checks against it.

Two columns, host and device, in bytes. On a discrete GPU they are two memories; on unified memory (GB10) both come
out of one pool, and their sum is what counts; on a CPU everything is host.

Per parameter: 2 bytes frozen in bf16 (4 in fp32 on a CPU); 16 bytes trained (fp32 weight, gradient, two Adam moments).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finetune_trainer.contract.results import ModelFacts
    from finetune_trainer.contract.runspec import RunSpec

MIB = 2**20
GIB = 2**30

BF16 = 2
FP32 = 4
ADAM_BYTES = 8
"""Two fp32 moments."""
LOADER_THREADS = 4
"""transformers reads weights with at most four threads."""
STAGING = 64 * MIB
"""Pinned memory of each loader thread on the way to a GPU."""
LOSS_CHUNK = 256
"""Tokens whose logits exist at the same time."""
LOGITS_COPIES = 4
"""fp32 logits, their softmax, its gradient, and one in flight."""
CUDA_CONTEXT = 600 * MIB
PROCESS_CUDA = 3 * GIB
"""Python with torch's CUDA libraries, the rows, and the compiler of kernels."""
PROCESS_CPU = 2560 * MIB
"""Python, torch and its caches of packed weights: measured with a model of 135 M parameters."""


@dataclass(frozen=True)
class MemoryPlan:
    """Parts by name, in bytes."""

    host: dict[str, int] = field(default_factory=dict)
    device: dict[str, int] = field(default_factory=dict)

    @property
    def host_bytes(self) -> int:
        """The host column's sum."""
        return sum(self.host.values())

    @property
    def device_bytes(self) -> int:
        """The device column's sum."""
        return sum(self.device.values())

    @property
    def parts(self) -> dict[str, int]:
        """Both columns by part, for people."""
        names = dict.fromkeys([*self.host, *self.device])
        return {name: self.host.get(name, 0) + self.device.get(name, 0) for name in names}

    @property
    def host_certain_bytes(self) -> int:
        """What the host must give for weights and training states: arithmetic, no estimate."""
        return sum(self.host.get(name, 0) for name in ("weights", "adapter", "gradients", "optimizer"))


def frozen_bytes(parameters: int, bytes_each: int = BF16) -> int:
    """Weights that are only read."""
    return parameters * bytes_each


def trained_parts(parameters: int) -> dict[str, int]:
    """Weights that learn, with all that learning adds."""
    return {"adapter": FP32 * parameters, "gradients": FP32 * parameters, "optimizer": ADAM_BYTES * parameters}


def activation_bytes(facts: ModelFacts, spec: RunSpec, bytes_each: int) -> int:
    """What the forward pass keeps for the backward pass, for batchSize rows of maxLength.

    With gradient checkpointing every layer keeps its input only, and one layer at a time is computed again.
    """
    tokens = spec.training.batch_size * spec.training.max_length
    layer_input = tokens * facts.hidden_size * bytes_each
    # Norms, q, k, v, attention's output and residual (10 times hidden);
    # gate, up, their product and gradients (6 times inner).
    inside = tokens * (10 * facts.hidden_size + 6 * facts.intermediate_size) * bytes_each
    inside += tokens * adapter_input_bytes(facts, spec)
    if spec.training.gradient_checkpointing:
        return facts.layers * layer_input + inside
    return facts.layers * inside


def adapter_input_bytes(facts: ModelFacts, spec: RunSpec) -> int:
    """Per token and layer: PEFT casts what goes into each fp32 adapter from the model's 16 bit. Unsloth does not."""
    if spec.device != "cuda" or spec.recipe != "trl":
        return 0
    widths = (facts.intermediate_size if target == "down_proj" else facts.hidden_size for target in spec.lora.targets)
    return FP32 * sum(widths)


def logits_bytes(facts: ModelFacts, spec: RunSpec) -> int:
    """The loss head works in chunks of tokens, so logits never exist for a whole batch."""
    tokens = min(LOSS_CHUNK, spec.training.batch_size * spec.training.max_length)
    return tokens * facts.vocab_size * FP32 * LOGITS_COPIES


def plan_training(facts: ModelFacts, spec: RunSpec) -> MemoryPlan:
    """What the train stage needs at its peak, part by part."""
    cuda = spec.device == "cuda"
    each = BF16 if cuda else FP32
    working = {
        **trained_parts(facts.trainable_parameters),
        "activations": activation_bytes(facts, spec, each),
        "logits": logits_bytes(facts, spec),
    }
    # Loading is over before training begins: only what it needs beyond training's own parts counts.
    transient = LOADER_THREADS * facts.largest_tensor_bytes * (1 if cuda else 2)
    loader = max(0, transient - sum(working.values()))
    compute = {"weights": frozen_bytes(facts.parameters, each), **working, "loader": loader}
    if not cuda:
        return MemoryPlan(host={**compute, "process": PROCESS_CPU})
    return MemoryPlan(
        host={"process": PROCESS_CUDA, "staging": LOADER_THREADS * STAGING},
        device={**compute, "context": CUDA_CONTEXT},
    )
