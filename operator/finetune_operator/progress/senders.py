"""Who sends a report: token → pod → Job → FineTuneJob, by uids and owners, never by labels."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.contract.progress import AUDIENCE

from finetune_operator.cluster.resources import Key, controller, key_of

if TYPE_CHECKING:
    from finetune_operator.cluster.client import Client
    from finetune_operator.cluster.store import Store
    from finetune_operator.core.types import Manifest

CACHE_SECONDS = 60.0
CACHE_SIZE = 4096
_POD_UID = "authentication.kubernetes.io/pod-uid"


@dataclass(frozen=True)
class Sender:
    """A pod of an attempt."""

    job_uid: str
    """The uid of the Job."""
    owner: Key
    """The FineTuneJob."""


class UnknownTokenError(Exception):
    """The API server does not know the token, or it is not for us."""


class NotOursError(Exception):
    """A good token of somebody who is not training for a FineTuneJob."""


class Senders:
    """Asks the API server, and remembers its answers for a minute."""

    def __init__(self, client: Client, store: Store) -> None:
        """Take the parts."""
        self._client = client
        self._store = store
        self._known: dict[str, tuple[float, str]] = {}

    async def of(self, token: str) -> Sender:
        """The sender that a token stands for."""
        pod = self._store.find(await self._pod_uid(token))
        job = self._store.find(_controller_uid(pod)) if pod else None
        owner = self._store.find(_controller_uid(job)) if job else None
        if job is None or owner is None or owner["kind"] != "FineTuneJob":
            raise NotOursError("The token is good, but its pod does not belong to a FineTuneJob.")
        return Sender(job["metadata"]["uid"], key_of(owner))

    async def _pod_uid(self, token: str) -> str:
        """Empty for a token that is bound to no pod. Only a hash of the token is kept."""
        mark, now = hashlib.sha256(token.encode()).hexdigest(), asyncio.get_running_loop().time()
        until, uid = self._known.get(mark, (0.0, ""))
        if until > now:
            return uid
        review = await self._client.review_token(token, AUDIENCE)
        if not review.get("authenticated") or AUDIENCE not in review.get("audiences", []):
            raise UnknownTokenError(f"The token is not valid, has expired, or is not meant for {AUDIENCE}.")
        uid = str((review.get("user", {}).get("extra", {}).get(_POD_UID) or [""])[0])
        if len(self._known) >= CACHE_SIZE:
            self._known.clear()
        self._known[mark] = (now + CACHE_SECONDS, uid)
        return uid


def _controller_uid(manifest: Manifest) -> str:
    owner = controller(manifest)
    return str(owner["uid"]) if owner else ""
