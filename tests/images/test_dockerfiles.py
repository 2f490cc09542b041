"""Rules that every Dockerfile of the product keeps."""

import re
from pathlib import Path

import pytest

from testnode.images.catalogue import IMAGES

ROOT = Path(__file__).parents[2]
DOCKERFILES = [ROOT / image.folder / "Dockerfile" for image in IMAGES.values()]
every_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)


def instructions(path: Path) -> list[tuple[str, str]]:
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.split()[0], " ".join(line.split()[1:])) for line in lines]


def values(path: Path, name: str) -> list[str]:
    return [value for instruction, value in instructions(path) if instruction == name]


@every_dockerfile
def test_the_base_is_an_argument_with_a_pinned_default(path: Path) -> None:
    assert re.fullmatch(r"BASE_IMAGE=\S+:\d[\w.-]+", values(path, "ARG")[0])
    assert {value.split()[0] for value in values(path, "FROM")} == {"${BASE_IMAGE}"}


@every_dockerfile
def test_nothing_is_the_latest(path: Path) -> None:
    assert "latest" not in path.read_text()


@every_dockerfile
def test_it_runs_as_nobody_in_particular(path: Path) -> None:
    assert values(path, "USER") == ["10001:10001"]


@every_dockerfile
def test_python_packages_are_installed_by_hash_and_without_asking_for_more(path: Path) -> None:
    installs = [run for run in values(path, "RUN") if " install " in run]
    assert len(installs) == 1
    assert "--no-deps --require-hashes -r /opt/finetune/requirements.lock" in installs[0]


@every_dockerfile
def test_our_own_code_comes_after_all_that_is_slow(path: Path) -> None:
    steps = instructions(path)
    ours = [n for n, (name, value) in enumerate(steps) if name == "COPY" and "/opt/finetune/src/" in value]
    slow = [n for n, (name, value) in enumerate(steps) if name == "RUN" and (" install " in value or "cmake" in value)]
    assert ours
    assert max(slow) < min(ours)


@every_dockerfile
def test_everything_it_copies_gets_into_the_build(path: Path) -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [value.split()[0] for value in values(path, "COPY") if not value.startswith("--from")]
    assert copied
    assert [source for source in copied if not any(source.startswith(entry) for entry in allowed)] == []


def test_trainer_and_server_share_their_base() -> None:
    defaults = {folder: values(ROOT / folder / "Dockerfile", "ARG")[0] for folder in ("trainer-image", "server-image")}
    assert len(set(defaults.values())) == 1
    assert IMAGES["trainer"].base == IMAGES["server"].base


def test_the_source_of_llama_cpp_is_pinned_by_its_hash() -> None:
    pins = dict(value.split("=", 1) for value in values(ROOT / "server-image" / "Dockerfile", "ARG") if "=" in value)
    assert re.fullmatch(r"[0-9a-f]{64}", pins["LLAMA_CPP_PYTHON_SHA256"])
