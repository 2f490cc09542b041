"""What a server is started with, and what a GGUF file says about itself. Light: pydantic alone.

Shapes and units: sizes are in bytes, lengths in tokens.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from finetune_trainer.contract.base import Wire
from pydantic import Field

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import RunSpec

LLAMA_CPP_ENV = "FINETUNE_LLAMA_CPP"
LLAMA_CPP = "/opt/llama.cpp"
"""Where llama.cpp lies in the image: bin/llama-server, bin/llama-quantize, convert_hf_to_gguf.py, gguf-py/."""
API_KEY_FILE = "/run/secrets/finetune/api-key"
"""Where a server finds its keys, one per line."""
PORT = 8080
EVALUATION_PARALLEL = 4
"""Questions at the same time: one pass over the weights serves them all."""
UNIFIED_PLATFORM = "dgx-spark"

KvCacheType = Literal["f16", "bf16", "q8_0", "q4_0"]
Reasoning = Literal["on", "off", "auto"]
Acceleration = Literal["cuda", "cpu"]

_PROMPT_CACHE_MIB = 2048
_CONTEXT_STEP = 256
"""llama-server rounds a context up to a multiple of this."""


class GgufFacts(Wire):
    """What planning needs to know about a model; read out of a GGUF file or taken from prepare's facts."""

    bytes: int
    """Size of the file."""
    architecture: str = ""
    context_length: int = 0
    """The longest context that the model was made for."""
    layers: int = 0
    key_value_heads: int = 0
    head_dim: int = 0
    hidden_size: int = 0
    vocab_size: int = 0


class ServeSpec(Wire):
    """How llama-server is started."""

    model_path: str
    alias: str
    """The model's name in the API."""
    context_length: int = 16384
    """For each request."""
    parallel: int = 1
    """Requests at the same time."""
    kv_cache_type: KvCacheType = "f16"
    reasoning: Reasoning = "off"
    acceleration: Acceleration = "cpu"
    unified_memory: bool = False
    """CPU and GPU share one pool."""
    api_key_file: str | None = API_KEY_FILE
    """None: everybody who reaches the port may ask."""
    host: str = "0.0.0.0"  # noqa: S104 - a pod's own address is not known beforehand
    port: int = PORT
    threads: int | None = None
    """None: llama.cpp counts the cores of the node, whatever the pod's limit is."""
    extra_args: list[str] = Field(default_factory=list)

    @property
    def total_context(self) -> int:
        """What llama-server calls the context: it divides it by its slots."""
        return self.context_length * self.parallel

    @property
    def prompt_cache_mib(self) -> int:
        """Host memory for the states of earlier prompts: only where it is not the memory that the model needs."""
        return _PROMPT_CACHE_MIB if self.acceleration == "cuda" and not self.unified_memory else 0


def evaluation_spec(run: RunSpec, model_path: str = "") -> ServeSpec:
    """How evaluate serves a model: as it will be served, with room for the longest row. The operator plans with it."""
    longest = run.training.max_length + run.evaluation.max_tokens
    return ServeSpec(
        model_path=model_path,
        alias="model",
        context_length=-(-longest // _CONTEXT_STEP) * _CONTEXT_STEP,
        parallel=EVALUATION_PARALLEL,
        acceleration=run.device,
        unified_memory=run.platform == UNIFIED_PLATFORM,
        api_key_file=None,
    )


def llama_cpp() -> Path:
    """The folder of llama.cpp's binaries and converter."""
    return Path(os.environ.get(LLAMA_CPP_ENV, LLAMA_CPP))
