"""What the hub has is made once, and again only when it would come out otherwise."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from testnode import hub
from testnode.hub import content

if TYPE_CHECKING:
    from pathlib import Path

REPO = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The repositories that were made, in order; makers that write one file stand for those that need torch."""
    names: list[str] = []

    def maker(folder: Path) -> None:
        names.append(folder.name.removesuffix(".new"))
        (folder / "config.json").write_text("{}")

    models = SimpleNamespace(**dict.fromkeys(content.MODELS.values(), maker))
    monkeypatch.setitem(sys.modules, "testnode.hub.models", models)
    monkeypatch.setattr(hub, "models", models, raising=False)
    return names


def test_everything_is_made_the_first_time(tmp_path: Path, made: list[str]) -> None:
    content.prepare(tmp_path)
    assert made == [name.rpartition("/")[2] for name in content.MODELS]
    assert all((tmp_path / "models" / name / "config.json").exists() for name in content.MODELS)


def test_nothing_is_made_the_second_time(tmp_path: Path, made: list[str]) -> None:
    content.prepare(tmp_path)
    made.clear()
    content.prepare(tmp_path)
    assert made == []


def test_a_new_recipe_replaces_what_an_old_one_left(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content.prepare(tmp_path)
    made.clear()
    (tmp_path / "models" / REPO / "left-over.bin").touch()
    monkeypatch.setattr(content, "RECIPE", "next")
    content.prepare(tmp_path)
    assert len(made) == len(content.MODELS)
    assert not (tmp_path / "models" / REPO / "left-over.bin").exists()


def test_a_making_that_was_interrupted_starts_over(tmp_path: Path, made: list[str]) -> None:
    half = tmp_path / "models" / f"{REPO}.new"
    half.mkdir(parents=True)
    (half / "half.bin").touch()
    content.prepare(tmp_path)
    assert made[0] == REPO.rpartition("/")[2]
    assert not (tmp_path / "models" / REPO / "half.bin").exists()
    assert not half.exists()
