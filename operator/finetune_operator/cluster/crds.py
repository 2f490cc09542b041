"""Are the installed CRDs the ones that this operator knows? With older ones, new fields would vanish in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_operator.api import crd
from finetune_operator.api.v1alpha1.common import VERSION
from finetune_operator.cluster.resources import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from finetune_operator.cluster.client import Client

SHOWN = 5


async def complaint(client: Client) -> str:
    """What is wrong, and what to do about it; empty if all is well."""
    found = [await _complaint(client, kind) for kind in crd.KINDS]
    return " ".join(sentence for sentence in found if sentence)


async def _complaint(client: Client, kind: crd.Kind) -> str:
    wanted = crd.crd(kind)
    name = wanted["metadata"]["name"]
    installed = await client.get(Key("CustomResourceDefinition", "", name))
    if installed is None:
        return f"CRD {name} is not installed: install the chart with crds.install=true, or `kubectl apply -f crds/`."
    missing = sorted(fields(wanted) - fields(installed))
    if not missing:
        return ""
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return (
        f"CRD {name} is older than this operator: it lacks {', '.join(missing[:SHOWN])}{more}. "
        "Upgrade the chart with crds.install=true, or `kubectl apply --server-side -f crds/`."
    )


def fields(definition: Mapping[str, Any]) -> set[str]:
    """Every field of our version, by its path."""
    versions = (each for each in definition["spec"]["versions"] if each["name"] == VERSION)
    return {path for each in versions for path in _paths(each.get("schema", {}).get("openAPIV3Schema", {}), "")}


def _paths(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        path = f"{prefix}.{name}".removeprefix(".")
        yield path
        yield from _paths(inner, path)
        yield from _paths(inner.get("items", {}), f"{path}[]")
