"""Gathers what a decision needs besides the object itself: its children, what it names, and what the operator knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from finetune_operator.core import classify, references
from finetune_operator.core.types import Facts

if TYPE_CHECKING:
    from finetune_trainer.contract.progress import TrainerStatus

    from finetune_operator.cluster.lookups import Lookups
    from finetune_operator.cluster.nodes import Nodes
    from finetune_operator.cluster.store import Store
    from finetune_operator.core.references import References
    from finetune_operator.core.types import Children, Manifest, Settings
    from finetune_operator.progress.inbox import Inbox

MISSING_SECONDS = 10.0
"""Something that an object names and that no watch covers is looked for again after this time."""


class Gatherer:
    """Knows where every fact comes from."""

    def __init__(self, store: Store, lookups: Lookups, nodes: Nodes, inbox: Inbox, settings: Settings) -> None:
        """Take the sources."""
        self._store = store
        self.lookups = lookups
        self._nodes = nodes
        self._inbox = inbox
        self._settings = settings

    async def facts(self, owner: Manifest, children: Children) -> Facts:
        """Everything that is known."""
        named, namespace = _references(owner), owner["metadata"]["namespace"]
        return Facts(
            settings=self._settings,
            nodes=self._nodes.facts,
            secret_keys=await self.lookups.keys("Secret", namespace, (name for name, _ in named.secrets)),
            config_map_keys=await self.lookups.keys("ConfigMap", namespace, (name for name, _ in named.config_maps)),
            claims=self._claims(namespace, named),
            progress=self._progress(children),
            logs=await self.lookups.logs(children.pods),
            job=self._store.get("FineTuneJob", namespace, named.job) if named.job else None,
            service=self._store.get("InferenceService", namespace, named.service) if named.service else None,
        )

    def without_lookups(self) -> Facts:
        """What admission needs, for any object."""
        return Facts(settings=self._settings, nodes=self._nodes.facts)

    def _progress(self, children: Children) -> TrainerStatus | None:
        """The report of the attempt that runs now, never of an earlier one."""
        running = (job["metadata"]["uid"] for job in children.jobs if not classify.finished(job))
        return next((report for uid in running if (report := self._inbox.latest(uid))), None)

    def _claims(self, namespace: str, named: References) -> dict[str, Manifest]:
        found = {name: self._store.get("PersistentVolumeClaim", namespace, name) for name in named.claims}
        return {name: claim for name, claim in found.items() if claim is not None}


def lacks_something(owner: Manifest, facts: Facts) -> bool:
    """Does the object name something that does not exist (yet)?"""
    named = _references(owner)
    wanted = (
        (named.secrets, facts.secret_keys),
        (named.config_maps, facts.config_map_keys),
    )
    return any(key not in known.get(name, ()) for pairs, known in wanted for name, key in pairs) or any(
        name not in facts.claims for name in named.claims
    )


def _references(owner: Manifest) -> References:
    """What the object names; nothing if its spec cannot be read, which the plan says in its own way."""
    try:
        return references.of(owner)
    except (ValidationError, ValueError):
        return references.References()
