"""For tests of the operator's edges: objects, and an API server that is only a dictionary."""

from __future__ import annotations

import asyncio
import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from finetune_operator.cluster.client import CONFLICT, NOT_FOUND, ApiError
from finetune_operator.cluster.resources import Key, Resource, key_of

from tests.support.merged import merged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from finetune_operator.cluster.queue import Queue
    from finetune_operator.cluster.teller import Teller
    from finetune_operator.core.types import ObjectRef

Manifest = dict[str, Any]
NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def obj(kind: str, name: str, uid: str = "", version: int = 1, **more: Any) -> Manifest:
    """An object; ``owner`` is a (kind, uid) that controls it."""
    meta: Manifest = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"{kind}-{name}",
        "resourceVersion": str(version),
    }
    if labels := more.pop("labels", None):
        meta["labels"] = labels
    if owner := more.pop("owner", None):
        version_of = "finetune.dev/v1alpha1" if owner[0] in {"FineTuneJob", "InferenceService"} else "batch/v1"
        meta["ownerReferences"] = [{"apiVersion": version_of, "kind": owner[0], "uid": owner[1], "controller": True}]
    api_version = "finetune.dev/v1alpha1" if kind in {"FineTuneJob", "InferenceService"} else "v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def job_spec(**more: Any) -> Manifest:
    """The smallest FineTuneJob."""
    return {"model": {"source": "hf://org/model"}, "dataset": {"source": "https://example.org/rows.jsonl"}, **more}


class FakeClient:
    """The client's methods on a dictionary; ``calls`` tells what was asked, ``refuse`` makes a call fail."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.told: list[Manifest] = []
        self.refuse: dict[tuple[str, str], ApiError] = {}
        self.texts: dict[str, str] = {}
        self.review: Manifest = {}
        self._version = 100

    def _called(self, verb: str, kind: str, name: str) -> None:
        self.calls.append((verb, kind, name))
        if error := self.refuse.get((verb, kind)):
            raise error

    def _stamped(self, manifest: Manifest) -> Manifest:
        self._version += 1
        made = copy.deepcopy(manifest)
        made["metadata"] |= {"resourceVersion": str(self._version)}
        made["metadata"].setdefault("uid", f"uid-{manifest['metadata']['name']}")
        self.objects[key_of(made)] = made
        return copy.deepcopy(made)

    async def get(self, key: Key) -> Manifest | None:
        self._called("get", key.kind, key.name)
        found = self.objects.get(key)
        return copy.deepcopy(found) if found else None

    async def pages(
        self, resource: Resource, namespace: str | None, params: dict[str, str], *, metadata: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        assert namespace is None or metadata in {True, False}
        self._called("list", resource.kind, params.get("labelSelector", ""))
        yield [each for key, each in self.objects.items() if key.kind == resource.kind]

    async def create(self, manifest: Manifest) -> Manifest:
        self._called("create", manifest["kind"], manifest["metadata"]["name"])
        if key_of(manifest) in self.objects:
            raise ApiError(CONFLICT, "POST", "already exists")
        return self._stamped(manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        self._called("apply", manifest["kind"], manifest["metadata"]["name"])
        return self._stamped(manifest)

    async def delete(self, ref: ObjectRef) -> None:
        self._called("delete", ref.kind, ref.name)

    async def patch_status(self, key: Key, patch: Manifest, resource_version: str) -> Manifest:
        self._called("status", key.kind, key.name)
        found = self.objects.get(key)
        if found is None:
            raise ApiError(NOT_FOUND, "PATCH", "not found")
        if found["metadata"]["resourceVersion"] != resource_version:
            raise ApiError(CONFLICT, "PATCH", "the object has been modified")
        return self._stamped({**found, "status": merged(found.get("status", {}), patch)})

    async def create_event(self, event: Manifest) -> None:
        self._called("event", "Event", event["metadata"]["name"])
        self.told.append(event)

    async def review_token(self, token: str, audience: str) -> Manifest:
        self._called("review", audience, token)
        return self.review

    async def logs(self, pod: Key, container: str, lines: int, *, previous: bool = False) -> str:
        self._called("logs", container, f"{pod.name} {lines} {previous}")
        return self.texts[pod.name]


async def told(teller: Teller) -> None:
    """Post what waits to be told."""
    posting = asyncio.create_task(teller.run())
    await teller.flush()
    posting.cancel()


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until it holds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.01)


async def waiting(queue: Queue) -> list[str]:
    """The keys in the queue, by kind and name; they are taken out."""
    found = []
    while queue.oldest() or queue._waiting:
        key = await queue.take()
        assert key is not None
        found.append(f"{key.kind}/{key.name}")
        queue.done(key)
    return found
