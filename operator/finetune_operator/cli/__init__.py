"""The ``finetune`` command, which kubectl also finds as ``kubectl finetune``."""
