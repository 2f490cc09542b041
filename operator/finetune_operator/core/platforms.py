"""Which kind of machine a node is, and which one a spec asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from finetune_operator.api.v1alpha1.common import Hold, Placement
    from finetune_operator.core.types import NodeFacts, Settings

CPU = "cpu"
DGX_SPARK = "dgx-spark"
NVIDIA = "nvidia-gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"
"""Set by NVIDIA's GPU feature discovery."""


def of_node(node: NodeFacts) -> str:
    """The platform of one node."""
    if "GB10" in node.labels.get(PRODUCT_LABEL, ""):
        return DGX_SPARK
    return NVIDIA if node.gpus else CPU


def resolve(placement: Placement, settings: Settings, nodes: Iterable[NodeFacts]) -> str:
    """The platform of a spec: said, or the operator's default, or the best among the nodes that it selects."""
    for said in (placement.platform, settings.default_platform):
        if said and said != "auto":
            return said
    found = {of_node(node) for node in nodes if selects(placement.node_selector, node)}
    return next((platform for platform in (DGX_SPARK, NVIDIA) if platform in found), CPU)


def selects(selector: Mapping[str, str] | None, node: NodeFacts) -> bool:
    """Has the node every label of the selector?"""
    return all(node.labels.get(key) == value for key, value in (selector or {}).items())


def kept(hold: Hold | None, nodes: Collection[NodeFacts]) -> Hold | None:
    """The hold, unless its node has left the cluster; no nodes at all means that we may not read them."""
    if hold and nodes and hold.node not in {node.name for node in nodes}:
        return None
    return hold


def has_gpu(platform: str) -> bool:
    """Do pods on this platform ask for a GPU?"""
    return platform != CPU


def unified(platform: str) -> bool:
    """Do CPU and GPU share one memory?"""
    return platform == DGX_SPARK
