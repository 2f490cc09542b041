"""How much memory each stage and each server asks for. What is computed lives in the images' own memory models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from finetune_server.contract import GgufFacts, evaluation_spec
from finetune_server.memory import plan_serving
from finetune_trainer.memory import plan_training

from finetune_operator.api.v1alpha1.finetunejob import MemoryStatus
from finetune_operator.core import platforms, sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from finetune_server.contract import ServeSpec
    from finetune_trainer.contract.results import ModelFacts
    from finetune_trainer.contract.runspec import RunSpec

PREPARE_BYTES = 2 * sizes.GIB
EXPORT_BYTES = 4 * sizes.GIB
"""Converter and quantizer, on top of the tensors that the merge holds at a time."""
EVALUATE_BYTES = sizes.GIB
"""The program that asks, on top of the server that answers."""


class Columns(Protocol):
    """A memory plan of either image."""

    @property
    def host(self) -> Mapping[str, int]:
        """Part to bytes of host memory."""

    @property
    def device(self) -> Mapping[str, int]:
        """Part to bytes of device memory."""


def of_run(spec: RunSpec, base: ModelFacts, said: str | None) -> MemoryStatus:
    """The plan of the held stages: what training needs, and room enough for export and evaluate after it."""
    training = plan_training(base, spec)
    unified = platforms.unified(spec.platform)
    serving = _evaluate(spec, base)
    evaluate = EVALUATE_BYTES + _host(serving, unified=unified)
    return MemoryStatus(
        host=sizes.parse(said) if said else max(_host(training, unified=unified), _export(base), evaluate),
        device=max(_device(training, unified=unified), _device(serving, unified=unified)),
        parts=_parts(training),
        gpus=1 if platforms.has_gpu(spec.platform) else 0,
        platform=spec.platform,
    )


def of_stage(stage: str, memory: MemoryStatus | None) -> int:
    """The memory request of a stage's pod."""
    return memory.host if memory and stage != "prepare" else PREPARE_BYTES


def of_server(spec: ServeSpec, model: GgufFacts, said: str | None) -> MemoryStatus:
    """The plan of a server."""
    plan = plan_serving(spec, model)
    return MemoryStatus(
        host=sizes.parse(said) if said else _host(plan, unified=spec.unified_memory),
        device=_device(plan, unified=spec.unified_memory),
        parts=_parts(plan),
        gpus=1 if spec.acceleration == "cuda" else 0,
    )


def _host(plan: Columns, *, unified: bool) -> int:
    """What the pod's memory request covers: on unified memory the device's part as well."""
    return sum(plan.host.values()) + (sum(plan.device.values()) if unified else 0)


def _device(plan: Columns, *, unified: bool) -> int:
    """Memory of the card, where it has one of its own."""
    return 0 if unified else sum(plan.device.values())


def _export(base: ModelFacts) -> int:
    return EXPORT_BYTES + 4 * base.largest_tensor_bytes


def _evaluate(spec: RunSpec, base: ModelFacts) -> Columns:
    """Base and tuned are served one after the other, from files that are no larger than the base."""
    facts = GgufFacts.model_validate(base.model_dump(include=set(GgufFacts.model_fields)))
    return plan_serving(evaluation_spec(spec), facts)


def _parts(plan: Columns) -> dict[str, int]:
    return {f"host.{part}": size for part, size in plan.host.items()} | {
        f"device.{part}": size for part, size in plan.device.items()
    }
