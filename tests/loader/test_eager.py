"""The eager loader gives what transformers' own would give, owns what it gives, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import torch
from finetune_trainer.loading.eager import DTYPES, EagerFile
from finetune_trainer.loading.layout import read_layout
from finetune_trainer.stage import StageError
from safetensors import safe_open
from safetensors.torch import save_file

if TYPE_CHECKING:
    from pathlib import Path

CPU = torch.device("cpu")
PACKED = {"F4"}
"""Two numbers in a byte: safetensors' Python writer does not make them."""


def open_eager(path: Path) -> EagerFile:
    return EagerFile(path, CPU, lambda _name: None)


def bits(tensor: torch.Tensor) -> bytes:
    raw: bytes = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return raw


def random_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    size = torch.empty(shape, dtype=dtype).nbytes
    top = 2 if dtype == torch.bool else 256
    return torch.randint(0, top, (size,), dtype=torch.uint8).view(dtype).view(shape)


@pytest.mark.parametrize("name", sorted(DTYPES.keys() - PACKED))
def test_every_dtype_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    tensors = {
        "matrix": random_bytes((7, 5), DTYPES[name]),
        "scalar": random_bytes((), DTYPES[name]),
        "none": random_bytes((0, 3), DTYPES[name]),
    }
    save_file(tensors, path)
    ours = open_eager(path)
    with safe_open(path, framework="pt") as theirs:
        assert sorted(ours.keys()) == sorted(theirs.keys())
        for key in theirs.keys():  # noqa: SIM118 - safe_open is no dict
            expected, got = theirs.get_tensor(key), ours.get_tensor(key)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            assert bits(got) == bits(expected)
            assert ours.get_slice(key).get_dtype() == theirs.get_slice(key).get_dtype()
            assert ours.get_slice(key).get_shape() == theirs.get_slice(key).get_shape()


def test_four_bit_numbers_come_back_two_to_a_byte(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    head = b'{"w":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]}}'
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes([1, 2, 3, 4]))
    with safe_open(path, framework="pt") as theirs:
        expected = theirs.get_tensor("w")
    got = open_eager(path).get_tensor("w")
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.view(torch.uint8).tolist() == expected.view(torch.uint8).tolist()


@pytest.mark.parametrize("index", [slice(1, 3), (slice(None), slice(0, 2)), 2, Ellipsis])
def test_slices_are_those_of_the_tensor(index: Any, tmp_path: Path) -> None:
    whole = torch.arange(20).reshape(4, 5)
    save_file({"w": whole}, tmp_path / "m.safetensors")
    part = open_eager(tmp_path / "m.safetensors").get_slice("w")[index]
    assert torch.equal(part, whole[index])


def test_nothing_is_read_before_it_is_indexed(tmp_path: Path) -> None:
    save_file({"w": torch.ones(3)}, tmp_path / "m.safetensors")
    read: list[str] = []
    file = EagerFile(tmp_path / "m.safetensors", CPU, read.append)
    part = file.get_slice("w")
    assert read == []
    part[...]
    assert read == ["w"]


def test_every_tensor_owns_its_storage(tmp_path: Path) -> None:
    save_file({"w": torch.ones(1000)}, tmp_path / "m.safetensors")
    part = open_eager(tmp_path / "m.safetensors").get_slice("w")
    first, second = part[...], part[...]
    second.zero_()
    assert first.sum() == 1000


def test_slices_outlive_the_file_handle(tmp_path: Path) -> None:
    save_file({"w": torch.ones(3)}, tmp_path / "m.safetensors")
    with open_eager(tmp_path / "m.safetensors") as file:
        part = file.get_slice("w")
    del file
    assert part[...].sum() == 3


def test_four_threads_do_not_disturb_one_another(tmp_path: Path) -> None:
    tensors = {f"w{n}": torch.full((50_000,), n, dtype=torch.int32) for n in range(64)}
    save_file(tensors, tmp_path / "m.safetensors")
    file = open_eager(tmp_path / "m.safetensors")
    start = threading.Barrier(4)

    def read(number: int) -> bool:
        if number < 4:
            start.wait(5)
        return bool(torch.equal(file.get_tensor(f"w{number}"), tensors[f"w{number}"]))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(64)))


def good(path: Path) -> bytes:
    save_file({"w": torch.ones(1000)}, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (lambda data: data[:-10], r"it has \d+ bytes, its head says \d+"),
        (lambda data: data + b"x", r"it has \d+ bytes, its head says \d+"),
        (lambda data: data[:20], "it has 20 bytes and no safetensors head"),
        (lambda _data: b"", "it has 0 bytes and no safetensors head"),
        (lambda data: data[:8] + b"?" + data[9:], "its head is not JSON"),
        (
            lambda _data: b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
            "a Git LFS pointer of 63 bytes",
        ),
        (lambda _data: b"<!DOCTYPE html><html><body>Sign in</body></html>", "a web page of 48 bytes"),
        (lambda _data: b"GGUF\x03\x00\x00\x00" + b"\x01" * 40, "a GGUF file"),
        (lambda _data: b"PK\x03\x04" + b"\x01" * 40, "a zip archive"),
    ],
    ids=["cut", "too long", "cut in its head", "empty", "damaged head", "LFS pointer", "HTML", "GGUF", "pickle"],
)
def test_a_file_that_is_something_else_is_named(content: Any, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content(good(path)))
    with pytest.raises(StageError, match=sentence) as caught:
        read_layout(path)
    assert caught.value.reason.name == "ModelCorrupt"
    assert str(path) in caught.value.message


def test_a_file_that_shrinks_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    good(path)
    file = open_eager(path)
    with path.open("r+b") as shrinking:
        shrinking.truncate(500)
    with pytest.raises(StageError, match="ends at byte 500"):
        file.get_tensor("w")


MEASURE = """
import ctypes, os, resource, sys
import torch
from pathlib import Path
from finetune_trainer.loading.eager import EagerFile

path = Path(sys.argv[1])
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]

def in_page_cache():
    size = path.stat().st_size
    flags = (ctypes.c_ubyte * (size // 4096 + 1))()
    with path.open("rb") as file:
        where = libc.mmap(None, size, 1, 1, file.fileno(), 0)  # PROT_READ, MAP_SHARED
    assert libc.mincore(where, size, flags) == 0
    return sum(flag & 1 for flag in flags) * 4096

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

with path.open("rb") as file:
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
before = peak()
file = EagerFile(path, torch.device("cpu"), lambda name: None)
tensors = [file.get_tensor(name) for name in file.keys()]
print(peak() - before, in_page_cache())
"""


def test_memory_is_that_of_the_model_and_the_page_cache_is_left_empty(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    size = 256 * 2**20
    save_file({f"w{n}": torch.zeros(size // 8, dtype=torch.uint8) for n in range(8)}, path)
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    grown, cached = map(int, done.stdout.split())
    assert grown < size + 32 * 2**20
    assert cached < 64 * 2**20
