"""The CRDs are what the models say, and what the API server takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from finetune_operator.api import crd
from finetune_operator.api.rules import FREE_FIELDS, FROZEN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {"$ref", "$defs", "anyOf", "const", "title", "default"}
TEXT_LIMITS = {"maxLength", "enum", "pattern", "format"}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


def schema_of(kind: crd.Kind) -> dict[str, Any]:
    found: dict[str, Any] = crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize("path", crd.files(ROOT), ids=lambda path: path.name)
def test_the_files_in_git_are_what_the_models_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == crd.files(ROOT)[path], "run `make generate`"


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.singular)
def test_every_node_of_the_schema_is_structural(kind: crd.Kind) -> None:
    for path, node in nodes(schema_of(kind)):
        assert node.get("type"), f"{path} has no type"
        assert not FORBIDDEN & node.keys(), f"{path} has {FORBIDDEN & node.keys()}"


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.singular)
def test_every_field_of_spec_is_explained_and_bounded(kind: crd.Kind) -> None:
    for path, node in nodes(schema_of(kind)["properties"]["spec"]):
        if path and not path.endswith("[]"):
            assert node.get("description"), f"{path}: kubectl explain would say nothing"
        if node["type"] == "string":
            assert TEXT_LIMITS & node.keys(), f"{path} may be of any length"
        if node["type"] == "array":
            assert "maxItems" in node, f"{path} may have any number of items"


def test_every_field_of_a_job_is_either_frozen_while_it_runs_or_said_to_be_free() -> None:
    fields = set(schema_of(crd.FINETUNEJOB)["properties"]["spec"]["properties"])
    assert fields == set(FROZEN_FIELDS) | FREE_FIELDS


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.singular)
def test_the_chart_keeps_the_crds_when_it_is_uninstalled(kind: crd.Kind) -> None:
    body = crd.as_template(kind).split("\n", 2)[2].rsplit("{{- end }}", 1)[0]
    assert yaml.safe_load(body)["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
