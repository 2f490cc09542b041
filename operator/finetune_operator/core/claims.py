"""The default claims of a namespace: made on first need, without an owner, so that they outlive every job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.core import names
from finetune_operator.core.references import CACHE_CLAIM, MODELS_CLAIM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from finetune_operator.core.types import Facts, Manifest, Settings


def missing_defaults(namespace: str, wanted: Iterable[str], facts: Facts) -> tuple[Manifest, ...]:
    """Those of the wanted claims that the operator makes by itself, if they do not exist."""
    sizes = {CACHE_CLAIM: facts.settings.cache_size, MODELS_CLAIM: facts.settings.models_size}
    missing = [name for name in wanted if name in sizes and name not in facts.claims]
    return tuple(_claim(namespace, name, sizes[name], facts.settings) for name in dict.fromkeys(missing))


def _claim(namespace: str, name: str, size: str, settings: Settings) -> Manifest:
    labels = {"app.kubernetes.io/name": "finetune", "app.kubernetes.io/component": "storage", **names.MANAGED_BY}
    storage_class = {"storageClassName": settings.storage_class} if settings.storage_class else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **storage_class,
        },
    }
