"""``finetune validate``: a job's YAML and its dataset, checked in seconds and without a cluster."""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - typer needs it at run time
from typing import TYPE_CHECKING, Annotated, Any, cast

import jsonschema
import typer
import yaml
from finetune_trainer.data import check
from pydantic import ValidationError
from rich.console import Console

from finetune_operator.api import crd
from finetune_operator.api.v1alpha1.common import API_VERSION
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob
from finetune_operator.core import sources
from finetune_operator.core.job import resolve

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import DatasetSpec

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what is wrong with it, or what it is."""

    subject: str
    ok: bool
    message: str


def validate(
    path: Annotated[
        Path, typer.Argument(help="YAML with FineTuneJobs, InferenceServices and ConfigMaps; - for stdin.")
    ],
    dataset: Annotated[
        list[Path] | None, typer.Option(help="A dataset file, checked as the job's dataset would be.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="json or text. json in a pipe.")] = None,
) -> None:
    """Check a job and its data before they are applied. The exit status is 0 if all is well."""
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    findings = examine(text, list(dataset or []))
    if (output or ("text" if sys.stdout.isatty() else "json")) == "json":
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings]) + "\n")
    else:
        _show(findings)
    raise typer.Exit(0 if findings and all(finding.ok for finding in findings) else 1)


def examine(text: str, datasets: list[Path]) -> list[Finding]:
    """Everything that can be said about a YAML text and dataset files, without a cluster."""
    try:
        documents = [one for one in yaml.safe_load_all(text) if one]
    except yaml.YAMLError as error:
        return [Finding("YAML", ok=False, message=str(error))]
    maps = {one["metadata"]["name"]: one.get("data", {}) for one in documents if one.get("kind") == "ConfigMap"}
    findings = [finding for one in documents for finding in _document(one, maps, datasets)]
    return findings or [Finding("YAML", ok=False, message=f"There is no object of {API_VERSION} in it.")]


def _document(document: Manifest, maps: dict[str, dict[str, str]], datasets: list[Path]) -> list[Finding]:
    kind = next((one for one in crd.KINDS if one.model.__name__ == document.get("kind")), None)
    if kind is None:
        return []
    subject = f"{document['kind']}/{document.get('metadata', {}).get('name', '?')}"
    wrong = [*schema_errors(kind, document.get("spec") or {})]
    if wrong:
        return [Finding(subject, ok=False, message=message) for message in wrong]
    found = [Finding(subject, ok=True, message="The fields are right.")]
    if kind is not crd.FINETUNEJOB:
        return found
    try:
        job = FineTuneJob.model_validate(document)
    except ValidationError as error:
        return [Finding(subject, ok=False, message=str(error))]
    return found + _datasets(job, maps, datasets)


def schema_errors(kind: crd.Kind, spec: Manifest) -> list[str]:
    """What the API server would refuse about the fields; a field that it does not know is an error here."""
    schema = _strict(crd.structural(kind.spec))
    errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(spec), key=lambda one: list(one.absolute_path))
    return [_sentence(error) for error in errors]


def _strict(schema: Manifest) -> Manifest:
    """The schema with every field that it does not name forbidden, and exclusive bounds as JSON Schema writes them."""
    result = {
        key: _strict(value) if isinstance(value, dict) and key == "items" else value for key, value in schema.items()
    }
    for bound, flag in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if result.get(flag) is True:
            result[flag] = result.pop(bound)
    if "properties" in schema:
        result["properties"] = {name: _strict(child) for name, child in schema["properties"].items()}
        result["additionalProperties"] = False
    return result


def _sentence(error: jsonschema.ValidationError) -> str:
    where = ".".join(["spec", *(str(part) for part in error.absolute_path)])
    if error.validator != "additionalProperties":
        return f"{where}: {error.message}"
    schema, said = cast("Manifest", error.schema), cast("Manifest", error.instance)
    known = list(schema["properties"])
    unknown = [name for name in said if name not in known]
    hints = (f"{name}{_meant(name, known)}" for name in unknown)
    return f"{where}: there is no field {', '.join(hints)}."


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" (did you mean {close[0]}?)" if close else f" (there are {', '.join(sorted(known))})"


def _datasets(job: FineTuneJob, maps: dict[str, dict[str, str]], datasets: list[Path]) -> list[Finding]:
    """The files that were named, and the ConfigMaps that stand in the same YAML."""
    spec = resolve.dataset(job.spec)
    found = [_checked(path, path.name, spec) for path in datasets]
    validation = spec.validation.source
    for source in [spec.source, *([validation] if validation else [])]:
        where = sources.parse(source)
        if where.config_map in maps:
            found.append(_from_map(maps[where.config_map], where.path, source, spec))
    return found


def _from_map(data: dict[str, str], key: str, source: str, spec: DatasetSpec) -> Finding:
    if key not in data:
        return Finding(source, ok=False, message=f"The ConfigMap has no key {key}; it has {', '.join(sorted(data))}.")
    return _checked(data[key].encode(), source, spec)


def _checked(source: Path | bytes, name: str, spec: DatasetSpec) -> Finding:
    report = check(source, name, spec)
    if failure := report.failure():
        return Finding(name, ok=False, message=f"{failure.reason}: {failure.message}")
    dropped = "".join(f", {count} dropped ({reason})" for reason, count in sorted(report.dropped.items()))
    return Finding(name, ok=True, message=f"{report.read} rows, format {report.format}{dropped}.")


def _show(findings: list[Finding]) -> None:
    console = Console()
    for finding in findings:
        mark = "[green]✓[/green]" if finding.ok else "[red]✗[/red]"
        console.print(f"{mark} [bold]{finding.subject}[/bold] ", end="", highlight=False)
        console.print(finding.message, highlight=False, markup=False, soft_wrap=True)
