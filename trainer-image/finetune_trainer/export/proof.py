"""Are the merged files what the adapter says? Module by module: whole-model logits do not see one that was left out.

For every module of the adapter: PEFT's own layer and our Δ agree on random inputs; the stored tensor is the rounded
W + Δ, bit for bit; nothing is infinite or not a number. Every other tensor is the base's, byte for byte.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from peft import LoraConfig
from peft.tuners.lora import Linear

from finetune_trainer.export.merge import summed_rows, to_bytes
from finetune_trainer.files import blocks, drop
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from finetune_trainer.export.adapter import Update
    from finetune_trainer.export.checkpoint import Checkpoint, Shard, Tensor

log = logging.getLogger("finetune")

TOLERANCE = 1e-4
"""Relative, between PEFT's layer and our Δ on random inputs in fp32."""
LARGE_ROUNDING = 0.3
"""Above this share of ‖Δ‖ lost by rounding, a person should know."""
_SAMPLES = 4


@dataclass(frozen=True)
class Proof:
    """What was proven."""

    modules: int
    largest_rounding: float
    """The largest ‖round(W+Δ)-(W+Δ)‖/‖Δ‖."""


def prove(base: Checkpoint, merged: Checkpoint, updates: Mapping[str, Update], peft_config: dict[str, Any]) -> Proof:
    """Compare every tensor of both models; raises MergeNotProven at the first that is wrong."""
    roundings: list[float | None] = []
    for old, new in zip(base.shards, merged.shards, strict=True):
        log.info("Proving %s", new.path.name)
        roundings += _prove_shard(old, new, updates, peft_config)
    _require(len(roundings) == len(updates), f"{len(updates)} modules were to be merged; {len(roundings)} were.")
    changed = [rounding for rounding in roundings if rounding is not None]
    _require(bool(changed), "The adapter changes nothing: training has not moved it.")
    return Proof(len(roundings), max(changed))


def _prove_shard(
    old: Shard, new: Shard, updates: Mapping[str, Update], peft_config: dict[str, Any]
) -> list[float | None]:
    _require(old.head == new.head, f"{new.path.name} has another header than the base's.")
    roundings = []
    with old.path.open("rb") as before, new.path.open("rb") as after:
        before.seek(len(old.head))
        after.seek(len(new.head))
        for tensor in old.tensors:
            update = updates.get(tensor.name)
            if update is None:
                _prove_untouched(before, after, tensor)
            else:
                roundings.append(_prove_module(before, after, tensor, update, peft_config))
        drop(before)
        drop(after)
    return roundings


def _prove_untouched(before: BinaryIO, after: BinaryIO, tensor: Tensor) -> None:
    size = tensor.end - tensor.start
    pairs = zip(blocks(before, size), blocks(after, size), strict=True)
    _require(
        all(old == new for old, new in pairs),
        f"{tensor.name} is not the adapter's to change, and differs from the base's.",
    )


def _prove_module(
    before: BinaryIO, after: BinaryIO, tensor: Tensor, update: Update, peft_config: dict[str, Any]
) -> float | None:
    """Return ‖round(W+Δ)-(W+Δ)‖/‖Δ‖ of this module; None if Δ is zero."""
    inputs = torch.randn(_SAMPLES, update.a.shape[1], generator=torch.Generator().manual_seed(0))
    outputs, lost, whole = [], 0.0, 0.0
    for delta, summed, dtype in summed_rows(before, tensor, update):
        rounded = summed.to(dtype)
        _require(bool(torch.isfinite(rounded).all()), f"{tensor.name} has values that are infinite or not a number.")
        expected = to_bytes(rounded)
        _require(after.read(len(expected)) == expected, f"{tensor.name} is not the rounded sum of base and adapter.")
        outputs.append(inputs @ delta.T)
        lost += float((rounded.float() - summed).square().sum())
        whole += float(delta.square().sum())
    _agrees_with_peft(inputs, torch.cat(outputs, dim=1), update, peft_config)
    return float((lost / whole) ** 0.5) if whole else None


def _agrees_with_peft(inputs: torch.Tensor, ours: torch.Tensor, update: Update, peft_config: dict[str, Any]) -> None:
    """PEFT's layer around a base of zeros gives Δ·x alone: a wrong scale cannot hide behind a large W."""
    with torch.no_grad():
        theirs = _peft_layer(update, peft_config)(inputs)
    distance = float((ours - theirs).norm() / theirs.norm().clamp_min(torch.finfo(torch.float32).tiny))
    _require(
        distance <= TOLERANCE,
        f"{update.tensor}: our update and PEFT's differ by {distance:.2g} (allowed: {TOLERANCE:g}).",
    )


def _peft_layer(update: Update, peft_config: dict[str, Any]) -> torch.nn.Module:
    config = LoraConfig.from_peft_type(**peft_config)
    base = torch.nn.Linear(update.a.shape[1], update.b.shape[0], bias=False)
    base.weight.data.zero_()
    layer = Linear(base, "default", config=config, r=config.r, lora_alpha=config.lora_alpha)
    layer.lora_A["default"].weight.data = update.a
    layer.lora_B["default"].weight.data = update.b
    return layer.eval()


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - a plain assertion
    if not holds:
        raise StageError("MergeNotProven", message)
