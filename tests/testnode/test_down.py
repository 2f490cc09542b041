from pathlib import Path

from testnode import down
from testnode.settings import Settings

MOUNTINFO = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /run/node/shm rw - tmpfs shm rw
31 22 0:41 / /cache/node/kubelet/pods/1/a\040b rw - tmpfs tmpfs rw
32 31 0:42 / /cache/node/kubelet/pods/1/a\040b/inner rw - tmpfs tmpfs rw
33 22 0:43 / /cache/nodes rw - tmpfs tmpfs rw
""".strip()


def test_mounts_come_innermost_first_and_only_ours() -> None:
    assert down.mounts_below(MOUNTINFO, (Path("/run/node"), Path("/cache/node"))) == [
        "/cache/node/kubelet/pods/1/a b/inner",
        "/cache/node/kubelet/pods/1/a b",
        "/run/node/shm",
    ]


def test_only_our_pods_network_results_are_forgotten(tmp_path: Path) -> None:
    for name in ("finetune-testnode-1-eth0", "cni-loopback-1-lo", "k8s-pod-network-2-eth0", "cni-loopback-2-lo"):
        (tmp_path / name).touch()
    down._forget_addresses(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"k8s-pod-network-2-eth0", "cni-loopback-2-lo"}


def test_only_links_to_our_logs_are_removed(tmp_path: Path) -> None:
    settings, links = Settings(tmp_path / "cache"), tmp_path / "links"
    links.mkdir()
    (links / "ours.log").symlink_to(settings.node / "pod-logs" / "x" / "0.log")
    (links / "theirs.log").symlink_to("/var/log/pods/x/0.log")
    (links / "file.log").touch()
    down._forget_logs(settings, links)
    assert {path.name for path in links.iterdir()} == {"theirs.log", "file.log"}
