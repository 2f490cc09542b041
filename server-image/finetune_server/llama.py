"""llama.cpp's own programs, as this image has them."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

from finetune_server.contract import llama_cpp

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger("finetune")

LAST_LINES = 8
"""How many lines of a program's output a message carries."""


def run_program(argv: list[str], what: str, env: dict[str, str] | None = None) -> list[str]:
    """Run a converter or quantizer to its end, its output in our log; returns the lines, raises ConversionFailed."""
    log.info("%s: %s", what, " ".join(argv))
    lines: list[str] = []
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - our own programs
        argv, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace", env=env
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                log.info("%s", lines[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise StageError("ConversionFailed", f"{what} ended with {process.returncode}: {last_lines(lines)}")
    return lines


def last_lines(lines: Sequence[str]) -> str:
    """The end of an output, for a message."""
    return " / ".join([line for line in lines if line.strip()][-LAST_LINES:])


def build() -> str:
    """The commit that the server was built from."""
    argv = [server(), "--version"]
    answer = subprocess.run(argv, capture_output=True, text=True, check=True, env=without_gpu())  # noqa: S603 - ours
    found = re.search(r"commit (\w+)", answer.stdout + answer.stderr)
    return found.group(1) if found else "unknown"


def without_gpu() -> dict[str, str]:
    """The environment for programs that compute nothing on a GPU.

    A CUDA build does not even start without a driver, and there is none where the image is built or in the export
    stage's pod: the toolkit's stand-in for it does.
    """
    folders = [os.environ.get("LD_LIBRARY_PATH", ""), str(llama_cpp() / "driver")]
    return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}


def known_architectures() -> frozenset[str]:
    """The architectures that this build can load."""
    path = llama_cpp() / "gguf-py" / "gguf" / "constants.py"
    spec = importlib.util.spec_from_file_location("gguf_constants", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    constants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(constants)
    return frozenset(constants.MODEL_ARCH_NAMES.values())


def converter() -> list[str]:
    """The start of the converter's command line: it runs in our own interpreter."""
    return [sys.executable, str(llama_cpp() / "convert_hf_to_gguf.py")]


def quantizer() -> str:
    """The quantizer."""
    return str(llama_cpp() / "bin" / "llama-quantize")


def server() -> str:
    """The server."""
    return str(llama_cpp() / "bin" / "llama-server")
