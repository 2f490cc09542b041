"""What a node can give: memory and GPUs, less what is kept back, less what others have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_operator.core import platforms, sizes
from finetune_operator.core.job.resolve import DISCRETE_FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from finetune_operator.core.types import Holder, NodeFacts, Settings


MINUS = "\N{MINUS SIGN}"


@dataclass
class Account:
    """One node's books while admission works through the queue."""

    node: NodeFacts
    budget: int
    """Bytes that may be given away at all."""
    gpus: int
    holders: list[Holder]
    """Those that have something here, the newly admitted included."""
    reserved_bytes: int = 0
    """Set aside for waiting holders that come first."""
    reserved_gpus: int = 0

    @property
    def free_bytes(self) -> int:
        """Bytes that nobody holds."""
        return self.budget - sum(pooled(holder) for holder in self.holders)

    @property
    def free_gpus(self) -> int:
        """GPUs that nobody holds."""
        return self.gpus - sum(holder.gpus for holder in self.holders)

    def could_ever(self, holder: Holder) -> bool:
        """Would it fit if nobody else were here?"""
        return pooled(holder) <= self.budget and holder.gpus <= self.gpus

    def fits_now(self, holder: Holder) -> bool:
        """Does it fit into what nobody holds and nobody comes first for?"""
        enough = pooled(holder) <= self.free_bytes - self.reserved_bytes
        return enough and holder.gpus <= self.free_gpus - self.reserved_gpus

    def reserve(self, holder: Holder) -> None:
        """Keep everything that it could use away from those behind it: nobody starves."""
        self.reserved_bytes += min(max(0, self.free_bytes - self.reserved_bytes), pooled(holder))
        self.reserved_gpus += min(max(0, self.free_gpus - self.reserved_gpus), holder.gpus)


def open_accounts(nodes: Iterable[NodeFacts], holders: Sequence[Holder], settings: Settings) -> list[Account]:
    """The books of every node, with those that hold something there."""
    return [_account(node, [holder for holder in holders if holder.node == node.name], settings) for node in nodes]


def _account(node: NodeFacts, here: list[Holder], settings: Settings) -> Account:
    unified = platforms.unified(platforms.of_node(node)) or any(platforms.unified(holder.platform) for holder in here)
    floor = settings.memory_floor_bytes if unified else DISCRETE_FLOOR
    gpus = min(node.gpus, 1) if unified else node.gpus  # one pool of memory: one user of the GPU at a time
    return Account(
        node=node,
        budget=max(0, node.allocatable_bytes - floor - node.requested_bytes),
        gpus=max(0, gpus - node.requested_gpus),
        holders=here,
    )


def pooled(holder: Holder) -> int:
    """What it takes from the host's memory: with one pool, the device's part as well."""
    return holder.host_bytes + (holder.device_bytes if platforms.unified(holder.platform) else 0)


def may_run_on(holder: Holder, node: NodeFacts) -> bool:
    """Would the scheduler put its pods there?"""
    selected = platforms.selects(holder.node_selector, node)
    return node.ready and not node.unschedulable and selected and _tolerates(holder.tolerations, node.taints)


def _tolerates(tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, str]]) -> bool:
    hard = [taint for taint in taints if taint.get("effect") != "PreferNoSchedule"]
    return all(any(_matches(toleration, taint) for toleration in tolerations) for taint in hard)


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    if toleration.get("operator") == "Exists" and not toleration.get("key"):
        return True
    same_key = toleration.get("key") == taint.get("key")
    exists = toleration.get("operator") == "Exists"
    return same_key and (exists or toleration.get("value", "") == taint.get("value", ""))


def describe(account: Account, holder: Holder) -> str:
    """The sum, in words: needs, budget, holders by name, what is free."""
    needs = f"needs {sizes.words(pooled(holder))}"
    held = "".join(f" {MINUS} {sizes.words(pooled(other))} held by {who(other)}" for other in account.holders)
    total = f" = {sizes.words(account.free_bytes)}" if held else ""
    text = f"{needs}; {sizes.words(account.budget)} budget{held}{total} free on node {account.node.name}"
    if not holder.gpus:
        return text
    users = ", ".join(who(other) for other in account.holders if other.gpus)
    in_use = f", in use by {users}" if users else ""
    return f"{text}; needs {holder.gpus} GPU, {account.free_gpus} of {account.gpus} free{in_use}"


def who(holder: Holder) -> str:
    """InferenceService/chat."""
    return f"{holder.kind}/{holder.name}"
