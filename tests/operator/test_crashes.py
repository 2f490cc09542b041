"""The operator dies before or right after any of its writes, and a new one goes on as if nothing had been."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster.lookups import Lookups
from finetune_operator.cluster.nodes import Nodes
from finetune_operator.cluster.observer import Observer
from finetune_operator.cluster.queue import Queue
from finetune_operator.cluster.reconcile import Reconciler
from finetune_operator.cluster.resources import Key
from finetune_operator.cluster.situation import Gatherer
from finetune_operator.cluster.store import Store
from finetune_operator.cluster.teller import Teller
from finetune_operator.core.types import Settings
from finetune_operator.progress.inbox import Inbox

from tests.support.edges import NOW, FakeClient, Manifest, job_spec, obj, told

if TYPE_CHECKING:
    from finetune_operator.cluster.client import Client

A = Key("FineTuneJob", "default", "a")
SETTINGS = Settings("finetune-system", "trainer:1", "server:1", default_platform="cpu")
WRITES = 6
"""Two claims, the ConfigMap, the Job, its NetworkPolicy, the status."""


class DeathError(Exception):
    """The operator is gone."""


class MortalClient(FakeClient):
    """Dies at its n-th write: before it is sent, or after it was carried out but before the answer came."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_at, self.after, self.writes = 0, False, 0

    def _called(self, verb: str, kind: str, name: str) -> None:
        super()._called(verb, kind, name)
        if verb in {"create", "status"}:
            self.writes += 1
            if self.writes == self.dies_at and not self.after:
                raise DeathError

    def _stamped(self, manifest: Manifest) -> Manifest:
        made = super()._stamped(manifest)
        if self.writes == self.dies_at and self.after:
            self.dies_at = 0
            raise DeathError
        return made


async def operator(client: FakeClient) -> None:
    """A new operator, from an empty picture until there is nothing to do."""
    real: Client = client  # type: ignore[assignment]
    lookups, inbox = Lookups(real), Inbox()
    observer = Observer(Store(), Queue(), inbox, lookups)
    for manifest in client.objects.values():
        observer.store.put(manifest)
    gatherer = Gatherer(observer.store, lookups, Nodes(real, None, "nvidia.com/gpu"), inbox, SETTINGS)
    teller = Teller(real, lambda: NOW)
    look = Reconciler(real, observer, gatherer, teller, lambda: NOW)
    while await look(A) == 0:
        pass
    await told(teller)


@pytest.fixture
def mortal() -> MortalClient:
    client = MortalClient()
    owner = obj("FineTuneJob", "a", uid="u1", spec=job_spec())
    owner["metadata"] |= {"generation": 1, "creationTimestamp": "2026-12-01T01:00:00Z"}
    client._stamped(owner)
    return client


async def outcome(client: FakeClient) -> tuple[list[Key], Manifest]:
    """Everything that exists, and what the status says."""
    return sorted(client.objects), client.objects[A]["status"]


async def test_the_writes_of_an_undisturbed_start(mortal: MortalClient) -> None:
    await operator(mortal)
    assert mortal.writes == WRITES
    assert [event["reason"] for event in mortal.told] == ["Preparing"]


@pytest.mark.parametrize("after", [False, True], ids=["before it is sent", "before its answer comes"])
@pytest.mark.parametrize("dies_at", range(1, WRITES + 1))
async def test_a_new_operator_goes_on(mortal: MortalClient, dies_at: int, *, after: bool) -> None:
    undisturbed = MortalClient()
    undisturbed._stamped(mortal.objects[A])
    await operator(undisturbed)
    mortal.dies_at, mortal.after = dies_at, after
    with pytest.raises(DeathError):
        await operator(mortal)
    mortal.dies_at = 0
    await operator(mortal)
    assert await outcome(mortal) == await outcome(undisturbed)


async def test_an_operator_with_nothing_to_do_writes_nothing(mortal: MortalClient) -> None:
    await operator(mortal)
    mortal.writes = 0
    await operator(mortal)
    assert mortal.writes == 0
