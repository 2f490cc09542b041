"""pvc:// and configMap:// sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_trainer.sources.mounts import inside
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("no")
    root = tmp_path / "claim"
    (root / "models/tiny").mkdir(parents=True)
    (root / "rows.jsonl").write_text("{}")
    (root / "out").symlink_to(tmp_path)
    return root


def test_finds_a_file(root: Path) -> None:
    assert inside(root, "rows.jsonl", "DatasetNotFound", "pvc://c/rows.jsonl").read_text() == "{}"


def test_follows_the_links_of_a_config_map(root: Path) -> None:
    (root / "..data").mkdir()
    (root / "..data/key").write_text("[]")
    (root / "key").symlink_to("..data/key")
    assert inside(root, "key", "DatasetNotFound", "configMap://c/key").read_text() == "[]"


@pytest.mark.parametrize("path", ["../secret", "models/../../secret", "out/secret", "/../secret"])
def test_does_not_leave_the_volume(root: Path, path: str) -> None:
    with pytest.raises(StageError, match="leads out of the volume") as told:
        inside(root, path, "DatasetNotFound", f"pvc://c/{path}")
    assert told.value.reason.name == "InvalidSpec"


def test_says_what_there_is_instead(root: Path) -> None:
    with pytest.raises(StageError, match=r"pvc://c/models/tny does not exist. The folder 'models' has: tiny/.") as told:
        inside(root, "models/tny", "ModelNotFound", "pvc://c/models/tny")
    assert told.value.reason.name == "ModelNotFound"
