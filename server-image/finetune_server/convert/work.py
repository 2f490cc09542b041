"""The conversion as a stage: export/merged/ in, export/model.gguf out, and the base's GGUF in the cache."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.contract.paths import GGUF, MANIFEST, MERGE_RESULT
from finetune_trainer.contract.results import ExportFacts, StageResult
from finetune_trainer.files import sha256_of
from finetune_trainer.stage import StageError, locked, now, read_result, require_result

from finetune_server.convert.files import to_gguf
from finetune_server.llama import build, known_architectures

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.results import ModelFacts
    from finetune_trainer.contract.runspec import RunSpec

    from finetune_server.convert.files import Converted

log = logging.getLogger("finetune")


def convert(spec: RunSpec, paths: RunPaths) -> StageResult:
    """Convert the tuned model and the base; what was already converted from these inputs is returned as it is."""
    started = now()
    merged = require_result(paths, "export", MERGE_RESULT)
    done = read_result(paths, "export")
    target = Path(paths.stage("export")) / GGUF
    kept = (target, Path(paths.version_of(merged.inputs)) / MANIFEST)  # evaluate removes what it has published
    if done is not None and done.inputs == merged.inputs and any(path.exists() for path in kept):
        return done
    tuned = to_gguf(target.parent / "merged", target, spec.export.quantization)
    _require_known(tuned)
    convert_base(spec, paths)
    facts = _facts(spec, target, tuned, merged.export or ExportFacts())
    return StageResult(
        stage="export", run_digest=paths.run_digest, inputs=merged.inputs, message=_message(facts, tuned),
        started_at=started, finished_at=now(), export=facts,
    )  # fmt: skip


def convert_base(spec: RunSpec, paths: RunPaths) -> None:
    """Once for each base, quantization and build of llama.cpp."""
    model = require_facts(paths)
    target = base_gguf(spec, paths, model)
    with locked(target.with_suffix(".lock")):  # the cache is everybody's: two runs may want the same base at once
        if target.exists():
            log.info("The base is already there as %s", target)
            return
        to_gguf(Path(model.path), target, spec.export.quantization)


def base_gguf(spec: RunSpec, paths: RunPaths, model: ModelFacts) -> Path:
    """Where the base's GGUF lies in the cache."""
    return Path(paths.base_gguf) / f"{model.revision[:16]}-{spec.export.quantization}-{build()}.gguf"


def require_facts(paths: RunPaths) -> ModelFacts:
    """What prepare found out about the base."""
    model = require_result(paths, "prepare").model
    if model is None:
        raise StageError("StageFailed", f"{paths.result('prepare')} says nothing about the model.")
    return model


def _require_known(converted: Converted) -> None:
    architecture = converted.header.facts().architecture
    if architecture not in known_architectures():
        raise StageError("ModelUnsupported", f"llama.cpp {build()} cannot load the architecture {architecture}.")


def _facts(spec: RunSpec, target: Path, tuned: Converted, merged: ExportFacts) -> ExportFacts:
    return merged.model_copy(
        update={
            "bytes": target.stat().st_size,
            "sha256": sha256_of(target),
            "quantization": spec.export.quantization,
            "bits_per_weight": round(tuned.header.bits_per_weight, 2),
            "fallback_tensors": tuned.fallback_tensors,
        }
    )


def _message(facts: ExportFacts, tuned: Converted) -> str:
    text = f"{facts.quantization}: {facts.bytes / 1e9:.2f} GB, {facts.bits_per_weight} bits per weight."
    if facts.fallback_tensors:
        text += (
            f" {facts.fallback_tensors} of {len(tuned.header.tensors)} tensors took a larger type,"
            " because their rows are no multiple of 256."
        )
    return text
