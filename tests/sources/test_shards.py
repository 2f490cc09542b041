"""Weights that are not what their name says are named as what they are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from finetune_trainer.sources import shards

from tests.support import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = Path(__file__).parent / "cases"
FIRST = "model-00001-of-00002.safetensors"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5000000\n"


def test_a_whole_file_gives_its_tensors() -> None:
    assert shards.header(CASES / "b05_good.safetensors") == [shards.Tensor("w", (4,), 16)]


def test_a_whole_model_gives_all_of_them(tmp_path: Path) -> None:
    tensors = shards.check(tiny_model.write(tmp_path))
    assert len(tensors) == 2 * len(tiny_model.SHAPES) + 1


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _pointer(path: Path) -> None:
    path.write_bytes(POINTER)


def _page(path: Path) -> None:
    shutil.copy(CASES / "b05_html.safetensors", path)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut data": (_cut, "and {size} are expected: it is cut off"),
    "a cut header": (_short, "is cut off or no safetensors file: 40 bytes"),
    "something behind the end": (_longer, "it is too long"),
    "a pointer": (_pointer, "is a Git LFS pointer of 69 bytes, not the file of 5000000 bytes: run `git lfs pull`"),
    "a web page": (_page, "is a web page of 33 bytes"),
    "nothing": (_emptied, "is empty"),
    "no file": (Path.unlink, "is missing, though the index names it"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    damage, sentence = DAMAGES[name]
    shard = tiny_model.write(tmp_path) / FIRST
    size = shard.stat().st_size
    damage(shard)
    with pytest.raises(shards.Damaged) as told:
        shards.check(tmp_path)
    assert str(told.value).startswith(FIRST)
    assert sentence.format(size=size) in str(told.value)
    assert told.value.path == shard


def test_says_the_sizes_of_a_cut_file() -> None:
    with pytest.raises(shards.Damaged, match="has 82 bytes, and 88 are expected: it is cut off"):
        shards.header(CASES / "b05_cut_data.safetensors")


def test_an_index_may_not_name_tensors_that_are_not_there(tmp_path: Path) -> None:
    tiny_model.write(tmp_path)
    tiny_model.write_json(tmp_path / shards.INDEX, {"weight_map": {"lm_head.weight": FIRST}})
    with pytest.raises(shards.Damaged, match=r"names 1 tensors that no shard has, lm_head.weight first"):
        shards.check(tmp_path)


def test_an_index_may_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    tiny_model.write_json(tmp_path / shards.INDEX, {"weight_map": {"w": "../secret"}})
    with pytest.raises(shards.Damaged, match="outside of the model's folder"):
        shards.check(tmp_path)
