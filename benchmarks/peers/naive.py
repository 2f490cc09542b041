"""The peer: a naive kopf operator. One create handler that applies one Job through kubernetes.aio, and nothing else."""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import aio

APIS: dict[str, aio.client.BatchV1Api] = {}


@kopf.on.startup()
async def connect(settings: kopf.OperatorSettings, **_: Any) -> None:
    """All defaults, but for Events out of log lines and for peering."""
    settings.posting.enabled = False
    await aio.config.load_kube_config()  # type: ignore[no-untyped-call]
    APIS["batch"] = aio.client.BatchV1Api()


@kopf.on.create("finetune.dev", "v1alpha1", "finetunejobs")
async def create(body: kopf.Body, name: str, namespace: str | None, **_: Any) -> None:
    """Apply the Job of an object."""
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-prepare", "namespace": namespace},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "prepare", "image": "localhost/finetune/trainer:dev", "command": ["true"]}],
                }
            },
        },
    }
    kopf.adopt(job, owner=body)
    await APIS["batch"].patch_namespaced_job(
        f"{name}-prepare", str(namespace), job, field_manager="naive", force=True,
        _content_type="application/apply-patch+yaml",
    )  # fmt: skip
