"""Makes the CustomResourceDefinitions out of the models: ``python -m finetune_operator.api.crd`` writes ``crds/``.

A structural schema differs from what pydantic writes: references are resolved, null unions collapse to optional
fields, ``const`` is a list of one, and exclusive bounds are booleans. Defaults are left out on purpose: they are
applied in code, so that an object in Git stays equal to the object in the cluster.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from finetune_operator.api.rules import FINETUNEJOB_RULES, INFERENCESERVICE_RULES, SPEC_RULES, Rule
from finetune_operator.api.v1alpha1 import finetunejob, inferenceservice
from finetune_operator.api.v1alpha1.common import GROUP, VERSION

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]

_DROPPED = {"title", "default", "$defs", "const", "$ref", "anyOf", "allOf", "exclusiveMinimum", "exclusiveMaximum"}


@dataclass(frozen=True)
class Kind:
    """What a CRD says besides the schema."""

    model: type[BaseModel]
    spec: type[BaseModel]
    status: type[BaseModel]
    plural: str
    singular: str
    short: str
    columns: tuple[tuple[str, str, str, int], ...]
    """Name, type, path, priority (0 shows always, 1 with -o wide)."""
    rules: tuple[Rule, ...]


FINETUNEJOB = Kind(
    model=finetunejob.FineTuneJob,
    spec=finetunejob.FineTuneJobSpec,
    status=finetunejob.FineTuneJobStatus,
    plural="finetunejobs",
    singular="finetunejob",
    short="ftj",
    columns=(
        ("Phase", "string", ".status.phase", 0),
        ("Step", "string", ".status.progress.display.step", 0),
        ("Progress", "string", ".status.progress.display.percent", 0),
        ("Loss", "string", ".status.progress.display.loss", 0),
        ("ETA", "string", ".status.progress.display.eta", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Model", "string", ".spec.model.source", 1),
        ("Service", "string", ".status.service", 1),
        ("Message", "string", '.status.conditions[?(@.type=="Succeeded")].message', 1),
    ),
    rules=FINETUNEJOB_RULES,
)

INFERENCESERVICE = Kind(
    model=inferenceservice.InferenceService,
    spec=inferenceservice.InferenceServiceSpec,
    status=inferenceservice.InferenceServiceStatus,
    plural="inferenceservices",
    singular="inferenceservice",
    short="infsvc",
    columns=(
        ("Phase", "string", ".status.phase", 0),
        ("Job", "string", ".spec.model.fromFineTuneJob", 0),
        ("URL", "string", ".status.url", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Version", "string", ".status.model.version", 1),
        ("Message", "string", '.status.conditions[?(@.type=="Ready")].message', 1),
    ),
    rules=INFERENCESERVICE_RULES,
)

KINDS = (FINETUNEJOB, INFERENCESERVICE)


def crd(kind: Kind) -> Schema:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.model.__name__,
                "listKind": f"{kind.model.__name__}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": [kind.short],
                "categories": ["finetune"],
            },
            "scope": "Namespaced",
            "versions": [_version(kind)],
        },
    }


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of a model."""
    schema = model.model_json_schema(by_alias=True)
    return _node(schema, schema.get("$defs", {}))


def _version(kind: Kind) -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path} | ({"priority": priority} if priority else {})
            for name, type_, path, priority in kind.columns
        ],
        "schema": {"openAPIV3Schema": _root(kind)},
    }


def _root(kind: Kind) -> Schema:
    spec = structural(kind.spec)
    for path, rules in SPEC_RULES.items():
        _add_rules(spec, path, rules)
    return {
        "type": "object",
        "description": (kind.model.__doc__ or "").strip(),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(kind.status),
        },
        "x-kubernetes-validations": [rule.as_validation() for rule in kind.rules],
    }


def _add_rules(spec: Schema, path: tuple[str, ...], rules: tuple[Rule, ...]) -> None:
    """Hang rules on a field, in each kind that has it."""
    node = spec
    for name in path:
        node = node.get("properties", {}).get(name)
        if node is None:
            return
    node["x-kubernetes-validations"] = [rule.as_validation() for rule in rules]


def _node(node: Schema, definitions: dict[str, Schema]) -> Schema:
    node = _resolved(node, definitions)
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if "const" in node:
        result["enum"] = [node["const"]]
    for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if flag in node:
            result |= {bound: node[flag], flag: True}
    if "properties" in node:
        result["properties"] = {name: _node(child, definitions) for name, child in node["properties"].items()}
    if "items" in node:
        result["items"] = _node(node["items"], definitions)
    if isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = _node(node["additionalProperties"], definitions)
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    return result


def _resolved(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Follow a reference or the one branch of a null union; what stands beside it (a description) wins."""
    target: Schema | None = None
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[-1]]
    elif "anyOf" in node:
        (target,) = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
    if target is None:
        return node
    beside = {key: value for key, value in node.items() if key not in {"$ref", "anyOf"}}
    return _resolved(target, definitions) | beside


def as_yaml(kind: Kind) -> str:
    """The file under ``crds/``."""
    header = "# Generated from the models by `make crds`. Do not edit.\n"
    return header + yaml.safe_dump(crd(kind), sort_keys=False, width=120, allow_unicode=True)


def as_template(kind: Kind) -> str:
    """The same CRD as a template of the chart, which upgrades it and keeps it when the chart is uninstalled."""
    document = crd(kind)
    document["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    body = yaml.safe_dump(document, sort_keys=False, width=120, allow_unicode=True)
    return (
        "{{- /* Generated from the models by `make crds`. Do not edit. */}}\n{{- if .Values.crds.install }}\n"
        + body
        + "{{- end }}\n"
    )


def files(root: Path) -> dict[Path, str]:
    """Every generated file → its text."""
    chart = root / "charts/finetune-operator/templates/crds"
    plain = {root / "crds" / f"{GROUP}_{kind.plural}.yaml": as_yaml(kind) for kind in KINDS}
    return plain | {chart / f"{kind.plural}.yaml": as_template(kind) for kind in KINDS}


def main() -> int:
    """Write the files, below the working folder."""
    for path, text in files(Path()).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
