"""Supervised fine-tuning of a LoRA adapter with Unsloth: the default on NVIDIA GPUs, for its speed and memory."""

from __future__ import annotations

# Unsloth changes transformers, TRL and PEFT, so it comes before all of them.
from unsloth import FastModel  # isort: skip

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer

from finetune_trainer.loading.patch import eager_loading
from finetune_trainer.train.adapter import require_targets, save_adapter
from finetune_trainer.train.arguments import trainer_arguments
from finetune_trainer.train.loop import run
from finetune_trainer.train.resumable import Resumable
from finetune_trainer.train.rows import PadRight

if TYPE_CHECKING:
    from finetune_trainer.contract.results import TrainFacts
    from finetune_trainer.train.job import TrainJob


class Trainer(Resumable, SFTTrainer):  # type: ignore[misc]
    """Unsloth's version of TRL's trainer with our checkpoints."""


def train(job: TrainJob) -> TrainFacts:
    """Load, adapt, train, save."""
    tokenizer = AutoTokenizer.from_pretrained(job.tokenizer, trust_remote_code=job.spec.model.trust_remote_code)
    model = adapt(load(job), job)
    trainer = Trainer(
        model=model,
        args=SFTConfig(**trainer_arguments(job)),
        data_collator=PadRight(tokenizer.eos_token_id),
        train_dataset=job.rows,
        eval_dataset=job.validation if len(job.validation) else None,
        processing_class=tokenizer,
    )
    facts = run(trainer, job)
    save_adapter(model, job)
    return facts


def load(job: TrainJob) -> Any:
    """The base, frozen, in 16 bit: Unsloth's own default would be 4 bit, and a base out of its own collection."""
    # The text model alone out of one that also sees; the CPU backend does that by itself and has no such word.
    text_only = {"text_only": True} if job.spec.device == "cuda" else {}
    with eager_loading(job.device) as served:
        model, _ = FastModel.from_pretrained(
            job.base,
            max_seq_length=job.spec.training.max_length,
            dtype=torch.bfloat16 if job.spec.device == "cuda" else torch.float32,
            load_in_4bit=False,
            use_exact_model_name=True,
            **text_only,
            # Never "auto": it asks CUDA for free memory, which on unified memory leaves out the page cache.
            device_map={"": job.device},
            trust_remote_code=job.spec.model.trust_remote_code,
            use_gradient_checkpointing=job.spec.training.gradient_checkpointing,
            random_state=job.spec.training.seed,
            local_files_only=True,
        )
    served.require(Path(job.base))
    return model


def adapt(model: Any, job: TrainJob) -> Any:
    """Put fp32 adapters beside the modules that the job names; of a mixture of experts also beside the experts."""
    lora = job.spec.lora
    require_targets(model, lora.targets, also=expert_targets(model))
    return FastModel.get_peft_model(
        model,
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        use_rslora=lora.rslora,
        bias="none",
        use_gradient_checkpointing=job.spec.training.gradient_checkpointing,
        random_state=job.spec.training.seed,
        max_seq_length=job.spec.training.max_length,
    )


def expert_targets(model: Any) -> set[str]:
    """Targets by which Unsloth finds fused experts, which are no linear modules; empty for a dense model."""
    fused = any(name.endswith("experts.gate_up_proj") for name, _ in model.named_parameters())
    return {"gate_proj", "up_proj", "down_proj"} if fused else set()
