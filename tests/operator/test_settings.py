from __future__ import annotations

from pathlib import Path

import pytest
from finetune_operator.settings import VARIABLES, SettingsError, read

CHART = Path(__file__).parents[2] / "charts" / "finetune-operator" / "templates" / "deployment.yaml"
NEEDED = {
    "FINETUNE_OPERATOR_NAMESPACE": "finetune-system",
    "FINETUNE_TRAINER_IMAGE": "trainer:1",
    "FINETUNE_SERVER_IMAGE": "server:1",
    "FINETUNE_PROGRESS_URL": "https://finetune-operator.finetune-system.svc:8443/v1/progress",
}


def test_what_must_be_set_is_enough() -> None:
    found = read(NEEDED)
    assert found.core.operator_namespace == "finetune-system"
    assert found.core.memory_floor_bytes == 12 * 2**30
    assert found.core.hub_endpoint is None
    assert found.watch_namespace is None
    assert found.log_level == "INFO"


def test_everything_can_be_said() -> None:
    found = read(
        NEEDED
        | {
            "FINETUNE_IMAGE_PULL_SECRETS": "one, two",
            "FINETUNE_ALLOW_PRIVATE_ADDRESSES": "true",
            "FINETUNE_HUB_ENDPOINT": "http://hub",
            "FINETUNE_MEMORY_FLOOR": "512Mi",
            "FINETUNE_STORAGE_CLASS": "fast",
            "FINETUNE_WATCH_NAMESPACE": "team",
        }
    )
    assert found.core.image_pull_secrets == ("one", "two")
    assert found.core.allow_private_addresses
    assert found.core.hub_endpoint == "http://hub"
    assert found.core.memory_floor_bytes == 2**29
    assert found.core.storage_class == "fast"
    assert found.watch_namespace == "team"


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is not set"):
        read({key: value for key, value in NEEDED.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("FINETUNE_DEFAULT_PLATFORM", "gpu", "is not one of auto, dgx-spark, nvidia-gpu, cpu"),
        ("FINETUNE_IMAGE_PULL_POLICY", "Sometimes", "is not one of IfNotPresent, Always, Never"),
        ("FINETUNE_ALLOW_PRIVATE_ADDRESSES", "yes", "is not one of true, false"),
        ("FINETUNE_LOG_LEVEL", "LOUD", "is not one of DEBUG, INFO"),
        ("FINETUNE_MEMORY_FLOOR", "12 GB", "is not an amount: write it like 12Gi"),
        ("FINETUNE_CACHE_SIZE", "much", "is not an amount"),
    ],
)
def test_a_wrong_value_is_said(name: str, value: str, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        read(NEEDED | {name: value})


def test_the_chart_sets_exactly_these() -> None:
    lines = CHART.read_text().splitlines()
    names = [line.split("name:")[1].strip() for line in lines if "name: FINETUNE_" in line]
    assert sorted(names) == sorted(variable.name for variable in VARIABLES)


def test_every_variable_says_what_it_means() -> None:
    assert all(variable.meaning.endswith((".", "?")) for variable in VARIABLES)
