"""From bytes to rows: what a file is, whatever it is called."""

from __future__ import annotations

import gzip
import json

import pytest
from finetune_trainer.contract.runspec import DatasetSpec
from finetune_trainer.data import Report, check

SPEC = DatasetSpec(source="configMap://rows/data.jsonl")
ROW = {"messages": [{"role": "user", "content": "Wind?"}, {"role": "assistant", "content": "North."}]}
LINE = json.dumps(ROW)


def read(data: bytes | str) -> Report:
    return check(data.encode() if isinstance(data, str) else data, "rows.jsonl", SPEC)


READS: dict[str, bytes | str] = {
    "one line": LINE,
    "blank lines between rows": f"\n{LINE}\n\n  \n",
    "no newline at the end": LINE,
    "gzip": gzip.compress(LINE.encode()),
    "an array": f"[{LINE}]",
    "an array after blank lines": f"\n\n [\n{LINE}\n]\n",
    "a mark before an array": b"\xef\xbb\xbf[" + LINE.encode() + b"]",
    "a wrapper over many lines": json.dumps({"version": 1, "rows": [ROW]}, indent=2),
    "one object over many lines": json.dumps(ROW, indent=2),
    "a wrapper under gzip": gzip.compress(json.dumps({"train": [ROW]}).encode()),
    "a number that JSON does not know, in a column that nobody uses": '{"score": NaN, ' + LINE[1:],
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    report = read(READS[name])
    assert report.failure() is None
    assert [row.messages[1].content for row in report.conversations] == ["North."]


SAYS: dict[str, tuple[bytes | str, str]] = {
    "UTF-16": (("﻿" + LINE).encode("utf-16-le"), "the file is UTF-16. Re-save the file as UTF-8."),
    "a byte of another encoding on line 2": (LINE.encode() + b"\n\xff\n", f"(byte 0xFF at offset {len(LINE) + 1})"),
    "a table": (
        "question,answer\nWind?,North.\n",
        "line 1: this is not JSON: it looks like a table separated by commas",
    ),
    "prose": ("Wind North\n", "line 1: this is not JSON: no object starts here"),
    "a cut last line": (
        f"{LINE}\n{LINE[:40]}",
        "line 2: the last line is cut off in the middle. The copy was interrupted",
    ),
    "cut inside of a key": (f"{LINE}\n{LINE[:5]}", "line 2: the last line is cut off"),
    "a broken line in the middle": (f"{LINE}\n{{oops}}\n{LINE}", "line 2: not JSON"),
    "a cut array": (f"[{LINE},\n{LINE}", "line 2: the array is cut off or a comma is missing"),
    "text after an array": (f"[{LINE}]\n{LINE}", "line 2: text after the array"),
    "an array with a broken element": (f"[{LINE},\n{{oops}}]", "line 2: not JSON"),
    "a cut gzip": (gzip.compress(LINE.encode())[:-12], "the gzip stream is damaged or cut off"),
    "a web page": ("<!doctype html><title>404</title>", "the file is a web page or XML"),
    "a pointer": (
        "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
        "the file is a Git LFS pointer",
    ),
    "Parquet": (b"PAR1\x15\x04", "the file is a Parquet file"),
    "a spreadsheet": (b"PK\x03\x04\x14", "the file is a zip archive or spreadsheet"),
    "a key twice": ('{"text": "a", "text": "b"}\n', "line 1: the key 'text' stands twice in one object"),
    "a list as a row": (f'{LINE}\n["a"]', "line 2: a row must be an object, this is a list"),
    "half of a character": ('{"text": "\\ud800"}', "line 1, text: half of a surrogate pair"),
    "an endless number": ('{"text": ' + "1" * 10_000 + "}", "line 1: JSON that cannot be read"),
    "deep nesting": ('{"text": ' + "[" * 100_000, "line 1:"),
}


@pytest.mark.parametrize("name", SAYS)
def test_says_what_the_file_is(name: str) -> None:
    data, sentence = SAYS[name]
    failure = read(data).failure()
    assert failure
    assert failure.reason == "DatasetInvalid"
    assert sentence in failure.message


def test_rows_of_an_array_know_their_lines() -> None:
    text = "[\n" + LINE + ",\n\n" + LINE + ",\n" + LINE + "]"
    assert [row.line for row in read(text).conversations] == [2, 4, 5]


def test_a_line_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finetune_trainer.data.lines.MAX_LINE", 1024 * 1024)
    failure = read(json.dumps({"text": "a" * 1024 * 1024})).failure()
    assert failure
    assert "line 1: the line is longer than 1 MiB" in failure.message


def test_twenty_problems_are_told_and_the_others_counted() -> None:
    report = read("\n".join(['{"text": 1}'] * 25))
    failure = report.failure()
    assert failure
    assert len(report.problems) == 20
    assert failure.message.startswith("rows.jsonl: 25 problems. line 1, text: must be text, this is a number.")
    assert failure.message.endswith("… and 5 more.")
