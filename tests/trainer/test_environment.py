"""Which variables a training process starts with."""

from __future__ import annotations

import pytest
from finetune_trainer.train.environment import training_environment


def clean(env: dict[str, str], device: str = "cpu", ptxas: str | None = None) -> tuple[dict[str, str], list[str]]:
    return training_environment(env, device, compiled="/cache/compiled/abc", home="/tmp/hf", ptxas=ptxas)  # noqa: S108


@pytest.mark.parametrize(
    "name",
    ["WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "NCCL_DEBUG", "OMPI_COMM_WORLD_SIZE",
     "MPI_LOCALRANKID", "PMIX_RANK", "PMI_SIZE", "ACCELERATE_USE_FSDP", "TORCHELASTIC_RUN_ID"],
)  # fmt: skip
def test_leftovers_of_a_launcher_are_removed_and_named(name: str) -> None:
    env, removed = clean({name: "1", "PATH": "/bin"})
    assert removed == [name]
    assert name not in env
    assert env["PATH"] == "/bin"


@pytest.mark.parametrize("name", ["RANKING", "WORLD", "HOME", "MPICH", "KUBEFLOW_TRAINER_SERVER_URL"])
def test_names_that_only_look_alike_stay(name: str) -> None:
    env, removed = clean({name: "1"})
    assert removed == []
    assert env[name] == "1"


@pytest.mark.parametrize(
    ("device", "name", "value"),
    [
        ("cpu", "OMP_WAIT_POLICY", "PASSIVE"),
        ("cpu", "UNSLOTH_FORCE_CPU", "1"),
        ("cpu", "PYTORCH_ALLOC_CONF", None),
        ("cuda", "PYTORCH_ALLOC_CONF", "expandable_segments:True"),
        ("cuda", "UNSLOTH_DISABLE_CPU_FALLBACK", "1"),
        ("cuda", "UNSLOTH_FORCE_CPU", None),
        ("cuda", "HF_HUB_OFFLINE", "1"),
        ("cuda", "DISABLE_KUBEFLOW_INTEGRATION", "TRUE"),
        ("cuda", "UNSLOTH_COMPILE_LOCATION", "/cache/compiled/abc/unsloth"),
        ("cuda", "HF_HOME", "/tmp/hf"),  # noqa: S108
        ("cuda", "TRITON_PTXAS_PATH", None),
    ],
)
def test_what_is_set_fits_the_device(device: str, name: str, value: str | None) -> None:
    assert clean({"HF_HOME": "/cache/hf"}, device)[0].get(name) == value


def test_the_toolkits_assembler_is_used_where_there_is_one() -> None:
    assert clean({}, "cuda", ptxas="/usr/local/cuda/bin/ptxas")[0]["TRITON_PTXAS_PATH"] == "/usr/local/cuda/bin/ptxas"
