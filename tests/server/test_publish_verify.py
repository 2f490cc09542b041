"""A version is published whole, and only a whole one passes the check before a server starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from finetune_server import verify as verifying
from finetune_server.manifest import Manifest
from finetune_server.publish import publish, published
from finetune_server.verify import main, verify
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.contract.results import DatasetFacts, EvaluateFacts, ExportFacts, ModelFacts, TrainFacts
from finetune_trainer.contract.runspec import LoraSpec
from finetune_trainer.files import sha256_of
from finetune_trainer.stage import StageError

MakeGguf = Callable[..., Path]


@pytest.fixture
def version(tmp_path: Path, make_gguf: MakeGguf, llama_folder: Path) -> Path:
    """Published as evaluate does it."""
    assert llama_folder.is_dir()
    return _publish(tmp_path, make_gguf())


def _publish(tmp_path: Path, gguf: Path) -> Path:
    adapter = tmp_path / "adapter"
    adapter.mkdir(exist_ok=True)
    (adapter / "adapter_config.json").write_text("{}")
    folder = Path(RunPaths("a" * 64, models=PurePosixPath(tmp_path)).version_of("b" * 64))
    manifest = Manifest(
        version=folder.name, run_digest="a" * 64, inputs="b" * 64, created_at="2026-12-01T00:00:00Z", base="hf://x/y",
        model=ModelFacts(), dataset=DatasetFacts(), recipe="trl", adapter=LoraSpec(), train=TrainFacts(),
        export=ExportFacts(sha256=sha256_of(gguf)), evaluate=EvaluateFacts(),
    )  # fmt: skip
    publish(manifest, folder, gguf, adapter, {"report.md": "# Report\n"})
    return folder


def test_the_manifest_lists_every_other_file(version: Path) -> None:
    manifest = published(version)
    assert manifest is not None
    assert version.name == "a" * 16 + "-" + "b" * 8
    files = {str(path.relative_to(version)) for path in version.rglob("*") if path.is_file()}
    assert {entry.path for entry in manifest.files} == files - {"MANIFEST.json"}
    assert files == {"MANIFEST.json", "model.gguf", "report.md", "adapter/adapter_config.json"}
    assert all(entry.sha256 == sha256_of(version / entry.path) for entry in manifest.files)


def test_nothing_is_left_beside_it(version: Path) -> None:
    assert [path.name for path in version.parent.iterdir()] == [version.name]


def test_a_folder_that_was_left_half_done_is_replaced(tmp_path: Path, version: Path, make_gguf: MakeGguf) -> None:
    (version / "MANIFEST.json").unlink()
    (version / "rubbish").write_text("")
    _publish(tmp_path, make_gguf())
    assert not (version / "rubbish").exists()
    assert published(version) is not None


def test_a_whole_version_passes(version: Path, tmp_path: Path) -> None:
    assert verify(version, tmp_path / "verified.json") == f"{version.name}: 3 files are whole."


def test_a_hash_is_remembered(version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify(version, tmp_path / "verified.json")
    monkeypatch.setattr(verifying, "sha256_of", lambda path: pytest.fail(f"{path} was read again"))
    verify(version, tmp_path / "verified.json")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])


DAMAGE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "no such version": (
        lambda folder: (folder / "MANIFEST.json").unlink(),
        "ModelNotFound",
        "MANIFEST.json is missing",
    ),
    "a file is gone": (lambda folder: (folder / "report.md").unlink(), "ModelCorrupt", "report.md is missing"),
    "a bit fell over": (lambda folder: _flip(folder / "model.gguf"), "ModelCorrupt", "has the sha256"),
    "a file is cut": (lambda folder: _cut(folder / "model.gguf"), "ModelCorrupt", "the manifest says"),
}


@pytest.mark.parametrize("sentence", DAMAGE)
def test_damage_is_found(version: Path, tmp_path: Path, sentence: str) -> None:
    damage, reason, message = DAMAGE[sentence]
    damage(version)
    with pytest.raises(StageError, match=message) as caught:
        verify(version, tmp_path / "verified.json")
    assert caught.value.reason.name == reason


def test_an_architecture_that_this_build_does_not_know(tmp_path: Path, make_gguf: MakeGguf, llama_folder: Path) -> None:
    assert llama_folder.is_dir()
    version = _publish(tmp_path, make_gguf(architecture="foo"))
    with pytest.raises(StageError, match=r"llama\.cpp 0c1e57098 cannot load the architecture foo"):
        verify(version, tmp_path / "verified.json")


def test_the_reason_is_left_for_the_operator(version: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "REMEMBERED", tmp_path / "verified.json")
    log = tmp_path / "termination-log"
    log.touch()
    assert main(version, log) == 0
    (version / "report.md").unlink()
    assert main(version, log) == 83
    assert json.loads(log.read_text())["reason"] == "ModelCorrupt"
