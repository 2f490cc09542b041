"""Puts the eager loader where transformers opens its files, and proves afterwards that it was used."""

from __future__ import annotations

import importlib
import json
import logging
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from finetune_trainer.loading.eager import EagerFile
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

log = logging.getLogger("finetune")

MUST_HAVE = ("transformers.modeling_utils", "transformers.modeling_layers")
"""transformers opens weights here; where one of them does not, the installed version works in another way."""
NAME = "safe_open"


@dataclass
class Served:
    """What went through the eager loader."""

    files: set[Path] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, name: str) -> None:
        """A tensor was read."""
        with self._lock:
            self.tensors.add(name)

    def require(self, folder: Path) -> None:
        """Raise LoaderBypassed unless every shard of the model came through here."""
        missing = sorted(path.name for path in shards(folder) - self.files)
        if missing or not self.tensors:
            what = ", ".join(missing) or "all tensors"
            raise StageError("LoaderBypassed", f"transformers loaded {what} of {folder} without the eager loader.")
        log.info("Loaded %d tensors out of %d files with the eager loader.", len(self.tensors), len(self.files))


def shards(folder: Path) -> set[Path]:
    """The model's weight files: those of the index, or the single one."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return {(folder / "model.safetensors").resolve()}
    names = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
    return {(folder / name).resolve() for name in names}


@contextmanager
def eager_loading(device: str) -> Iterator[Served]:
    """Within this block, transformers reads weights through the eager loader, straight to ``device``.

    transformers always asks for "cpu" and moves each tensor later; the device is therefore said here.
    """
    served = Served()

    def safe_open(filename: Any, framework: str = "pt", device: Any = "cpu", **_options: object) -> EagerFile:  # noqa: ARG001 - safetensors' signature
        path = Path(filename).resolve()
        served.files.add(path)
        return EagerFile(path, target, served.read)

    target = torch.device(device)
    modules = _patch_points()
    before = {module: vars(module)[NAME] for module in modules}
    for module in modules:
        setattr(module, NAME, safe_open)
    try:
        yield served
    finally:
        for module, original in before.items():
            setattr(module, NAME, original)


def _patch_points() -> list[ModuleType]:
    """Every loaded module of transformers that opens safetensors, wrapped by Unsloth or not."""
    for name in MUST_HAVE:
        if NAME not in vars(importlib.import_module(name)):
            raise StageError("LoaderBypassed", f"{name} has no {NAME}: this transformers opens weights elsewhere.")
    modules = [module for name, module in sys.modules.items() if name.startswith("transformers.")]
    return [module for module in modules if NAME in vars(module)]
