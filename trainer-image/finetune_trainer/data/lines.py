"""From the bytes of a file to its rows, each with the line on which it starts.

The content decides, not the file's name: lines of JSON, one array, an array in a wrapper, any of them under gzip.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from finetune_trainer.data import documents
from finetune_trainer.data.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 64 * 1024 * 1024
MAX_DOCUMENT = 1024 * 1024 * 1024
"""An array or a wrapper is read as a whole; lines are not."""
_SAVE_AS_UTF8 = "Re-save the file as UTF-8."
_BOM = b"\xef\xbb\xbf"
_MAGIC = (
    (b"PAR1", "a Parquet file", "Export it as JSON Lines."),
    (b"ARROW1", "an Arrow file", "Export it as JSON Lines."),
    (b"PK\x03\x04", "a zip archive or spreadsheet", "Unpack or export it as JSON Lines."),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "Fetch the file with `git lfs pull`."),
    (b"<", "a web page or XML", "Check the address: it may lead to a login or error page."),
    (b"\xff\xfe", "UTF-16", _SAVE_AS_UTF8),
    (b"\xfe\xff", "UTF-16", _SAVE_AS_UTF8),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row as JSON, or why it is none."""

    number: int
    value: object = None
    fault: Fault | None = None


def read(source: Path | bytes) -> Iterator[Line]:
    """Every row. Raises Fault for what makes the rest of the file unreadable."""
    with source.open("rb") if isinstance(source, Path) else io.BytesIO(source) as raw:
        gzipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not gzipped:
            yield from _rows(raw)
            return
        try:
            yield from _rows(io.BufferedReader(gzip.GzipFile(fileobj=raw)))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Fault(f"the gzip stream is damaged or cut off ({error})", hint="Copy the file again.") from error


def _rows(stream: IO[bytes]) -> Iterator[Line]:
    start = _skip_mark(stream)
    for magic, what, hint in _MAGIC:
        if start.startswith(magic):
            raise Fault(f"the file is {what}", hint=hint)
    if start.startswith(b"["):
        yield from _whole(documents.array(_text(stream.read(MAX_DOCUMENT + 1))))
    else:
        yield from _lines(stream)


def _skip_mark(stream: IO[bytes]) -> bytes:
    """Step over a byte-order mark; returns the first bytes that are not white space."""
    head = stream.read(4096)
    marked = head.startswith(_BOM)
    stream.seek(len(_BOM) if marked else 0)
    return head.removeprefix(_BOM).lstrip()


def _text(data: bytes, offset: int = 0) -> str:
    if len(data) > MAX_DOCUMENT:
        raise Fault(
            f"a JSON array of more than {MAX_DOCUMENT >> 20} MiB", hint="Write it as JSON Lines: one object per line."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        where = offset + error.start
        raise Fault(
            f"file is not UTF-8 (byte 0x{data[error.start]:02X} at offset {where})", hint=_SAVE_AS_UTF8
        ) from error


def _whole(found: Iterator[tuple[int, object]]) -> Iterator[Line]:
    for number, value in found:
        yield Line(number, value)


def _lines(stream: IO[bytes]) -> Iterator[Line]:
    """One object per line; a single object over many lines is read as a whole."""
    number, seen = 0, False
    while raw := _line(stream, number + 1):
        number += 1
        text = _text(raw, stream.tell() - len(raw))
        if not text.strip():
            continue
        if not seen and documents.spans_lines(text):
            yield from _whole(documents.single(text + _text(stream.read(MAX_DOCUMENT + 1)), number))
            return
        line = _parse(number, text)
        if not seen:
            _must_be_json(number, text)
            if documents.wrapper_key(line.value):
                yield from _whole(documents.single(text + _text(stream.read(MAX_DOCUMENT + 1)), number))
                return
        seen = True
        yield line


def _line(stream: IO[bytes], number: int) -> bytes:
    raw = stream.readline(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        raise Fault(f"the line is longer than {MAX_LINE >> 20} MiB", hint="Write one row per line.", line=number)
    return raw


def _must_be_json(number: int, text: str) -> None:
    """A first line that is no JSON object means that no line is: one sentence instead of thousands."""
    if text.lstrip().startswith("{"):
        return
    separator = next(
        (name for sign, name in ((",", "commas"), ("\t", "tabs"), (";", "semicolons")) if sign in text), None
    )
    what = f"it looks like a table separated by {separator} (CSV)" if separator else "no object starts here"
    raise Fault(f"this is not JSON: {what}", hint="Write JSON Lines: one object per line.", line=number)


def _parse(number: int, text: str) -> Line:
    try:
        return Line(number, documents.loads(text))
    except Fault as fault:
        if text.endswith("\n") or not documents.unfinished(text):
            return Line(number, fault=fault)
    hint = "The copy was interrupted: copy the file again."
    return Line(number, fault=Fault("the last line is cut off in the middle", hint=hint))
