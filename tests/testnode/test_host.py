from pathlib import Path

import pytest

from testnode import host
from testnode.settings import Settings


def test_a_node_that_was_never_up_left_nothing_to_recall(tmp_path: Path) -> None:
    assert host.recall(Settings(tmp_path)) is None


def test_a_folder_that_holds_only_folders_goes(tmp_path: Path) -> None:
    (tmp_path / "made" / "by" / "kubelet").mkdir(parents=True)
    host._remove_unused(tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_folder_that_holds_a_file_stays_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "precious").touch()
    host._remove_unused(tmp_path / "made")
    assert (tmp_path / "made" / "precious").exists()
    assert f"{tmp_path / 'made'} was not there before" in capsys.readouterr().out


def test_a_kernel_setting_that_would_not_be_put_back_is_refused() -> None:
    with pytest.raises(ValueError, match="would never be put back"):
        host.set_sysctl("vm/swappiness", "1")
