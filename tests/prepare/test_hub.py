"""The whole stage with base and dataset from a hub: nothing is fetched twice, nothing before the rows are good."""

from __future__ import annotations

import json
import shutil
import threading
from typing import TYPE_CHECKING

import pytest
from finetune_trainer.contract.runspec import ValidationSpec

from testnode.hub.server import Hub
from tests.support import tiny_model
from tests.support.tiny_model import chat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.prepare.conftest import World


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    root = tmp_path / "hub"
    tiny_model.write(root / "models/acme/tiny")
    (root / "datasets/acme/rows").mkdir(parents=True)
    rows = [json.dumps(chat(f"Question {number}?", f"Answer {number}.")) for number in range(10)]
    (root / "datasets/acme/rows/train.jsonl").write_text("\n".join(rows))
    with Hub(root, "127.0.0.1", 0) as hub:
        threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield hub
        hub.shutdown()


@pytest.fixture
def away(world: World, hub: Hub) -> World:
    """A run whose base and rows lie on the hub."""
    world.change("model", source="hf://acme/tiny")
    world.change("dataset", source="hf://datasets/acme/rows/train.jsonl")
    world.spec = world.spec.model_copy(update={"hub_endpoint": f"http://127.0.0.1:{hub.server_port}/"})
    return world


def test_brings_base_and_rows(away: World) -> None:
    result = away.run()
    assert result.model
    assert len(result.model.revision) == 40
    assert result.model.path.endswith(f"snapshots/{result.model.revision}")
    assert len(away.rows()) == 8


def test_an_emptied_cache_is_filled_again(away: World) -> None:
    first = away.run()
    assert first.model
    shutil.rmtree(away.root / "cache")
    assert away.run() == first
    assert (away.root / "cache/hf/hub/models--acme--tiny/snapshots" / first.model.revision / "config.json").exists()


def test_a_new_commit_starts_the_run_over(away: World, hub: Hub) -> None:
    first = away.run()
    tiny_model.write(hub.root / "models/acme/tiny", config={"rope_theta": 5000.0})
    assert away.run().inputs != first.inputs


def test_bad_rows_are_told_before_the_base_is_fetched(away: World, hub: Hub) -> None:
    (hub.root / "datasets/acme/rows/train.jsonl").write_text('{"messages": [{"content": "Wind?"}]}\n')
    assert away.fails().reason.name == "DatasetInvalid"
    assert not (away.root / "cache/hf/hub/models--acme--tiny").exists()


def test_a_missing_target_is_told_before_the_weights_are_fetched(away: World) -> None:
    away.change("lora", targets=["qkv"])
    assert away.fails().reason.name == "TargetNotFound"
    (snapshot,) = (away.root / "cache/hf/hub/models--acme--tiny/snapshots").iterdir()
    assert not list(snapshot.glob("*.safetensors"))


def test_rows_to_hold_out_may_come_from_elsewhere(away: World) -> None:
    away.dataset([chat("Wind?", "North.")], "validation")
    away.change("dataset", validation=ValidationSpec(source="configMap://held-out/rows.jsonl"))
    away.run()
    assert (len(away.rows()), len(away.rows("validation.jsonl"))) == (10, 1)
