"""The server's preStop hook: ``python -m finetune_server.drain [seconds]`` waits until no request is running.

While it waits, the Service stops sending: so it asks for a few quiet seconds, not for one quiet moment. It never
fails, because a hook that fails only hides why.
"""

from __future__ import annotations

import http.client
import re
import sys
import time
from pathlib import Path

from finetune_server.contract import API_KEY_FILE, PORT

DEFAULT_SECONDS = 300.0
QUIET_SECONDS = 3.0
"""How long it must be idle: as long as the Service may still send."""
_PAUSE = 0.5
_BUSY = re.compile(r"^llamacpp:requests_(?:processing|deferred) (\d+)", re.MULTILINE)


def drain(seconds: float, port: int = PORT, key_file: Path = Path(API_KEY_FILE), quiet: float = QUIET_SECONDS) -> bool:
    """Wait at most so long; True if the server was idle at the end or is gone."""
    deadline = time.monotonic() + seconds
    idle_since: float | None = None
    while time.monotonic() < deadline:
        running = running_requests(port, key_file)
        if running is None:
            return True
        now = time.monotonic()
        idle_since = None if running else idle_since or now
        if idle_since is not None and now - idle_since >= quiet:
            return True
        time.sleep(min(_PAUSE, quiet))
    return False


def running_requests(port: int, key_file: Path) -> int | None:
    """How many requests are answered or wait; None if the server does not answer."""
    keys = key_file.read_text(encoding="utf-8").split() if key_file.exists() else []
    headers = {"Authorization": f"Bearer {keys[0]}"} if keys else {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/metrics", headers=headers)
        text = connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return sum(int(number) for number in _BUSY.findall(text))


if __name__ == "__main__":
    drain(float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SECONDS)
