"""One handler for every watch: it tells the observer, and nothing more. No finalizer, no annotation, no patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf

from finetune_operator.cluster.resources import WATCHED

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer


def register(registry: kopf.OperatorRegistry, observer: Observer) -> None:
    """Watch every kind of the table."""

    async def told(event: kopf.RawEvent, **_: Any) -> None:
        observer.told(event["type"], dict(event["object"]))

    for resource in WATCHED:
        kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)(told)
