"""The command lines and configurations of the node's processes."""

import tomllib
from pathlib import Path
from string import Template

import pytest

from testnode import addons, containerd, control_plane, down, kubelet
from testnode.control_plane import manifest
from testnode.processes import Daemon
from testnode.settings import LISTENERS, Settings

SETTINGS = Settings(Path("/cache"), Path("/run/node"))
DAEMONS = [
    containerd.daemon(SETTINGS),
    control_plane.etcd(SETTINGS),
    control_plane.api_server(SETTINGS),
    control_plane.controller_manager(SETTINGS),
    control_plane.scheduler(SETTINGS),
    kubelet.kubelet(SETTINGS),
    kubelet.kube_proxy(SETTINGS),
    addons.coredns(SETTINGS),
    addons.local_path(SETTINGS),
]


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)
def test_every_process_is_stopped_by_down(daemon: Daemon) -> None:
    assert daemon.name in {"containerd", *down.CONTROLLING}


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)
def test_no_process_listens_on_every_address(daemon: Daemon) -> None:
    assert "0.0.0.0" not in " ".join(daemon.argv)  # noqa: S104


@pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)
def test_every_file_of_a_process_lies_in_the_node_folder(daemon: Daemon) -> None:
    assert all(path.is_relative_to(SETTINGS.node) for path in daemon.inputs)


def test_every_listener_is_a_process_of_the_node() -> None:
    assert set(LISTENERS.values()) <= {daemon.name for daemon in DAEMONS}


def test_the_api_server_keeps_the_admission_plugins_that_are_on_by_default() -> None:
    flags = control_plane.api_server(SETTINGS).argv
    assert not any(flag.startswith("--disable-admission-plugins") for flag in flags)
    assert "--authorization-mode=Node,RBAC" in flags


def test_containerd_shares_nothing_with_another() -> None:
    config = tomllib.loads(containerd.config(SETTINGS))
    assert config["root"] == "/cache/containerd"
    assert config["state"] == "/run/node/containerd"
    assert config["grpc"]["address"] == "/run/node/containerd.sock"


def test_containerd_knows_both_runtimes_and_keeps_their_state_with_the_node() -> None:
    config = tomllib.loads(containerd.config(SETTINGS))
    runtimes = config["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert {name: runtime["options"]["Root"] for name, runtime in runtimes.items()} == {
        "runc": "/run/node/runc",
        "nvidia": "/run/node/runc",
    }


def test_the_kubelet_keeps_images_that_no_registry_has() -> None:
    assert kubelet.config(SETTINGS)["imageGCHighThresholdPercent"] == 100


def test_the_kubelet_answers_nobody_without_a_certificate() -> None:
    authentication = kubelet.config(SETTINGS)["authentication"]
    assert isinstance(authentication, dict)
    assert authentication["anonymous"] == {"enabled": False}


@pytest.mark.parametrize(
    ("name", "values"),
    [("addons.yaml", {}), ("Corefile", {"kubeconfig": "/k"}), ("helper-pod.yaml", {"image": "i"})],
)
def test_manifests_have_no_gap_left(name: str, values: dict[str, str]) -> None:
    filled = addons.fill(name, **values)
    assert "${" not in filled
    assert set(Template(manifest(name)).get_identifiers()) != set()


def test_the_scripts_of_local_path_get_their_shell_variable() -> None:
    assert 'mkdir -m 0777 -p "$VOL_DIR"' in addons.fill("addons.yaml")
