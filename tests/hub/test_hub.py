"""The local hub, asked by the real huggingface_hub."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from testnode.hub.server import DOWN, Hub

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = "org/model"
WEIGHTS = bytes(range(256)) * 8192


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "hub/models" / REPO
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    data = tmp_path / "hub/datasets/org/rows/data"
    data.mkdir(parents=True)
    (data / "train.jsonl").write_text('{"text": "x"}\n')
    return tmp_path / "hub"


@pytest.fixture
def endpoint(root: Path) -> Iterator[str]:
    with Hub(root, "127.0.0.1", 0) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{hub.server_port}"
        hub.shutdown()
        thread.join()


def download(endpoint: str, tmp_path: Path, **more: str) -> Path:
    return Path(snapshot_download(REPO, endpoint=endpoint, cache_dir=tmp_path / "cache", token=False, **more))


def test_a_snapshot_is_the_repository(endpoint: str, tmp_path: Path) -> None:
    folder = download(endpoint, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}


def test_a_commit_pins_the_contents(endpoint: str, root: Path, tmp_path: Path) -> None:
    commit = HfApi(endpoint=endpoint, token=False).model_info(REPO).sha
    assert commit is not None
    assert download(endpoint, tmp_path, revision=commit).name == commit
    (root / "models" / REPO / "config.json").write_text('{"changed": true}')
    assert HfApi(endpoint=endpoint, token=False).model_info(REPO).sha != commit


def test_the_tree_tells_sizes(endpoint: str) -> None:
    tree = HfApi(endpoint=endpoint, token=False).list_repo_tree(REPO, recursive=True)
    assert {item.path: getattr(item, "size", None) for item in tree} == {
        "config.json": 2,
        "model.safetensors": len(WEIGHTS),
    }


def test_a_file_of_a_dataset(endpoint: str, tmp_path: Path) -> None:
    path = hf_hub_download(
        "org/rows", "data/train.jsonl", repo_type="dataset", endpoint=endpoint, cache_dir=tmp_path, token=False
    )
    assert Path(path).read_text() == '{"text": "x"}\n'


def test_what_is_not_there(endpoint: str, tmp_path: Path) -> None:
    api = HfApi(endpoint=endpoint, token=False)
    with pytest.raises(RepositoryNotFoundError):
        api.model_info("org/none")
    with pytest.raises(RevisionNotFoundError):
        api.model_info(REPO, revision="v9")
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(REPO, "none.json", endpoint=endpoint, cache_dir=tmp_path, token=False)


def test_a_path_out_of_the_root_is_not_found(endpoint: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{endpoint}/api/models/%2e%2e/datasets")  # noqa: S310 - our own server


@pytest.mark.parametrize("token", ["", "hf_wrong"])
def test_a_gate_is_closed_without_the_right_token(endpoint: str, root: Path, tmp_path: Path, token: str) -> None:
    (root / "models" / REPO / ".gated").write_text("hf_right")
    with pytest.raises(GatedRepoError):
        hf_hub_download(REPO, "config.json", endpoint=endpoint, cache_dir=tmp_path, token=token or False)


def test_a_gate_is_open_with_the_right_token(endpoint: str, root: Path, tmp_path: Path) -> None:
    (root / "models" / REPO / ".gated").write_text("hf_right")
    hf_hub_download(REPO, "config.json", endpoint=endpoint, cache_dir=tmp_path, token="hf_right")


def test_a_download_that_was_cut_goes_on(endpoint: str, root: Path, tmp_path: Path) -> None:
    faults = {"model.safetensors": {"cut": 100_000, "times": 1}}
    (root / "models" / REPO / ".faults.json").write_text(json.dumps(faults))
    assert (download(endpoint, tmp_path) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_is_refused_once_comes_the_next_time(endpoint: str, root: Path, tmp_path: Path) -> None:
    (root / "models" / REPO / ".faults.json").write_text(json.dumps({"model.safetensors": {"status": 503, "times": 1}}))
    with pytest.raises(HfHubHTTPError, match="503"):
        download(endpoint, tmp_path)
    assert (download(endpoint, tmp_path) / "model.safetensors").read_bytes() == WEIGHTS


RANGES = {
    "the end": ("bytes=2097150-", 206, b"\xfe\xff", "bytes 2097150-2097151/2097152"),
    "a piece": ("bytes=1-3", 206, b"\x01\x02\x03", "bytes 1-3/2097152"),
    "a piece that is longer than the file": ("bytes=2097151-9999999", 206, b"\xff", "bytes 2097151-2097151/2097152"),
    "behind the end": ("bytes=2097152-", 416, b"", "bytes */2097152"),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range(endpoint: str, name: str) -> None:
    asked, status, body, told = RANGES[name]
    answer = httpx.get(f"{endpoint}/{REPO}/resolve/main/model.safetensors", headers={"Range": asked})
    assert (answer.status_code, answer.content, answer.headers["Content-Range"]) == (status, body, told)


def test_a_hub_that_is_down(endpoint: str, root: Path) -> None:
    (root / DOWN).touch()
    with pytest.raises(HfHubHTTPError, match="503"):
        HfApi(endpoint=endpoint, token=False).model_info(REPO)
