"""Nodes, and what pods that are not ours ask of them.

Read now and then instead of watched: nodes write their status every few seconds, and of all the pods of a cluster
only the sum of their requests matters here.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from finetune_operator.cluster.client import FORBIDDEN, ApiError
from finetune_operator.cluster.resources import NODE, OURS, POD
from finetune_operator.core.sizes import parse
from finetune_operator.core.types import NodeFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from finetune_operator.cluster.client import Client
    from finetune_operator.core.types import Manifest

FOREIGN = {
    "labelSelector": OURS.replace("=", "!="),
    "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=",
}
_log = logging.getLogger(__name__)


class Nodes:
    """The nodes as they were last read."""

    def __init__(self, client: Client, namespace: str | None, gpu: str) -> None:
        """Pods can be counted in one namespace alone, if that is all that the operator may see."""
        self._client = client
        self._namespace = namespace
        self._gpu = gpu
        self._refused = False
        self.facts: tuple[NodeFacts, ...] = ()

    async def refresh(self) -> bool:
        """Read them; True if anything has changed."""
        try:
            requested = await self._requested()
            found = [
                self._facts(node, requested[node["metadata"]["name"]])
                async for page in self._client.pages(NODE, None, {})
                for node in page
            ]
        except ApiError as error:
            self._complain(error)
            return False
        old, self.facts = self.facts, tuple(sorted(found, key=lambda node: node.name))
        return old != self.facts

    async def _requested(self) -> dict[str, dict[str, int]]:
        """Node → memory and GPUs that pods of others ask for."""
        sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        async for page in self._client.pages(POD, self._namespace, FOREIGN):
            for pod in page:
                for name in ("memory", self._gpu):
                    sums[pod["spec"]["nodeName"]][name] += requests(pod["spec"], name)
        return sums

    def _facts(self, node: Manifest, requested: Mapping[str, int]) -> NodeFacts:
        allocatable = node.get("status", {}).get("allocatable", {})
        return NodeFacts(
            name=node["metadata"]["name"],
            allocatable_bytes=parse(allocatable.get("memory", "0")),
            gpus=parse(allocatable.get(self._gpu, "0")),
            labels=node["metadata"].get("labels", {}),
            ready=_ready(node),
            unschedulable=bool(node.get("spec", {}).get("unschedulable")),
            taints=tuple(node.get("spec", {}).get("taints", ())),
            requested_bytes=requested.get("memory", 0),
            requested_gpus=requested.get(self._gpu, 0),
        )

    def _complain(self, error: ApiError) -> None:
        """Once: without the right to read nodes, admission works with the settings alone."""
        if error.status != FORBIDDEN:
            raise error
        if not self._refused:
            _log.warning("Nodes or pods cannot be read; plans are made without them: %s", error)
        self._refused = True


def requests(spec: Mapping[str, Any], name: str) -> int:
    """What a pod asks for: the sum of its containers, or the largest init container."""
    running = sum(_request(container, name) for container in spec.get("containers", []))
    first = max((_request(container, name) for container in spec.get("initContainers", [])), default=0)
    return max(running, first) + parse(spec.get("overhead", {}).get(name, "0"))


def _request(container: Mapping[str, Any], name: str) -> int:
    resources = container.get("resources", {})
    return parse(resources.get("requests", {}).get(name) or resources.get("limits", {}).get(name) or "0")


def _ready(node: Manifest) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
