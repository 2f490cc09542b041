"""The environment variables of a training process: what is removed, what is set. Pure but for ``apply``.

Libraries read most of these when they are imported, so ``apply`` runs before torch is.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec

log = logging.getLogger("finetune")

STALE = (
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
)
STALE_PREFIXES = ("NCCL_", "OMPI_", "MPI_", "PMI", "ACCELERATE_", "TORCHELASTIC_", "SLURM_", "FSDP_")
"""Left over from a launcher, each of these makes torch or accelerate wait for ranks that do not exist."""

COMMON = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # A progress bar in a pod's log is one endless line.
    "TQDM_DISABLE": "1",
    # Our own callback speaks the same protocol with more numbers.
    "DISABLE_KUBEFLOW_INTEGRATION": "TRUE",
    "UNSLOTH_DISABLE_STATISTICS": "1",
    # Rows come with their labels; Unsloth must not repack them.
    "UNSLOTH_DISABLE_AUTO_PADDING_FREE": "1",
    "UNSLOTH_DATASET_NUM_PROC": "0",
    "UNSLOTH_LLAMA_CPP_OFFLINE": "1",
}
CPU = {
    "UNSLOTH_FORCE_CPU": "1",
    "CUDA_VISIBLE_DEVICES": "",
    # Threads that spin while they wait take the cores away from those that work.
    "OMP_WAIT_POLICY": "PASSIVE",
}
CUDA = {
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",
    # A GPU that got lost must be an error, never a CPU run.
    "UNSLOTH_DISABLE_CPU_FALLBACK": "1",
}


def training_environment(
    env: Mapping[str, str], device: str, compiled: str, home: str, ptxas: str | None
) -> tuple[dict[str, str], list[str]]:
    """The environment to train in, and the names that were removed from ``env``.

    Args:
        env: what the process was started with.
        device: cpu or cuda.
        compiled: folder for compiled kernels; it outlives the pod.
        home: HF_HOME without anybody's accelerate configuration.
        ptxas: the assembler of the installed CUDA toolkit (Triton's own may not know the GPU), if there is one.
    """
    removed = sorted(name for name in env if name in STALE or name.startswith(STALE_PREFIXES))
    kept = {name: value for name, value in env.items() if name not in removed}
    folders = {
        "HF_HOME": home,
        "UNSLOTH_COMPILE_LOCATION": f"{compiled}/unsloth",
        "TRITON_CACHE_DIR": f"{compiled}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{compiled}/inductor",
    }
    assembler = {"TRITON_PTXAS_PATH": ptxas} if ptxas else {}
    return kept | COMMON | (CUDA if device == "cuda" else CPU) | folders | assembler, removed


def apply(spec: RunSpec, paths: RunPaths) -> None:
    """Change this process's environment; says which leftovers it removed."""
    image = hashlib.sha256(spec.trainer_image.encode()).hexdigest()[:12]
    ptxas = Path("/usr/local/cuda/bin/ptxas")
    wanted, removed = training_environment(
        os.environ,
        spec.device,
        compiled=str(paths.cache / "compiled" / image),
        home=f"{os.environ.get('TMPDIR', '/tmp')}/hf",  # noqa: S108 - the pod's own emptyDir
        ptxas=str(ptxas) if ptxas.exists() else None,
    )
    if removed:
        log.info("Removed variables of a distributed launch that this run is not part of: %s.", ", ".join(removed))
    for name in removed:
        del os.environ[name]
    os.environ.update(wanted)
