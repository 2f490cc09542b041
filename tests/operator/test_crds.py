from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from finetune_operator.api import crd
from finetune_operator.cluster import crds

if TYPE_CHECKING:
    from tests.support.edges import FakeClient


@pytest.fixture
def installed(client: FakeClient) -> dict[str, Any]:
    """Both CRDs, as this operator knows them."""
    for kind in crd.KINDS:
        client._stamped(copy.deepcopy(crd.crd(kind)))
    return next(each for key, each in client.objects.items() if key.name == "finetunejobs.finetune.dev")


def fields(definition: dict[str, Any], *path: str) -> dict[str, Any]:
    """The properties at a path of the schema."""
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        schema = schema["properties"][name]
    found: dict[str, Any] = schema["properties"]
    return found


@pytest.mark.usefixtures("installed")
async def test_our_own_crds_are_fine(client: FakeClient) -> None:
    assert await crds.complaint(client) == ""  # type: ignore[arg-type]


async def test_a_field_of_the_status_that_is_missing_is_named(client: FakeClient, installed: dict[str, Any]) -> None:
    del fields(installed, "status")["hold"]
    sentence = await crds.complaint(client)  # type: ignore[arg-type]
    assert "CRD finetunejobs.finetune.dev is older than this operator: it lacks status.hold" in sentence
    assert "Upgrade the chart" in sentence


async def test_a_field_deep_in_the_spec_is_found_too(client: FakeClient, installed: dict[str, Any]) -> None:
    del fields(installed, "spec", "dataset", "validation")["rows"]
    assert "it lacks spec.dataset.validation.rows." in await crds.complaint(client)  # type: ignore[arg-type]


async def test_a_newer_crd_is_fine(client: FakeClient, installed: dict[str, Any]) -> None:
    fields(installed, "status")["invented"] = {"type": "string"}
    assert await crds.complaint(client) == ""  # type: ignore[arg-type]


async def test_a_crd_that_is_not_installed_is_named(client: FakeClient) -> None:
    assert "CRD finetunejobs.finetune.dev is not installed" in await crds.complaint(client)  # type: ignore[arg-type]
