"""The check of one file: lines → rows → conversations, with everything counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from finetune_trainer.data import lines
from finetune_trainer.data.faults import Fault, kind
from finetune_trainer.data.formats import Reader
from finetune_trainer.data.report import Report
from finetune_trainer.data.tidy import Tidier

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.contract.runspec import DatasetSpec


def check(source: Path | bytes, name: str, spec: DatasetSpec) -> Report:
    """Read a dataset as the spec says. Never raises for what is wrong with the data: the report has it.

    Args:
        source: The file, or what stands in it.
        name: What to call it in messages.
        spec: Format, columns, roles and system prompt.
    """
    run = _Check(Report(name), spec)
    try:
        run.rows(source)
    except Fault as fault:
        run.report.add(fault)
    return run.report


class _Check:
    def __init__(self, report: Report, spec: DatasetSpec) -> None:
        self.report = report
        self.spec = spec
        self.tidier = Tidier(spec.system_prompt)
        self.formats: Counter[str] = Counter()
        self.first_lines: dict[str, int] = {}
        self.report.notes = self.tidier.notes

    def rows(self, source: Path | bytes) -> None:
        reader = Reader(self.spec)
        for line in lines.read(source):
            self.report.read += 1
            try:
                self._row(reader, line)
            except Fault as fault:
                self.report.add(fault, line.number)
        self._one_format()

    def _row(self, reader: Reader, line: lines.Line) -> None:
        if line.fault:
            raise line.fault
        if not isinstance(line.value, dict):
            raise Fault(f"a row must be an object, this is {kind(line.value)}")
        form = reader.recognise(line.value)
        self.formats[form] += 1
        self.first_lines.setdefault(form, line.number)
        tidied = self.tidier.tidy(reader.read(line.value, form, line.number))
        if isinstance(tidied, str):
            self.report.drop(tidied, line.number)
        else:
            self.report.conversations.append(tidied)

    def _one_format(self) -> None:
        """Rows of another form are more often an accident than a wish; say which and where."""
        ranked = self.formats.most_common()
        self.report.format = ranked[0][0] if ranked else ""
        if len(ranked) > 1:
            counts = ", ".join(f"{count} {form} (line {self.first_lines[form]} first)" for form, count in ranked)
            self.report.add(
                Fault(f"rows of different formats: {counts}", hint="Put one format into a file, or set dataset.format.")
            )
