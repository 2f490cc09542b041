"""Is the GPU that was asked for really there, and does this torch have code for it?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def has_code_for(capability: tuple[int, int], architectures: Iterable[str]) -> bool:
    """Can a device of this capability run one of the architectures that torch was compiled for?

    Machine code (``sm_``) runs within its major version on the same or a later minor; PTX (``compute_``) on anything
    later; a suffix ``a`` means that very device alone.
    """
    for name in architectures:
        match = _ARCH.fullmatch(name)
        if match is None:
            continue
        kind, major, minor, suffix = match[1], int(match[2]), int(match[3]), match[4]
        fits = (major, minor) <= capability and (kind == "compute" or major == capability[0])
        if (major, minor) == capability if suffix == "a" else fits:
            return True
    return False


def require_device(device: str) -> None:
    """Raise GpuNotVisible unless training can really run where it was asked to."""
    if device != "cuda":
        return
    if not torch.cuda.is_available():
        raise StageError(
            "GpuNotVisible",
            f"The job asks for a GPU, but torch {torch.__version__} (CUDA {torch.version.cuda}) sees none.",
        )
    capability = torch.cuda.get_device_capability()
    if not has_code_for(capability, torch.cuda.get_arch_list()):
        known = ", ".join(torch.cuda.get_arch_list())
        raise StageError(
            "GpuNotVisible",
            f"{torch.cuda.get_device_name()} has compute capability {capability[0]}.{capability[1]}; "
            f"torch {torch.__version__} is compiled for {known}.",
        )
