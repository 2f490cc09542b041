"""Takes in what watches tell and what we write, and says which custom resources have to be looked at again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from finetune_operator import metrics
from finetune_operator.cluster.resources import Key, key_of
from finetune_operator.cluster.store import OWNER_KINDS, version
from finetune_operator.core import classify, times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from finetune_operator.cluster.lookups import Lookups
    from finetune_operator.cluster.queue import Queue
    from finetune_operator.cluster.store import Store
    from finetune_operator.core.types import Manifest
    from finetune_operator.progress.inbox import Inbox


class Observer:
    """The one place through which the picture of the cluster changes."""

    def __init__(self, store: Store, queue: Queue, inbox: Inbox, lookups: Lookups) -> None:
        """Take what changes with the picture."""
        self.store = store
        self.seen: dict[Key, int] = {}
        """The resourceVersion that a watch told last: our own writes do not count, so that a dead watch shows."""
        self._queue = queue
        self._inbox = inbox
        self._lookups = lookups
        self.admission = asyncio.Event()
        """Set whenever memory may have been asked for or become free."""

    def told(self, kind_of_event: str | None, manifest: Manifest) -> None:
        """A watch told of an object."""
        metrics.LAST_EVENT.set(time.time())
        key = key_of(manifest)
        if kind_of_event == "DELETED":
            self.seen.pop(key, None)
            self.gone(manifest)
            return
        self.seen[key] = max(self.seen.get(key, 0), version(manifest))
        self.changed(manifest)

    def changed(self, manifest: Manifest) -> None:
        """An object is new or different."""
        if self.store.put(manifest):
            self._look_at(manifest, but=None)

    def wrote(self, manifest: Manifest, by: Key | None) -> None:
        """We have written an object while looking at ``by``, which is looked at again in any case."""
        if self.store.put(manifest):
            self._look_at(manifest, but=by)

    def deleting(self, key: Key, now: datetime) -> None:
        """We have asked for the deletion of an object."""
        self.store.deleting(key, times.stamp(now))

    def gone(self, manifest: Manifest) -> None:
        """An object is no more."""
        key, uid = key_of(manifest), manifest["metadata"].get("uid", "")
        owners = list(self._affected(manifest))
        if self.store.remove(key, uid) is None:
            return
        self._inbox.forget(uid)
        self._lookups.forget(uid)
        self.admission.set()
        if key.kind in OWNER_KINDS:
            self._queue.forget(key)
            metrics.progress(key.namespace, key.name, None)
        for owner in owners:
            self._queue.add(owner)

    def _look_at(self, manifest: Manifest, but: Key | None) -> None:
        if manifest["kind"] in OWNER_KINDS or (manifest["kind"] == "Pod" and not classify.alive(manifest)):
            self.admission.set()
        for key in self._affected(manifest):
            if key != but:
                self._queue.add(key)

    def _affected(self, manifest: Manifest) -> Iterator[Key]:
        """The custom resources that care about an object."""
        if manifest["kind"] not in OWNER_KINDS:
            if owner := self.store.owner_of(manifest):
                yield owner
            return
        key = key_of(manifest)
        yield key
        other = "InferenceService" if key.kind == "FineTuneJob" else "FineTuneJob"
        for candidate in self.store.owners(other):
            if candidate["metadata"]["namespace"] == key.namespace and _names(candidate, key.name):
                yield key_of(candidate)


def _names(owner: Manifest, name: str) -> bool:
    """Does a service wait for that job, or does a job serve by that service?"""
    spec = owner.get("spec", {})
    if owner["kind"] == "InferenceService":
        return bool(spec.get("model", {}).get("fromFineTuneJob") == name)
    serve = spec.get("serve")
    return serve is not None and (serve.get("name") or owner["metadata"]["name"]) == name
