"""Small decisions: does this torch run on that GPU, how many steps, how rows are padded."""

from __future__ import annotations

import pytest
from finetune_trainer.contract.runspec import TrainingSpec
from finetune_trainer.train.device import has_code_for
from finetune_trainer.train.rows import PadRight, total_steps


@pytest.mark.parametrize(
    ("capability", "architectures", "runs"),
    [
        ((9, 0), ["sm_80", "sm_90"], True),
        ((8, 9), ["sm_80"], True),
        ((9, 0), ["sm_80"], False),
        ((9, 0), ["sm_80", "compute_80"], True),
        ((12, 1), ["sm_120"], True),
        ((12, 1), ["sm_100"], False),
        ((12, 1), ["sm_90", "compute_90"], True),
        ((9, 0), ["sm_90a"], True),
        ((9, 1), ["sm_90a"], False),
        ((12, 1), ["sm_120f"], True),
        ((8, 0), ["sm_90", "compute_90"], False),
        ((8, 0), ["gfx90a"], False),
    ],
)
def test_code_for_a_device(*, capability: tuple[int, int], architectures: list[str], runs: bool) -> None:
    assert has_code_for(capability, architectures) is runs


@pytest.mark.parametrize(
    ("training", "rows", "steps"),
    [
        ({"max_steps": 40}, 1000, 40),
        ({"max_steps": 40, "epochs": 1}, 8, 40),
        ({"epochs": 3, "batch_size": 2, "gradient_accumulation": 4}, 16, 6),
        ({"epochs": 3, "batch_size": 2, "gradient_accumulation": 4}, 17, 9),
        ({"epochs": 0.5, "batch_size": 2, "gradient_accumulation": 4}, 16, 1),
        ({"epochs": 0.01, "batch_size": 2, "gradient_accumulation": 4}, 16, 1),
        ({"batch_size": 1, "gradient_accumulation": 1}, 3, 3),
    ],
)
def test_steps_of_a_run(training: dict[str, float], rows: int, steps: int) -> None:
    assert total_steps(TrainingSpec.model_validate(training), rows) == steps


def test_rows_are_padded_right_and_padding_is_neither_read_nor_learned() -> None:
    batch = PadRight(9)([{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}, {"input_ids": [5], "labels": [5]}])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [5, 9, 9]]
    assert batch["labels"].tolist() == [[-100, 6, 7], [5, -100, -100]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
