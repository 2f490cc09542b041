"""What of the node runs, and what does not."""

from testnode import addons, control_plane, kubelet, processes
from testnode.console import NodeError, note
from testnode.down import CONTROLLING
from testnode.settings import Settings
from testnode.shell import run
from testnode.up import usage


def status(settings: Settings) -> bool:
    """Print it, and return whether the node is healthy."""
    names = ("containerd", *reversed(CONTROLLING))
    records = {name: processes.record_of(settings, name) for name in names}
    if not any(records.values()):
        note("the node is down; `python -m testnode up` brings it up")
        return False
    for name, record in records.items():
        state = f"running, pid {record.pid}" if record else f"stopped; see {processes.log_of(settings, name)}"
        note(f"{name:24} {state}")
    lack = _lack(settings)
    note(f"not healthy: {lack}" if lack else _pods(settings))
    note(usage(settings))
    return lack is None


def _lack(settings: Settings) -> str | None:
    try:
        return control_plane.unready(settings) or kubelet.unready(settings) or addons.unready(settings)
    except NodeError as error:
        return str(error)


def _pods(settings: Settings) -> str:
    pods = run(control_plane.kubectl(settings, "get", "pods", "--all-namespaces", "--output=name"))
    return f"healthy, with {len(pods.split())} pods"
