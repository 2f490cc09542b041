"""kopf's watches use the same credentials as our own calls."""

from __future__ import annotations

from typing import Any

import kopf

from finetune_operator.cluster.connection import login


def register(registry: kopf.OperatorRegistry) -> None:
    """Log in when kopf asks: at the start, and whenever the API server no longer takes the credentials."""

    @kopf.on.login(registry=registry)
    def credentials(**_: Any) -> kopf.ConnectionInfo:
        return login()
