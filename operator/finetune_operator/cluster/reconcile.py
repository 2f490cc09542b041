"""One look at one object: gather, decide, act, write the status once, then tell about it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from finetune_operator import metrics
from finetune_operator.cluster.client import CONFLICT, NOT_FOUND, ApiError
from finetune_operator.cluster.resources import Key, controller, key_of
from finetune_operator.cluster.situation import MISSING_SECONDS, lacks_something
from finetune_operator.core import finetunejob, inferenceservice, merge, times
from finetune_operator.core.refusal import REASON, status_patch
from finetune_operator.core.service.server import RANDOM_KEY
from finetune_operator.core.types import EventRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from finetune_operator.cluster.client import Client
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.situation import Gatherer
    from finetune_operator.cluster.teller import Teller
    from finetune_operator.core.types import Children, Facts, Manifest, ObjectRef, Plan

PLANNERS: dict[str, Callable[[Manifest, Children, Facts, datetime], Plan]] = {
    "FineTuneJob": finetunejob.plan,
    "InferenceService": inferenceservice.plan,
}
GARBAGE_SECONDS = 2.0
"""An object of a deleted namesake is in the way: garbage collection needs a moment."""
_EVENT_LENGTH = 900
_REFUSALS = frozenset({400, 403, 422})
_log = logging.getLogger(__name__)


class Reconciler:
    """Carries out plans."""

    def __init__(
        self, client: Client, observer: Observer, gatherer: Gatherer, teller: Teller, clock: Callable[[], datetime]
    ) -> None:
        """Take the parts."""
        self._client = client
        self._teller = teller
        self._observer = observer
        self._store = observer.store
        self._gatherer = gatherer
        self._clock = clock

    async def __call__(self, key: Key) -> float | None:
        """Look at an object; says after how many seconds to look again without a change (0: at once)."""
        owner = self._store.get(*key)
        if owner is None:
            return None
        children = self._store.children(owner)
        facts = await self._gatherer.facts(owner, children)
        plan = PLANNERS[key.kind](owner, children, facts, self._clock())
        try:
            done = await self._act(owner, plan)
        except RefusedError as refusal:
            await self._say(owner, plan, refusal)
            raise
        if not done:
            return GARBAGE_SECONDS
        if not plan.empty:
            return 0
        again = plan.requeue_after
        if again is None or again > times.LOOK_AGAIN or not lacks_something(owner, facts):
            return again
        return min(again, MISSING_SECONDS)

    async def _act(self, owner: Manifest, plan: Plan) -> bool:
        """Children first, the status last: a status never tells of what does not exist.

        What a Job needs is there before the Job, so that one that exists is never without it.
        """
        needed = [manifest for manifest in plan.create if manifest["kind"] != "Job"]
        jobs = [manifest for manifest in plan.create if manifest["kind"] == "Job"]
        for together in (needed, jobs):
            if not all(await asyncio.gather(*(self._create(owner, manifest) for manifest in together))):
                return False
        for manifest in plan.apply:
            if not await self._apply(owner, manifest):
                return False
        for ref in plan.delete:
            await self._delete(owner, ref)
        if plan.status is not None:
            await self._write_status(owner, plan)
        return True

    async def _create(self, owner: Manifest, manifest: Manifest) -> bool:
        """Create a child; True if it exists afterwards and is ours."""
        try:
            made = await self._client.create(_filled(manifest))
        except ApiError as error:
            if error.status == CONFLICT:
                return await self._adopt(owner, manifest)
            raise _refused(manifest, error) from error
        self._took(owner, made)
        _log.info("%s: created %s", key_of(owner), _name(manifest))
        return True

    async def _apply(self, owner: Manifest, manifest: Manifest) -> bool:
        """Make or change a child; True if it is ours afterwards."""
        key = key_of(manifest)
        if controller(manifest) and self._store.get(*key) is None:
            found = await self._client.get(key)
            if found is not None and not _is_ours(owner, manifest, found):
                return False
        try:
            made = await self._client.apply(manifest)
        except ApiError as error:
            raise _refused(manifest, error) from error
        self._observer.wrote(made, key_of(owner))
        _log.info("%s: applied %s", key_of(owner), _name(manifest))
        return True

    async def _adopt(self, owner: Manifest, manifest: Manifest) -> bool:
        """It exists: see whether it is ours."""
        found = await self._client.get(key_of(manifest))
        if found is None or not _is_ours(owner, manifest, found):
            return False
        self._took(owner, found)
        return True

    def _took(self, owner: Manifest, manifest: Manifest) -> None:
        """The next look must see it, whether or not the watch has told of it by then."""
        if manifest["kind"] == "Secret":
            self._gatherer.lookups.created(manifest)
        else:
            self._observer.wrote(manifest, key_of(owner))

    async def _delete(self, owner: Manifest, ref: ObjectRef) -> None:
        await self._client.delete(ref)
        self._observer.deleting(Key(ref.kind, ref.namespace, ref.name), self._clock())
        _log.info("%s: deleted %s %s", key_of(owner), ref.kind, ref.name)

    async def _write_status(self, owner: Manifest, plan: Plan) -> None:
        """Once, against the very object that was looked at; then the events of that transition."""
        key, meta = key_of(owner), owner["metadata"]
        new = plan.status or {}
        patch = merge.patch(owner.get("status", {}), new)
        try:
            written = await self._client.patch_status(key, patch, meta["resourceVersion"])
        except ApiError as error:
            await self._outdated(owner, error)
            return
        self._observer.wrote(written, key)
        _log_phase(key, owner.get("status", {}), new)
        _measure(key, new)
        self._teller.tell(written, plan.events)

    async def _outdated(self, owner: Manifest, error: ApiError) -> None:
        """Somebody else was faster: take the newest, and the next look decides anew."""
        if error.status not in {CONFLICT, NOT_FOUND}:
            raise error
        key = key_of(owner)
        newest = await self._client.get(key)
        if newest is None:
            self._observer.gone(owner)
        else:
            self._observer.wrote(newest, key)

    async def _say(self, owner: Manifest, plan: Plan, refusal: RefusedError) -> None:
        """A quota, a policy or a webhook says no: in a condition, and once as an Event for `kubectl describe`."""
        key, planned = key_of(owner), plan.status or owner.get("status", {})
        patch = status_patch(owner, planned, refusal.message, self._clock())
        if patch is None:
            return
        try:
            written = await self._client.patch_status(key, patch, owner["metadata"]["resourceVersion"])
        except ApiError as error:
            await self._outdated(owner, error)
            return
        self._observer.wrote(written, key)
        self._teller.tell(written, [EventRecord("Warning", REASON, refusal.message[:_EVENT_LENGTH])])


class RefusedError(ApiError):
    """The API server does not take what a plan needs; the message says what and why."""


def _refused(manifest: Manifest, error: ApiError) -> ApiError:
    """A server that is merely away or busy refuses nothing."""
    if error.status not in _REFUSALS:
        return error
    text = f"{_name(manifest)} cannot be created: {error.message}"
    return RefusedError(error.status, _name(manifest), text)


def _is_ours(owner: Manifest, wanted: Manifest, found: Manifest) -> bool:
    """Has it our owner's uid, or is it meant to have no owner?

    A deleted namesake's child goes by itself. What nobody owns is somebody's own work, which is not ours to change.
    """
    ours, theirs = controller(wanted), controller(found)
    if ours is None:
        return True
    if theirs is None:
        text = f"{_name(wanted)} exists already and was not made by the operator: delete it, or take another name."
        raise RefusedError(CONFLICT, _name(wanted), text)
    if theirs["uid"] != ours["uid"]:
        _log.info("%s: %s belongs to somebody else; waiting until it is gone", key_of(owner), _name(wanted))
    return bool(theirs["uid"] == ours["uid"])


def _filled(manifest: Manifest) -> Manifest:
    """With a random key where the plan asks for one."""
    data = manifest.get("stringData", {})
    if RANDOM_KEY not in data.values():
        return manifest
    filled = {name: secrets.token_urlsafe(32) if value == RANDOM_KEY else value for name, value in data.items()}
    return {**manifest, "stringData": filled}


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _log_phase(key: Key, old: Manifest, new: Manifest) -> None:
    if old.get("phase") != new.get("phase"):
        _log.info("%s: %s is %s", key, key.kind, new.get("phase"))


def _measure(key: Key, status: Manifest) -> None:
    if key.kind == "FineTuneJob":
        metrics.progress(key.namespace, key.name, (status.get("progress") or {}).get("percent"))
