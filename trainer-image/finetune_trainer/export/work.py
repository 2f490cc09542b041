"""The merge as a stage: prepare's base and train's adapter in, export/merged/ out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.contract.paths import GGUF, MANIFEST, MERGE_RESULT
from finetune_trainer.contract.results import ExportFacts, StageResult
from finetune_trainer.export.adapter import count_modules, read_adapter, read_config
from finetune_trainer.export.checkpoint import open_checkpoint
from finetune_trainer.export.merge import merge
from finetune_trainer.export.proof import LARGE_ROUNDING, Proof, prove
from finetune_trainer.files import copy_file, settle_folder
from finetune_trainer.stage import StageError, now, read_result, require_result

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec


_TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")


def export(spec: RunSpec, paths: RunPaths) -> StageResult:
    """Merge and prove; a merge that was already proven for these inputs is returned as it is."""
    started = now()
    inputs = require_result(paths, "train").inputs
    done = read_result(paths, "export", MERGE_RESULT)
    target = Path(paths.stage("export")) / "merged"
    kept = (target, target.with_name(GGUF), Path(paths.version_of(inputs)) / MANIFEST)  # evaluate removes the first two
    if done is not None and done.inputs == inputs and any(path.exists() for path in kept):
        return done
    tokenizer = Path(paths.stage("prepare")) / "tokenizer" if spec.model.chat_template else None
    proof = merge_and_prove(_base_folder(paths), Path(paths.stage("train")) / "adapter", target, tokenizer)
    facts = ExportFacts(merged_modules=proof.modules, largest_rounding=proof.largest_rounding)
    return StageResult(
        stage="export", run_digest=paths.run_digest, inputs=inputs, message=_message(proof),
        started_at=started, finished_at=now(), export=facts,
    )  # fmt: skip


def merge_and_prove(base_folder: Path, adapter: Path, target: Path, tokenizer: Path | None) -> Proof:
    """Write the merged model beside its place, prove it, and only then put it there."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    base = open_checkpoint(base_folder)
    updates = read_adapter(adapter, base)
    merge(base, updates, partial)
    proof = prove(base, open_checkpoint(partial), updates, read_config(adapter))
    if proof.modules != count_modules(adapter):
        raise StageError(
            "MergeNotProven", f"The adapter has {count_modules(adapter)} modules; {proof.modules} were merged."
        )
    if tokenizer is not None:
        _take_chat_template(tokenizer, partial)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    settle_folder(target.parent)
    return proof


def _take_chat_template(tokenizer: Path, target: Path) -> None:
    """The user's own template, as prepare has set it: all that may differ from the base's files."""
    for name in _TEMPLATE_FILES:
        (target / name).unlink(missing_ok=True)
        if (tokenizer / name).exists():
            copy_file(tokenizer / name, target / name)


def _base_folder(paths: RunPaths) -> Path:
    model = require_result(paths, "prepare").model
    if model is None or not Path(model.path).is_dir():
        raise StageError("StageFailed", f"The base is not where prepare put it: {model.path if model else 'unknown'}.")
    return Path(model.path)


def _message(proof: Proof) -> str:
    text = f"Merged {proof.modules} modules, each proven to be what the adapter says."
    if proof.largest_rounding > LARGE_ROUNDING:
        lost = f"{proof.largest_rounding:.0%}"
        text += f" Rounding loses up to {lost} of an update: train with a larger learning rate or rank."
    return text
