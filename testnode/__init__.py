"""One real Kubernetes node on this machine, for tests and for trying things: ``python -m testnode up``."""
