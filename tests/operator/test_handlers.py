from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kopf
import pytest
from finetune_operator.cluster.resources import WATCHED, Resource
from finetune_operator.handlers import login, settings, watches

from tests.support.edges import job_spec, obj, waiting

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue


@pytest.fixture
def registry(observer: Observer) -> kopf.OperatorRegistry:
    made = kopf.OperatorRegistry()
    login.register(made)
    watches.register(made, observer)
    return made


def test_every_kind_of_the_table_is_watched(registry: kopf.OperatorRegistry) -> None:
    handlers: Any = registry._watching.get_all_handlers()
    assert [handler.id for handler in handlers] == [resource.plural for resource in WATCHED]


def test_nothing_makes_kopf_write_into_objects(registry: kopf.OperatorRegistry) -> None:
    """Handlers of changes, timers and daemons bring finalizers and annotations."""
    assert registry._changing.get_all_handlers() == []
    assert registry._spawning.get_all_handlers() == []
    made = settings.settings()
    assert not made.posting.enabled
    assert made.peering.standalone
    assert made.scanning.disabled


@pytest.mark.parametrize("resource", WATCHED, ids=lambda resource: resource.plural)
def test_the_api_server_sends_only_what_is_ours(resource: Resource) -> None:
    watching = settings.settings().watching
    where = (resource.group, resource.version, resource.plural)
    assert watching.label_selectors.get(where, "") == resource.labels
    assert watching.field_selectors.get(where, "") == resource.fields
    ours = resource.group == "finetune.dev" or resource.kind == "PersistentVolumeClaim"
    assert ours or resource.labels or resource.fields, "objects of everybody would be received"


async def test_a_handler_only_tells_the_observer(registry: kopf.OperatorRegistry, queue: Queue) -> None:
    handlers: Any = registry._watching.get_all_handlers()
    event = {"type": "ADDED", "object": obj("FineTuneJob", "a", spec=job_spec())}
    assert await handlers[0].fn(event=event, patch={}, body={}) is None
    assert await waiting(queue) == ["FineTuneJob/a"]
