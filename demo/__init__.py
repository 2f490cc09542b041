"""``make demo``: from nothing to an answer of a tuned model, on a real Kubernetes node."""
