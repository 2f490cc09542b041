"""Events on our own objects: what `kubectl describe` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.core import names, times

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_operator.core.types import EventRecord, Manifest

COMPONENT = "finetune-operator"
_NAME_LENGTH = 200


def manifest(about: Manifest, record: EventRecord, once: str, now: datetime) -> Manifest:
    """The Event. Its name follows from what it tells and from ``once``: told twice, it is still one Event."""
    meta = about["metadata"]
    mark = names.digest(meta["uid"], record.type, record.reason, record.message, once)[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:_NAME_LENGTH]}.{mark}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
        "type": record.type,
        "reason": record.reason,
        "message": record.message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": times.stamp(now),
        "lastTimestamp": times.stamp(now),
        "count": 1,
    }
