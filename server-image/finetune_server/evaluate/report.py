"""The report of a run, in Markdown. Pure: the manifest, the losses and the answers in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from finetune_trainer.contract.results import Scores
    from finetune_trainer.contract.runspec import RunSpec

    from finetune_server.manifest import Manifest

SHOWN_ANSWERS = 10
SHOWN_LOSSES = 20


@dataclass(frozen=True)
class Compared:
    """One held-out row with both answers."""

    prompt: list[dict[str, Any]]
    expected: str
    base: str
    tuned: str
    line: int

    def as_json(self) -> dict[str, Any]:
        """A line of answers.jsonl."""
        return {
            "line": self.line,
            "prompt": self.prompt,
            "expected": self.expected,
            "base": self.base,
            "tuned": self.tuned,
        }


def report(spec: RunSpec, manifest: Manifest, losses: Sequence[dict[str, Any]], answers: Sequence[Compared]) -> str:
    """The whole text."""
    name = f"{spec.identity.namespace}/{spec.identity.name}"
    sections = (
        ["# " + name, "", f"Version `{manifest.version}`, published at {manifest.created_at}.", ""],
        _scores(manifest.evaluate.base, manifest.evaluate.tuned),
        _losses(losses),
        _answers(answers),
        _facts("Data", manifest.dataset.model_dump(by_alias=True)),
        _facts("Base", {"source": manifest.base, **manifest.model.model_dump(by_alias=True)}),
        _facts("Settings", _settings(spec)),
        _facts("Training", manifest.train.model_dump(by_alias=True)),
        _facts("Export", manifest.export.model_dump(by_alias=True)),
        _facts(
            "Versions", {**manifest.versions, "trainer image": spec.trainer_image, "server image": spec.server_image}
        ),
    )
    return "\n".join(line for section in sections for line in section)


def _scores(base: Scores, tuned: Scores) -> list[str]:
    rows = (
        ("exact match", base.exact_match, tuned.exact_match),
        ("valid JSON", base.valid_json, tuned.valid_json),
        ("field F1", base.field_f1, tuned.field_f1),
        ("ended by itself", base.stop_rate, tuned.stop_rate),
    )
    lines = [f"| {name} | {_percent(before)} | {_percent(after)} |" for name, before, after in rows]
    speed = f"| tokens per second | {base.tokens_per_second or '-'} | {tuned.tokens_per_second or '-'} |"
    return [
        f"## Scores on {tuned.rows} held-out rows",
        "",
        "| | base | tuned |",
        "| --- | --- | --- |",
        *lines,
        speed,
        "",
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _losses(losses: Sequence[dict[str, Any]]) -> list[str]:
    """The picture, and about twenty of its points."""
    step = max(1, -(-len(losses) // SHOWN_LOSSES))
    shown = [*losses[:-1:step], *losses[-1:]]
    rows = [f"| {row['step']} | {_number(row.get('loss'))} | {_number(row.get('evalLoss'))} |" for row in shown]
    return [
        "## Loss",
        "",
        "![Loss over the steps](loss.svg)",
        "",
        "| step | loss | held-out loss |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _answers(answers: Sequence[Compared]) -> Iterator[str]:
    yield from ("## Answers", "", f"The first {min(SHOWN_ANSWERS, len(answers))}; all are in answers.jsonl.", "")
    for answer in answers[:SHOWN_ANSWERS]:
        yield from (f"### Line {answer.line}", "", _block(_last_text(answer.prompt)))
        for title, text in (("Expected", answer.expected), ("Base", answer.base), ("Tuned", answer.tuned)):
            yield from (f"{title}:", "", _block(text))


def _last_text(prompt: list[dict[str, Any]]) -> str:
    content = prompt[-1].get("content") or ""
    return content if isinstance(content, str) else str(content)


def _block(text: str) -> str:
    """Indented code: no text can end it."""
    return "\n".join(f"    {line}" for line in text.splitlines()) + "\n"


def _settings(spec: RunSpec) -> dict[str, Any]:
    return {
        "recipe": spec.recipe,
        "device": spec.device,
        **{f"lora.{name}": value for name, value in spec.lora.model_dump(by_alias=True).items()},
        **{f"training.{name}": value for name, value in spec.training.model_dump(by_alias=True).items()},
        **{f"evaluation.{name}": value for name, value in spec.evaluation.model_dump(by_alias=True).items()},
    }


def _facts(title: str, facts: dict[str, Any]) -> list[str]:
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items() if value not in (None, "")]
    return [f"## {title}", "", "| | |", "| --- | --- |", *rows, ""]


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.replace("|", "\\|")
