"""Is the GPU that was asked for really there, does this torch have code for it, and is its memory enough?"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from finetune_trainer.contract.runspec import RunSpec

GIB = 2**30
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


@contextmanager
def within_memory(spec: RunSpec) -> Iterator[None]:
    """Within this block, running out of device memory is MemoryPlanExceeded, with the numbers."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        training = spec.training
        free, total = torch.cuda.mem_get_info()
        taken, planned = torch.cuda.max_memory_reserved(), spec.memory.device_bytes
        raise StageError(
            "MemoryPlanExceeded",
            f"{training.batch_size} rows of {training.max_length} tokens do not fit: {taken / GIB:.1f} GiB were taken "
            f"when memory ran out, {planned / GIB:.1f} GiB were planned, "
            f"{free / GIB:.1f} of {total / GIB:.1f} GiB are free.",
        ) from error
