"""The prepare stage: sources → checks → split → tokens and labels → files, and the facts that the plan needs."""
