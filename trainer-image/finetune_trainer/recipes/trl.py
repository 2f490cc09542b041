"""Supervised fine-tuning of a LoRA adapter with TRL and PEFT: the reference, which runs anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
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
    """TRL's trainer with our checkpoints."""


def train(job: TrainJob) -> TrainFacts:
    """Load, adapt, train, save."""
    set_seed(job.spec.training.seed)
    tokenizer = AutoTokenizer.from_pretrained(job.tokenizer, trust_remote_code=job.spec.model.trust_remote_code)
    model = adapt(load(job), job)
    trainer = Trainer(
        model=model,
        args=SFTConfig(**trainer_arguments(job), loss_type=loss_type(job)),
        data_collator=PadRight(tokenizer.eos_token_id),
        train_dataset=job.rows,
        eval_dataset=job.validation if len(job.validation) else None,
        processing_class=tokenizer,
    )
    facts = run(trainer, job)
    save_adapter(model, job)
    return facts


def load(job: TrainJob) -> Any:
    """The base, frozen: bf16 on a GPU, fp32 on a CPU."""
    with eager_loading(job.device) as served:
        model = AutoModelForCausalLM.from_pretrained(
            job.base,
            dtype=torch.bfloat16 if job.spec.device == "cuda" else torch.float32,
            # Never "auto": it asks CUDA for free memory, which on unified memory leaves out the page cache.
            device_map={"": job.device},
            trust_remote_code=job.spec.model.trust_remote_code,
            attn_implementation="sdpa",
        )
    served.require(Path(job.base))
    return model


def adapt(model: Any, job: TrainJob) -> Any:
    """Put fp32 adapters beside the linear modules that the job names."""
    lora = job.spec.lora
    require_targets(model, lora.targets)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        use_rslora=lora.rslora,
        bias="none",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def loss_type(job: TrainJob) -> str:
    """The plain loss, summed in chunks of learned tokens so that logits of a whole batch never exist.

    The chunked way reads the head's weight past its adapter, so a head that is itself tuned takes the whole way.
    """
    return "nll" if "lm_head" in job.spec.lora.targets else "chunked_nll"
