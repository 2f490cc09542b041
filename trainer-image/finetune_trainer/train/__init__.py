"""The train stage: prepared rows and a base model in, an adapter out.

``work.py`` is the stage from top to bottom; a recipe (``finetune_trainer.recipes``) loads, adapts, trains and saves;
everything else here is one concern each: environment, device, checkpoints, progress, stopping, stalls.
"""
