"""Events on our own objects: what `kubectl describe` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.cluster.store import version
from finetune_operator.core import names, times

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_operator.core.types import EventRecord, Manifest

COMPONENT = "finetune-operator"
_NAME_LENGTH = 200


def manifest(about: Manifest, record: EventRecord, place: int, now: datetime) -> Manifest:
    """The Event. Told twice about the same version of an object, it is still one Event.

    Its name grows with the object's version and its place among those told together: kubectl sorts by whole seconds,
    and what is told within one second stays in the order of names.
    """
    meta = about["metadata"]
    what = names.digest(meta["uid"], record.type, record.reason, record.message)[:8]
    mark = f"{version(about):014x}{place:02x}{what}"
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
