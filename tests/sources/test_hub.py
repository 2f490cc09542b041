"""hf:// sources, with the real client against the hub of the test node."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from finetune_trainer.sources import address
from finetune_trainer.sources.datasets import Datasets
from finetune_trainer.sources.hub import Hub
from finetune_trainer.sources.models import HubModel
from finetune_trainer.sources.web import Rules
from finetune_trainer.stage import StageError

from testnode.hub.server import Hub as HubServer
from tests.support import tiny_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL = "acme/tiny"
SHARD = "model-00002-of-00002.safetensors"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HubServer]:
    """A hub with a model, a gated model and a dataset."""
    root = tmp_path / "hub"
    tiny_model.write(root / "models" / MODEL)
    (root / "models" / MODEL / "pytorch_model.bin").write_bytes(b"not wanted")
    gated = tiny_model.write(root / "models/acme/gated")
    (gated / ".gated").write_text("hf_good")
    (root / "datasets/acme/rows").mkdir(parents=True)
    (root / "datasets/acme/rows/train.jsonl").write_text('{"text": "a"}\n')
    with HubServer(root, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def endpoint(server: HubServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def model(server: HubServer, cache: Path, source: str = f"hf://{MODEL}", token: str | None = None) -> HubModel:
    return HubModel(Hub(endpoint(server), cache, token).resolve(address.parse(source, "model.source"), "model"))


def test_brings_configuration_first_and_weights_last(server: HubServer, cache: Path) -> None:
    base = model(server, cache)
    base.fetch_small()
    small = {path.name for path in base.folder.iterdir()}
    assert {"config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors.index.json"} <= small
    assert not any(name.endswith((".safetensors", ".bin")) for name in small)
    base.fetch_weights()
    assert {path.name for path in base.folder.iterdir()} - small == {SHARD, "model-00001-of-00002.safetensors"}


def test_a_revision_is_a_commit(server: HubServer, cache: Path) -> None:
    base = model(server, cache)
    assert len(base.revision) == 40
    assert model(server, cache, f"hf://{MODEL}@{base.revision}").revision == base.revision


def test_a_damaged_file_in_the_cache_is_fetched_again(server: HubServer, cache: Path) -> None:
    base = model(server, cache)
    base.fetch_small()
    base.fetch_weights()
    blob = (base.folder / SHARD).resolve()
    blob.write_bytes(blob.read_bytes()[:-1])
    assert len(base.fetch_weights()) == 15


def test_a_damaged_repository_is_named_and_not_kept(server: HubServer, cache: Path) -> None:
    (server.root / "models" / MODEL / SHARD).write_text("<!doctype html><title>401</title>")
    base = model(server, cache)
    base.fetch_small()
    with pytest.raises(StageError, match=f"{MODEL}: {SHARD} is a web page of 33 bytes") as told:
        base.fetch_weights()
    assert told.value.reason.name == "ModelCorrupt"
    assert not (base.folder / SHARD).exists()


def test_a_download_that_breaks_off_goes_on(server: HubServer, cache: Path) -> None:
    (server.root / "models" / MODEL / ".faults.json").write_text(json.dumps({SHARD: {"cut": 100, "times": 1}}))
    base = model(server, cache)
    base.fetch_small()
    assert len(base.fetch_weights()) == 15


REFUSALS = {
    "a typo": (
        "hf://acme/tinny",
        None,
        "ModelNotFound",
        "has no model repository acme/tinny, or it is private and needs a token in model.tokenSecretRef",
    ),
    "a revision that is not there": (
        f"hf://{MODEL}@v2",
        None,
        "ModelNotFound",
        "model repository acme/tiny has no revision 'v2'",
    ),
    "a gate, and no token": (
        "hf://acme/gated",
        None,
        "ModelGated",
        "acme/gated is gated: accept its licence at http://127",
    ),
    "a gate, and a token without the licence": (
        "hf://acme/gated",
        "hf_bad",
        "ModelGated",
        "is not accepted by the token's owner",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_says_why_it_cannot_have_a_model(server: HubServer, cache: Path, name: str) -> None:
    source, token, reason, sentence = REFUSALS[name]
    with pytest.raises(StageError) as told:
        model(server, cache, source, token).fetch_small()
    assert told.value.reason.name == reason
    assert sentence in told.value.message
    assert token is None or token not in told.value.message


def test_a_token_opens_a_gate(server: HubServer, cache: Path) -> None:
    model(server, cache, "hf://acme/gated", "hf_good").fetch_small()


def test_a_hub_that_is_down_heals(server: HubServer, cache: Path) -> None:
    (server.root / ".down").touch()
    with pytest.raises(StageError, match="answers HTTP 503 for model repository acme/tiny") as told:
        model(server, cache)
    assert told.value.reason.name == "HubUnreachable"


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("http://127.0.0.1:9", "cannot be reached for the model repository acme/tiny: [Errno 111] Connection refused"),
        ("http://hub.invalid", "the name does not resolve: no network, no DNS, or a typo in HF_ENDPOINT"),
    ],
)
def test_says_how_a_hub_is_out_of_reach(cache: Path, where: str, sentence: str) -> None:
    with pytest.raises(StageError) as told:
        Hub(where, cache).resolve(address.parse(f"hf://{MODEL}", "model.source"), "model")
    assert told.value.reason.name == "HubUnreachable"
    assert sentence in told.value.message


def test_no_room_is_said_before_the_download(server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = model(server, cache)
    base.fetch_small()
    monkeypatch.setattr("finetune_trainer.sources.models.DISK_MARGIN", 10**18)
    with pytest.raises(StageError, match=r"1000000.0 TB to spare; the cache claim at .* GB free") as told:
        base.fetch_weights()
    assert told.value.reason.name == "DiskFull"


def datasets(server: HubServer, tmp_path: Path) -> Datasets:
    return Datasets(Hub(endpoint(server), tmp_path / "cache"), tmp_path / "sources", tmp_path / "downloads", Rules())


def test_brings_a_file_of_a_dataset(server: HubServer, tmp_path: Path) -> None:
    file = datasets(server, tmp_path).open("hf://datasets/acme/rows/train.jsonl", "dataset")
    assert file.read_text() == '{"text": "a"}\n'


def test_says_which_files_a_dataset_has(server: HubServer, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"acme/rows has no file tran.jsonl. It has: train.jsonl.") as told:
        datasets(server, tmp_path).open("hf://datasets/acme/rows/tran.jsonl", "dataset")
    assert told.value.reason.name == "DatasetNotFound"
