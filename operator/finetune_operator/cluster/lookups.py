"""What objects name in their namespace but no watch covers: keys of Secrets and ConfigMaps, last lines of dead pods.

Secrets are read one by one, when somebody names one, and only the names of their keys are kept.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.resources import Key, key_of
from finetune_operator.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from finetune_operator.cluster.client import Client
    from finetune_operator.core.types import Manifest

FOUND_SECONDS, MISSING_SECONDS = 30.0, 3.0
LINES = 30
MOST_KEPT = 4096
_log = logging.getLogger(__name__)


class _End(NamedTuple):
    """How a container ended."""

    container: str
    mark: str
    """Another one for each end."""
    restarted: bool


class Lookups:
    """Short-lived answers, so that a thousand objects that name one Secret ask once."""

    def __init__(self, client: Client) -> None:
        """Take the client."""
        self._client = client
        self._keys: dict[Key, tuple[float, frozenset[str] | None]] = {}
        self._logs: dict[str, tuple[str, str]] = {}

    async def keys(self, kind: str, namespace: str, wanted: Iterable[str]) -> dict[str, frozenset[str]]:
        """The named objects that exist → the names of their keys."""
        found = {name: await self._keys_of(Key(kind, namespace, name)) for name in dict.fromkeys(wanted)}
        return {name: keys for name, keys in found.items() if keys is not None}

    def created(self, manifest: Manifest) -> None:
        """We have just made it: the next look must see it."""
        self._keys.pop(key_of(manifest), None)

    async def logs(self, pods: Iterable[Manifest]) -> dict[str, str]:
        """Pod → its last lines, for pods whose container ended in silence."""
        silent = [(pod, end) for pod in pods if (end := _silent_end(pod))]
        return {pod["metadata"]["name"]: await self._logs_of(pod, end) for pod, end in silent}

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._logs.pop(uid, None)

    async def _keys_of(self, key: Key) -> frozenset[str] | None:
        now = asyncio.get_running_loop().time()
        until, keys = self._keys.get(key, (0.0, None))
        if until > now:
            return keys
        if len(self._keys) >= MOST_KEPT:
            self._keys.clear()
        found = await self._client.get(key)
        keys = frozenset({**found.get("data", {}), **found.get("binaryData", {})}) if found is not None else None
        self._keys[key] = (now + (MISSING_SECONDS if keys is None else FOUND_SECONDS), keys)
        return keys

    async def _logs_of(self, pod: Manifest, end: _End) -> str:
        """Read once per end; that the log cannot be read is no reason to fail."""
        uid = pod["metadata"]["uid"]
        known, text = self._logs.get(uid, ("", ""))
        if known == end.mark:
            return text
        try:
            text = redact(await self._client.logs(key_of(pod), end.container, LINES, previous=end.restarted))
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            _log.info("%s: no log of container %s: %s", key_of(pod), end.container, error)
            text = ""
        self._logs[uid] = (end.mark, text)
        return text


def _silent_end(pod: Manifest) -> _End | None:
    """The first container that failed without a message."""
    status = pod.get("status", {})
    for each in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
        for field in ("state", "lastState"):
            ended: Mapping[str, Any] = each.get(field, {}).get("terminated", {})
            if ended.get("exitCode") and not ended.get("message"):
                return _End(each["name"], ended.get("containerID", ""), restarted=field == "lastState")
    return None
