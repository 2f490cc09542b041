"""Where models and datasets come from: hf://, pvc://, configMap://, https://."""
