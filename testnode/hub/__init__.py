"""A small model hub on this machine: what huggingface_hub needs, so that hf:// is exercised without the internet."""
