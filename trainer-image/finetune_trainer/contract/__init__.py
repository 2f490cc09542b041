"""What the operator and its stages say to each other: light modules that need pydantic alone.

The operator writes a RunSpec; each stage reads it, works, and answers with a StageResult: on the claim as
``result.json`` and, shortened, as the container's termination message.
"""
