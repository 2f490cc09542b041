"""The names of the bases: a hash of what goes into them."""

from pathlib import Path
from threading import Thread

import pytest

from testnode.images import bases
from testnode.images.bases import digest, pins_of_torch
from testnode.images.buildah import Buildah, pip_configuration

PINS = "accelerate==1.15.0\nnumpy==2.4.6 ; python_full_version < '3.12'\ntorch==2.13.0\ntorchvision==0.28.0\n"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("accelerate==1.15.0", "accelerate==1.16.0", True),
        ("torch==2.13.0", "torch==2.13.1", False),
        ("numpy==2.4.6", "numpy==2.5.0", False),
    ],
)
def test_only_what_torch_needs_makes_another_base(old: str, new: str, same: bool) -> None:  # noqa: FBT001
    assert (pins_of_torch(PINS) == pins_of_torch(PINS.replace(old, new))) is same


def test_contents_do_not_run_into_each_other() -> None:
    assert digest("ab", "c") != digest("a", "bc")


def test_a_base_that_is_there_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buildah, "has", lambda _self, _image: True)
    monkeypatch.setattr(bases, "constraints", lambda _root: PINS)
    buildah = Buildah(tmp_path)
    assert bases.debian(buildah).startswith("localhost/finetune/base-debian:")
    assert bases.cpu(buildah, tmp_path).startswith("localhost/finetune/base-cpu:")


def test_what_nobody_reads_is_removed(tmp_path: Path) -> None:
    (tmp_path / "usr/share/doc/bash").mkdir(parents=True)
    (tmp_path / "usr/share/zoneinfo").mkdir()
    bases.remove(tmp_path, bases.UNREAD)
    assert list((tmp_path / "usr/share/doc").iterdir()) == []
    assert (tmp_path / "usr/share/zoneinfo").is_dir()


def test_pip_asks_the_index_that_the_machine_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert "index-url" not in pip_configuration()
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    assert "index-url = https://index.example/simple\n" in pip_configuration()


def test_a_build_reads_the_machines_certificates_and_keeps_none(tmp_path: Path) -> None:
    mounts = Buildah(tmp_path).volumes()[1::2]
    assert [mount for mount in mounts if not mount.endswith(":ro")] == [f"{tmp_path}/ccache:/root/.cache/ccache"]


def test_one_build_at_a_time(tmp_path: Path) -> None:
    buildah, seen = Buildah(tmp_path), list[str]()

    def second() -> None:
        with buildah.alone():
            seen.append("second")

    with buildah.alone():
        thread = Thread(target=second)
        thread.start()
        seen.append("first")
    thread.join()
    assert seen == ["first", "second"]
