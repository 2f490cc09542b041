import socket
from pathlib import Path

import pytest

from testnode import preflight
from testnode.console import NodeError
from testnode.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "cache", tmp_path / "run")


def test_a_port_that_another_process_has_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(NodeError, match=f"etcd needs 127.0.0.1:{port}, which another process has"):
            preflight.check_port("127.0.0.1", port, "etcd")


def test_a_free_port_is_no_obstacle() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    preflight.check_port("127.0.0.1", port, "etcd")


def test_ones_own_claim_is_no_obstacle(settings: Settings) -> None:
    preflight.claim(settings)
    preflight._check_owner(settings)


def test_a_node_of_another_cache_folder_is_an_obstacle(settings: Settings, tmp_path: Path) -> None:
    other = Settings(tmp_path / "other", settings.run)
    other.node.mkdir(parents=True)
    preflight.claim(other)
    (other.node / "before.json").write_text('{"boot": "b", "iptables": {}, "sysctls": {}, "folders": []}')
    with pytest.raises(NodeError, match=f"FINETUNE_CACHE={other.cache} python -m testnode down"):
        preflight._check_owner(settings)


def test_a_claim_whose_node_is_gone_is_no_obstacle(settings: Settings, tmp_path: Path) -> None:
    preflight.claim(Settings(tmp_path / "gone", settings.run))
    preflight._check_owner(settings)


def test_only_root_can_have_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NodeError, match="needs Linux and root"):
        preflight.check_rights()
