import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from testnode import processes
from testnode.processes import Daemon, Record
from testnode.settings import Settings

SLEEP = (shutil.which("sleep") or "sleep", "1000")


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    settings = Settings(tmp_path, tmp_path / "run")
    settings.node.mkdir()
    yield settings
    processes.stop(settings, "sleeper")


@pytest.fixture
def sleeper(settings: Settings) -> Record:
    processes.ensure(settings, Daemon("sleeper", SLEEP))
    return _running(settings)


def _running(settings: Settings) -> Record:
    record = processes.record_of(settings, "sleeper")
    assert record is not None
    return record


def _write(settings: Settings, record: Record) -> None:
    (settings.node / "sleeper.pid.json").write_text(json.dumps(asdict(record)))


def test_a_process_keeps_its_identity() -> None:
    assert processes.identity(os.getpid()) == processes.identity(os.getpid()) is not None


def test_a_pid_that_nobody_has_has_no_identity() -> None:
    assert processes.identity(2**22 + 1) is None


def test_a_zombie_has_no_identity(settings: Settings, sleeper: Record) -> None:
    os.kill(sleeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert processes.identity(sleeper.pid) is None
    assert processes.record_of(settings, "sleeper") is None


def test_a_started_process_runs_in_a_session_of_its_own(sleeper: Record) -> None:
    assert os.getsid(sleeper.pid) == sleeper.pid


def test_ensuring_twice_starts_once(settings: Settings, sleeper: Record) -> None:
    processes.ensure(settings, Daemon("sleeper", SLEEP))
    assert _running(settings) == sleeper


def test_another_command_line_restarts(settings: Settings, sleeper: Record) -> None:
    processes.ensure(settings, Daemon("sleeper", (SLEEP[0], "1001")))
    assert _running(settings).pid != sleeper.pid
    assert processes.identity(sleeper.pid) is None


def test_a_changed_configuration_restarts(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "config"
    pids = []
    for text in ("old", "old", "new"):
        config.write_text(text)
        processes.ensure(settings, Daemon("sleeper", SLEEP, (config,)))
        pids.append(_running(settings).pid)
    assert pids[0] == pids[1] != pids[2]


def test_stopping_ends_the_process_and_forgets_it(settings: Settings, sleeper: Record) -> None:
    processes.stop(settings, "sleeper")
    assert processes.identity(sleeper.pid) is None
    assert list(settings.node.glob("*.pid.json")) == []


def test_a_process_is_remembered_by_name(settings: Settings, sleeper: Record) -> None:
    assert processes.identity(sleeper.pid) is not None
    assert processes.names(settings) == ["sleeper"]


def test_stopping_what_never_ran_is_harmless(settings: Settings) -> None:
    processes.stop(settings, "nobody")


def test_a_process_that_got_the_pid_of_ours_is_left_alone(settings: Settings, sleeper: Record) -> None:
    _write(settings, Record(sleeper.pid, "an earlier boot:12345", sleeper.fingerprint))
    processes.stop(settings, "sleeper")
    assert processes.identity(sleeper.pid) == sleeper.identity
    _write(settings, sleeper)  # so that the fixture stops it


def test_a_process_that_died_is_reported_with_its_log(settings: Settings) -> None:
    processes.ensure(settings, Daemon("sleeper", (shutil.which("sleep") or "sleep", "not-a-number")))
    record = json.loads((settings.node / "sleeper.pid.json").read_text())
    os.waitpid(record["pid"], 0)
    error = processes.died(settings, "sleeper")
    assert error is not None
    assert "sleeper has stopped by itself" in str(error)
    assert "not-a-number" in str(error)


def test_a_process_that_ignores_the_request_is_killed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.2)
    ready = settings.node / "ready"
    script = f"trap '' TERM; touch {ready}; while :; do sleep 0.05; done"
    processes.ensure(settings, Daemon("sleeper", (shutil.which("sh") or "sh", "-c", script)))
    pid = _running(settings).pid
    while not ready.exists():
        os.sched_yield()
    processes.stop(settings, "sleeper")
    assert processes.identity(pid) is None
