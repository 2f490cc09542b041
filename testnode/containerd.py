"""A containerd of the node's own: its folders, its socket, and nothing shared with another on the machine."""

import shutil
from pathlib import Path

from testnode import processes
from testnode.settings import CONTAINERD_NAMESPACE, PAUSE_IMAGE, Settings
from testnode.shell import attempt, run
from testnode.waiting import wait_until

START_SECONDS = 30
STOP_SECONDS = 30
SHIM = "containerd-shim-runc-v2"


def config(settings: Settings) -> str:
    """The text of config.toml."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    runtimes = "\n".join(_runtime(cri, name, settings.run / "runc") for name in ("runc", "nvidia"))
    return f"""version = 2
root = "{settings.store}"
state = "{settings.run}/containerd"
# Plugins that would make folders elsewhere, or that look for file systems which the node does not use.
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{settings.socket}"
[{cri}]
  sandbox_image = "{PAUSE_IMAGE}"
  # A build machine may itself be a container: it may lower no OOM score, and has no AppArmor.
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[{cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{settings.node}/cni"
[{cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
{runtimes}"""


def daemon(settings: Settings) -> processes.Daemon:
    """How it is run."""
    file = _config_file(settings)
    program = shutil.which("containerd") or "containerd"
    return processes.Daemon("containerd", (program, "--config", str(file)), (file,))


def ensure_containerd(settings: Settings) -> None:
    """Start containerd and wait until it answers."""
    _config_file(settings).write_text(config(settings))
    settings.run.mkdir(mode=0o711, exist_ok=True)
    processes.ensure(settings, daemon(settings))
    wait_until(lambda: _unanswered(settings), START_SECONDS, processes.log_of(settings, "containerd"))


def ctr(settings: Settings, *arguments: str) -> list[str]:
    """The command line of ctr against our containerd."""
    return ["ctr", "--address", str(settings.socket), "--namespace", CONTAINERD_NAMESPACE, *arguments]


def forget_containers(settings: Settings) -> None:
    """Delete every container and its writable layer, and keep the images. Their processes are dead already."""
    wait_until(lambda: _tasks_left(settings), STOP_SECONDS, processes.log_of(settings, "containerd"))
    names = run(ctr(settings, "containers", "list", "--quiet")).split()
    if names:
        run(ctr(settings, "containers", "delete", *names))
    shutil.rmtree(settings.store / "io.containerd.grpc.v1.cri", ignore_errors=True)


def shims(settings: Settings) -> list[int]:
    """The pids of the processes that hold our containers; they outlive containerd."""
    return [pid for pid in map(int, filter(str.isdigit, _names("/proc"))) if _is_our_shim(pid, settings)]


def _config_file(settings: Settings) -> Path:
    return settings.node / "containerd.toml"


def _runtime(cri: str, name: str, state: Path) -> str:
    # `nvidia` is runc too: pods that ask for the runtime class run, though there is no GPU.
    runtime = f"{cri}.containerd.runtimes.{name}"
    return f"""[{runtime}]
  runtime_type = "io.containerd.runc.v2"
[{runtime}.options]
  Root = "{state}"
"""


def _unanswered(settings: Settings) -> str | None:
    if error := processes.died(settings, "containerd"):
        raise error
    answer = attempt(ctr(settings, "version"))
    return None if answer.returncode == 0 else f"containerd does not answer on {settings.socket}"


def _tasks_left(settings: Settings) -> str | None:
    # containerd deletes a task when its process has died, and so do we: whoever comes second gets an error.
    tasks = run(ctr(settings, "tasks", "list", "--quiet")).split()
    if not tasks:
        return None
    attempt(ctr(settings, "tasks", "delete", "--force", *tasks))
    return f"containerd still has the tasks {', '.join(tasks)}"


def _names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def _is_our_shim(pid: int, settings: Settings) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return Path(arguments[0]).name == SHIM and str(settings.socket) in arguments
