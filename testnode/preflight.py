"""Reasons not to start: the node shares its machine with others, and gives way."""

import os
import platform
import socket
from pathlib import Path

from testnode import host, iptables, network, processes
from testnode.console import NodeError
from testnode.settings import LISTENERS, Settings
from testnode.shell import run


def check_rights() -> None:
    """A node needs Linux and root."""
    if platform.system() != "Linux" or os.geteuid() != 0:
        raise NodeError("the node needs Linux and root (it makes mounts, network devices and control groups); try sudo")


def check_machine(settings: Settings) -> None:
    """Refuse if something that is not ours is in the way."""
    _check_owner(settings)
    network.check_free(run(["ip", "-json", "route"]))
    if host.recall(settings) is None and iptables.kube_proxy_is_here():
        raise NodeError(
            "iptables has the chains of a kube-proxy already, so there is another Kubernetes on this machine, "
            "and the two would overwrite each other's rules: stop it, or use it instead of the node"
        )
    for (address, port), name in LISTENERS.items():
        if processes.record_of(settings, name) is None:
            check_port(address, port, name)


def check_port(address: str, port: int, name: str) -> None:
    """Refuse if another process listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_bindable(address), port))
        except OSError as error:
            raise NodeError(
                f"{name} needs {address}:{port}, which another process has; `ss -tlnp` says which ({error.strerror})"
            ) from error


def claim(settings: Settings) -> None:
    """Say whose node it is, for a second one with another cache folder."""
    settings.run.mkdir(mode=0o711, exist_ok=True)
    _owner_file(settings).write_text(str(settings.cache))


def _check_owner(settings: Settings) -> None:
    file = _owner_file(settings)
    owner = Path(file.read_text()) if file.exists() else settings.cache
    if owner != settings.cache and host.recall(Settings(owner)) is not None:
        raise NodeError(
            f"a node of another cache folder is up: take it down with FINETUNE_CACHE={owner} python -m testnode down"
        )


def _owner_file(settings: Settings) -> Path:
    return settings.run / "owner"


def _bindable(address: str) -> str:
    # Before the bridge is up its address cannot be bound; a listener on every address is found all the same.
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return "0.0.0.0"  # noqa: S104  # bound for a moment, never listened on
    return address
