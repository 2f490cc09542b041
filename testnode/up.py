"""Bringing the node up: what is there and healthy stays, what is missing is made."""

import time
from collections.abc import Callable

from testnode import (
    addons,
    cgroups,
    containerd,
    control_plane,
    host,
    kubelet,
    network,
    pki,
    preflight,
    tiny_images,
    toolchain,
)
from testnode.console import note, step
from testnode.settings import Settings


def up(settings: Settings) -> None:
    """Bring the node up and say how to use it."""
    started = time.monotonic()
    preflight.check_rights()
    toolchain.ensure_tools(settings)
    with step("checking the machine"):
        preflight.check_machine(settings)
        settings.node.mkdir(parents=True, exist_ok=True)
        host.remember(settings)
        preflight.claim(settings)
    for what, make in _steps(settings):
        with step(what):
            make()
    note(f"the node is up after {time.monotonic() - started:.0f} s. To use it:\n{usage(settings)}")


def usage(settings: Settings) -> str:
    """The lines that make a shell use the node."""
    return f'export KUBECONFIG={settings.kubeconfig}\nexport PATH="{settings.bin}:$PATH"'


def _steps(settings: Settings) -> list[tuple[str, Callable[[], None]]]:
    return [
        ("certificates and kubeconfigs", lambda: _identities(settings)),
        ("network bridge", lambda: network.ensure_network(settings)),
        ("control groups", cgroups.make),
        ("containerd", lambda: containerd.ensure_containerd(settings)),
        ("pause and busybox images", lambda: tiny_images.load_tiny_images(settings)),
        ("etcd, API server, controllers and scheduler", lambda: control_plane.ensure_control_plane(settings)),
        ("kubelet and kube-proxy", lambda: kubelet.ensure_kubelet(settings)),
        ("DNS and local storage", lambda: addons.ensure_addons(settings)),
    ]


def _identities(settings: Settings) -> None:
    pki.ensure_pki(settings.pki)
    pki.write_kubeconfigs(settings)
