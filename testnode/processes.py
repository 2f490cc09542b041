"""Long-running processes: started in a session of their own, remembered in a file, and never mistaken for another.

A pid alone is no identity, because the kernel gives it away again. A record therefore also holds the moment the
process started and the boot it belongs to, and nothing is signalled unless all three still agree.
"""

import hashlib
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from testnode.console import NodeError, tail
from testnode.settings import Settings

STOP_SECONDS = 10.0
SUFFIX = ".pid.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Daemon:
    """What to run, and the files whose change means that it has to be restarted."""

    name: str
    argv: tuple[str, ...]
    inputs: tuple[Path, ...] = ()

    def fingerprint(self) -> str:
        """Changes when the command line, the program or one of its files does."""
        digest = hashlib.sha256("\0".join(self.argv).encode())
        digest.update(str(Path(self.argv[0]).stat().st_mtime_ns).encode())
        for path in self.inputs:
            digest.update(path.read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Record:
    """One process that we started."""

    pid: int
    identity: str
    fingerprint: str


def identity(pid: int) -> str | None:
    """Boot and start time of a process, or None if it is gone or a zombie."""
    try:
        # The second field is the program's name in parentheses, and may hold anything, parentheses included.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, start_time = fields[0], fields[19]
    return None if state in "ZX" else f"{BOOT_ID.read_text().strip()}:{start_time}"


def record_of(settings: Settings, name: str) -> Record | None:
    """The running process of that name, or None."""
    try:
        record = Record(**json.loads(_pid_file(settings, name).read_text()))
    except FileNotFoundError:
        return None
    return record if identity(record.pid) == record.identity else None


def ensure(settings: Settings, daemon: Daemon) -> None:
    """Start the process; one that runs already is left alone, or restarted if it should run differently."""
    running = record_of(settings, daemon.name)
    if running is not None and running.fingerprint == daemon.fingerprint():
        return
    stop(settings, daemon.name)
    _start(settings, daemon)


def died(settings: Settings, name: str) -> NodeError | None:
    """An error to raise if the process is not there any more."""
    if record_of(settings, name) is not None:
        return None
    return NodeError(f"{name} has stopped by itself\n{tail(log_of(settings, name))}")


def stop(settings: Settings, name: str) -> None:
    """Ask the process to end, and kill it if it does not."""
    record = record_of(settings, name)
    if record is not None and not _signal_and_wait(record, signal.SIGTERM, STOP_SECONDS):
        _signal_and_wait(record, signal.SIGKILL, STOP_SECONDS)
    _pid_file(settings, name).unlink(missing_ok=True)


def names(settings: Settings) -> list[str]:
    """Every process that was started and not stopped, running or not."""
    return sorted(path.name.removesuffix(SUFFIX) for path in settings.node.glob(f"*{SUFFIX}"))


def log_of(settings: Settings, name: str) -> Path:
    """Where the process writes."""
    return settings.log / f"{name}.log"


def _pid_file(settings: Settings, name: str) -> Path:
    return settings.node / f"{name}{SUFFIX}"


def _start(settings: Settings, daemon: Daemon) -> None:
    settings.log.mkdir(parents=True, exist_ok=True)
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log_of(settings, daemon.name)), appending, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    for inherited in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that iterdir itself had open
            os.set_inheritable(int(inherited.name), False)  # noqa: FBT003  # takes no keywords
    # Not subprocess: its Popen objects warn about children that outlive them, which is what these are for.
    pid = os.posix_spawn(daemon.argv[0], daemon.argv, os.environ, file_actions=streams, setsid=True)
    record = Record(pid, identity(pid) or "ended at once", daemon.fingerprint())
    _pid_file(settings, daemon.name).write_text(json.dumps(asdict(record)))


def _signal_and_wait(record: Record, number: signal.Signals, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    with suppress(ProcessLookupError):
        os.kill(record.pid, number)
    while identity(record.pid) == record.identity:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
