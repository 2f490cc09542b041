"""One folder of Hugging Face files → one GGUF file, whole or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.files import settle, settle_folder
from finetune_trainer.stage import StageError

from finetune_server.gguf import NotGguf, read_gguf
from finetune_server.llama import converter, quantizer, run_program, without_gpu

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.contract.runspec import Quantization

    from finetune_server.gguf import Gguf

DIRECT = frozenset({"f16", "bf16", "q8_0"})
"""What the converter writes by itself; the others go through the quantizer."""
_FALLBACKS = re.compile(r"WARNING: (\d+) of \d+ tensor\(s\) required fallback quantization")


@dataclass(frozen=True)
class Converted:
    """What came out."""

    header: Gguf
    fallback_tensors: int


def to_gguf(model: Path, target: Path, quantization: Quantization) -> Converted:
    """Convert and quantize under other names; the target appears by rename when everything was right."""
    partial, wide = target.with_name(target.name + ".partial"), target.with_name(target.name + ".16bit")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        lines = _write(model, wide, partial, quantization)
        header = _settled(partial)
        partial.replace(target)
    finally:
        for path in (partial, wide):
            path.unlink(missing_ok=True)
    settle_folder(target.parent)
    return Converted(header, fallbacks(lines))


def fallbacks(lines: list[str]) -> int:
    """How many tensors took a larger type, as the quantizer says."""
    found = [int(match.group(1)) for line in lines if (match := _FALLBACKS.search(line))]
    return sum(found)


def _write(model: Path, wide: Path, partial: Path, quantization: Quantization) -> list[str]:
    if quantization in DIRECT:
        return _convert(model, partial, quantization)
    _convert(model, wide, "auto")
    return run_program([quantizer(), str(wide), str(partial), quantization], "llama-quantize", without_gpu())


def _convert(model: Path, target: Path, outtype: str) -> list[str]:
    argv = [*converter(), str(model), "--outfile", str(target), "--outtype", outtype]
    return run_program(argv, "convert_hf_to_gguf.py")


def _settled(path: Path) -> Gguf:
    """Bring the file to the disk and read it back."""
    with path.open("rb+") as file:
        settle(file)
    try:
        return read_gguf(path)
    except NotGguf as error:
        raise StageError("ConversionFailed", f"The converted file is not whole: {error}") from error
