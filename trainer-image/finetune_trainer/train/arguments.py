"""The one translation of our settings into the Trainer's, shared by all recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_trainer.train.rows import total_steps

if TYPE_CHECKING:
    from finetune_trainer.train.job import TrainJob


def trainer_arguments(job: TrainJob) -> dict[str, Any]:
    """Keyword arguments of SFTConfig. Whatever changes the result comes from the RunSpec, nothing from a default."""
    training, cuda = job.spec.training, job.spec.device == "cuda"
    return {
        "output_dir": str(job.checkpoints.staging),
        "max_steps": total_steps(training, len(job.rows)),
        "per_device_train_batch_size": training.batch_size,
        # The library's default of 8 would need more memory than training itself.
        "per_device_eval_batch_size": training.batch_size,
        "gradient_accumulation_steps": training.gradient_accumulation,
        "learning_rate": training.learning_rate,
        "warmup_steps": training.warmup_steps,
        "lr_scheduler_type": training.scheduler,
        "weight_decay": training.weight_decay,
        "max_grad_norm": training.max_grad_norm,
        "optim": "adamw_torch_fused" if cuda else "adamw_torch",
        "gradient_checkpointing": training.gradient_checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "seed": training.seed,
        "data_seed": training.seed,
        "bf16": cuda,
        "use_cpu": not cuda,
        "max_length": training.max_length,
        "packing": False,
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "eval_strategy": "epoch" if len(job.validation) else "no",
        "prediction_loss_only": True,
        # Our own callbacks decide when to save, and write every step's loss.
        "save_strategy": "no",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "include_num_input_tokens_seen": "non_padding",
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": cuda,
    }
