import json
from pathlib import Path

import pytest

from testnode import network
from testnode.console import NodeError
from testnode.settings import Settings


@pytest.mark.parametrize(
    ("destination", "device"),
    [
        pytest.param("default", "eth0", id="the way out"),
        pytest.param("192.0.2.0/24", "eth0", id="another network"),
        pytest.param("10.42.0.0/24", "finetune0", id="our own bridge"),
        pytest.param("10.44.0.0/16", "eth1", id="a neighbour of ours"),
    ],
)
def test_networks_that_are_no_obstacle(destination: str, device: str) -> None:
    network.check_free(json.dumps([{"dst": destination, "dev": device}]))


@pytest.mark.parametrize(
    ("destination", "device"),
    [
        pytest.param("10.42.0.0/24", "cni0", id="k3s has the same range"),
        pytest.param("10.42.0.17", "tun0", id="one address in it"),
        pytest.param("10.0.0.0/8", "tun0", id="a VPN around it"),
        pytest.param("10.43.0.0/16", "eth1", id="the services' range"),
    ],
)
def test_networks_that_are_taken(destination: str, device: str) -> None:
    with pytest.raises(NodeError, match=f"is taken: {destination} goes to {device}"):
        network.check_free(json.dumps([{"dst": destination, "dev": device}]))


def test_addresses_are_remembered_in_the_node_folder() -> None:
    bridge = network.cni_config(Settings(Path("/cache")))["plugins"][0]  # type: ignore[index]  # JSON
    assert bridge["ipam"]["dataDir"] == "/cache/node/cni-addresses"
