"""Writes every file that is made out of code; with ``--check``, says which ones are out of date.

One truth for each fact: CRDs and their reference come from the models, the table of failures from
``finetune_trainer.contract.reasons``, the values' reference from the chart's own comments, the locked requirements
of the images from ``uv.lock``, the quickstart from its script.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference
from finetune_operator.api import crd

ROOT = Path(__file__).resolve().parent.parent

COMMANDS = (
    [sys.executable, "-m", "testnode.images", "requirements"],
    [sys.executable, "examples/quickstart/make_dataset.py"],
)
"""Generators of their own, which know ``--check`` too."""


def files() -> dict[Path, str]:
    """Every generated file → its text."""
    return crd.files(ROOT) | reference.files(ROOT)


def stale() -> list[str]:
    """The generated files whose text is not what the code says."""
    return [
        str(path.relative_to(ROOT))
        for path, text in files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def check() -> int:
    """Compare, and name what differs."""
    old = stale()
    for path in old:
        print(f"generate: {path} is out of date: run `make generate` and commit what it writes")
    failed = [
        command for command in COMMANDS if subprocess.run([*command, "--check"], cwd=ROOT, check=False).returncode
    ]
    return 1 if old or failed else 0


def write() -> int:
    """Write them all."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for command in COMMANDS:
        subprocess.run(command, cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv else write())
