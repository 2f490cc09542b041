"""Fixtures of the tests of the operator's edges."""

from __future__ import annotations

import pytest
from finetune_operator.cluster.lookups import Lookups
from finetune_operator.cluster.observer import Observer
from finetune_operator.cluster.queue import Queue
from finetune_operator.cluster.store import Store
from finetune_operator.progress.inbox import Inbox

from tests.support.edges import FakeClient


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
async def queue() -> Queue:
    return Queue()


@pytest.fixture
async def observer(client: FakeClient, queue: Queue) -> Observer:
    return Observer(Store(), queue, Inbox(), Lookups(client))  # type: ignore[arg-type]
