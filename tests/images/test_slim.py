"""Stubs of libraries, made of real ones: the loader must not see a difference."""

import ctypes
import subprocess
from pathlib import Path

from testnode.images import slim

SOURCE = """
int compute(void) { return 42; }
int constant = 7;
__attribute__((weak)) int optional(void) { return 1; }
static int hidden(void) { return 0; }
"""
VERSIONS = "LIB_1 { global: compute; constant; optional; };"


def library(folder: Path) -> Path:
    source, versions, target = folder / "lib.c", folder / "lib.map", folder / "libthing.so.3"
    source.write_text(SOURCE)
    versions.write_text(VERSIONS)
    flags = ["-shared", "-fPIC", "-w", f"-Wl,-soname,libthing.so.3,--version-script={versions}"]
    subprocess.run(["gcc", *flags, "-o", target, source], check=True)
    return target


def names(path: Path) -> set[tuple[str, str]]:
    return {(symbol.name, symbol.version) for symbol in slim.defined(path) if symbol.kind != "A"}


def test_a_stub_has_the_name_the_symbols_and_their_versions(tmp_path: Path) -> None:
    path = library(tmp_path)
    before = names(path)
    slim.replace(path)
    assert before == {("compute", "LIB_1"), ("constant", "LIB_1"), ("optional", "LIB_1")}
    assert names(path) == before
    assert slim.soname(path) == "libthing.so.3"


def test_a_stub_can_be_loaded_and_its_symbols_found(tmp_path: Path) -> None:
    path = library(tmp_path)
    slim.replace(path)
    loaded = ctypes.CDLL(str(path))
    assert loaded.compute
    assert ctypes.c_int.in_dll(loaded, "constant").value == 0


def test_a_hard_link_to_a_cache_is_left_as_it_was(tmp_path: Path) -> None:
    path, cached = library(tmp_path), tmp_path / "cached.so"
    cached.hardlink_to(path)
    slim.replace(path)
    assert ctypes.CDLL(str(cached)).compute() == 42


def test_small_libraries_and_links_stay(tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    path = library(folder)
    content = path.read_bytes()
    slim.main(tmp_path)
    assert path.read_bytes() == content


def test_what_a_cpu_never_needs_goes(tmp_path: Path) -> None:
    for folder in ("triton", "triton-3.7.1.dist-info", "nvidia/cu13/include", "torch/include", "torch/nn"):
        (tmp_path / folder).mkdir(parents=True)
    slim.main(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["cu13", "nn", "nvidia", "torch"]
