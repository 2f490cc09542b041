"""finetune.dev/v1alpha1."""
