"""Who may run: first come, first served within a priority, never over a node's budget, nobody starves.

A job or service that does not fit yet keeps back what it could use; those behind it share only the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.api.v1alpha1.common import Condition, Hold, manifest
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobStatus, QueueStatus
from finetune_operator.api.v1alpha1.inferenceservice import InferenceServiceStatus
from finetune_operator.core import budget, conditions, phase, sizes, times
from finetune_operator.core.holders import holder_of
from finetune_operator.core.types import Decision, EventRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from finetune_operator.core.budget import Account
    from finetune_operator.core.types import Holder, Manifest, NodeFacts, Settings

__all__ = ["admit", "event_of", "holder_of", "status_patch"]


def admit(holders: Sequence[Holder], nodes: Sequence[NodeFacts], settings: Settings) -> list[Decision]:
    """Decide about every holder that waits, in the order of the queue."""
    accounts = budget.open_accounts(nodes, holders, settings)
    waiting = sorted((holder for holder in holders if holder.node is None), key=_place)
    decisions: list[Decision] = []
    for holder in waiting:
        ahead = [each for each in decisions if each.node is None]
        decisions.append(_decide(holder, accounts, ahead))
    return decisions


def _place(holder: Holder) -> tuple[int, datetime, str, str, str]:
    """Higher priority first, then who has waited longest; the rest only makes the order certain."""
    return -holder.priority, holder.since, holder.namespace, holder.name, holder.kind


def _decide(holder: Holder, accounts: list[Account], ahead: list[Decision]) -> Decision:
    allowed = [account for account in accounts if budget.may_run_on(holder, account.node)]
    possible = [account for account in allowed if account.could_ever(holder)]
    chosen = max((each for each in possible if each.fits_now(holder)), key=lambda each: each.free_bytes, default=None)
    if chosen:
        chosen.holders.append(holder)
        return Decision(holder, chosen.node.name, 0, f"Fits on node {chosen.node.name}.")
    message = _why_not(holder, allowed, possible, ahead) if accounts else _NO_NODES
    for account in possible:
        account.reserve(holder)
    return Decision(holder, None, len(ahead) + 1, message)


_NO_NODES = "The operator knows no node: the cluster has none, or its right to list nodes and pods is missing."


def _why_not(holder: Holder, allowed: list[Account], possible: list[Account], ahead: list[Decision]) -> str:
    if not allowed:
        return "No node that is ready has the labels of spec.nodeSelector and only taints that spec.tolerations names."
    if not possible:
        largest = max(allowed, key=lambda account: (account.gpus >= holder.gpus, account.budget))
        return f"{budget.describe(largest, holder)}. No node can ever give that: ask for less, or add memory or GPUs."
    best = max(possible, key=lambda account: (account.free_gpus, account.free_bytes))
    return f"{budget.describe(best, holder)}. {_what_would_help(holder, best, ahead)}"


def _what_would_help(holder: Holder, account: Account, ahead: list[Decision]) -> str:
    enough = budget.pooled(holder) <= account.free_bytes and holder.gpus <= account.free_gpus
    if enough and ahead:
        return f"{budget.who(ahead[0].holder)} is ahead in the queue; a higher spec.priority would change that."
    services = [other for other in account.holders if other.kind == "InferenceService"]
    if not services:
        return "It goes on by itself when one of them ends."
    name = services[0].name
    patch = f'kubectl -n {services[0].namespace} patch infsvc {name} --type merge -p \'{{"spec":{{"suspend":true}}}}\''
    return f"It goes on by itself when memory is free; to give it the memory of {budget.who(services[0])}: {patch}"


def status_patch(about: Manifest, decision: Decision, now: datetime) -> Manifest | None:
    """A merge patch for the object's status (its content, not wrapped), or None if it says this already."""
    old = about.get("status", {})
    known = _conditions(about, decision, now)
    changes: Manifest = {"conditions": [manifest(condition) for condition in known]}
    if decision.node:
        changes["hold"] = manifest(_hold(decision.holder, decision.node, now))
    if about["kind"] == "FineTuneJob":
        changes["phase"] = phase.of_job(known)
        changes["queue"] = None if decision.node else _queue(decision)
    else:
        changes["phase"] = phase.of_service(known)
    return changes if any(old.get(key) != value for key, value in changes.items()) else None


def event_of(about: Manifest, decision: Decision) -> EventRecord | None:
    """Told once: that the object waits, and for whom; that it was admitted is told by what then starts."""
    old = about.get("status", {})
    told = any(each["type"] == "Admitted" and each.get("message") not in _PLAIN for each in old.get("conditions", []))
    if decision.node or (told and old.get("phase") == "Queued"):
        return None
    return EventRecord("Normal", "Queued", conditions.cut(decision.message, 900))


_PLAIN = frozenset({"", "Waiting for memory and GPUs."})


def _conditions(about: Manifest, decision: Decision, now: datetime) -> list[Condition]:
    """The object's conditions with another Admitted."""
    status = about.get("status", {})
    model = FineTuneJobStatus if about["kind"] == "FineTuneJob" else InferenceServiceStatus
    known = model.model_validate(status).conditions
    holder = decision.holder
    admitted = conditions.yes("Admitted", f"Holds {sizes.words(holder.host_bytes)} on node {decision.node}.")
    fact = admitted if decision.node else conditions.no("Queued", decision.message)
    (new,) = conditions.update(known, {"Admitted": fact}, about["metadata"].get("generation"), now)
    return [new if condition.type == "Admitted" else condition for condition in known]


def _hold(holder: Holder, node: str, now: datetime) -> Hold:
    return Hold(
        node=node,
        host_bytes=holder.host_bytes,
        device_bytes=holder.device_bytes,
        gpus=holder.gpus,
        since=times.stamp(now),
    )


def _queue(decision: Decision) -> Manifest:
    holder = decision.holder
    waiting_for = conditions.cut(decision.message, 1000)
    return manifest(QueueStatus(position=decision.position, waiting_for=waiting_for, since=times.stamp(holder.since)))
