"""Tells the operator how far training is, without ever making training wait."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.contract.progress import CA_ENV, TOKEN_ENV, URL_ENV, Metric, ProgressReport, TrainerStatus
from finetune_trainer.stage import now

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("finetune")

INTERVAL = 2.0
"""Seconds between two reports, at least."""
TIMEOUT = 5.0


@dataclass(frozen=True)
class Endpoint:
    """Where reports go."""

    url: str
    ca: Path | None
    token: Path | None

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Endpoint | None:
        """The endpoint that the operator named in the environment; None outside of a pod."""
        url = env.get(URL_ENV)
        if not url:
            return None
        ca, token = env.get(CA_ENV), env.get(TOKEN_ENV)
        return cls(url, Path(ca) if ca else None, Path(token) if token else None)

    def post(self, report: ProgressReport) -> None:
        """Send one report. The token is read anew each time: the kubelet replaces it every hour."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token.read_text().strip()}"
        request = urllib.request.Request(self.url, report.to_json().encode(), headers, method="POST")  # noqa: S310 - the operator's address
        context = ssl.create_default_context(cafile=str(self.ca)) if self.ca else None
        with urllib.request.urlopen(request, timeout=TIMEOUT, context=context):  # noqa: S310 - likewise
            pass


class Reporter:
    """A thread with room for one report: a newer one replaces it while it waits for its turn."""

    def __init__(self, endpoint: Endpoint | None) -> None:
        """Without an endpoint reports go nowhere."""
        self._endpoint = endpoint
        self._changed = threading.Condition()
        self._waiting: ProgressReport | None = None
        self._closed = False
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        if endpoint:
            self._thread.start()

    def send(self, report: ProgressReport) -> None:
        """Leave a report to be sent; returns at once."""
        with self._changed:
            self._waiting = report
            self._changed.notify()

    def close(self) -> None:
        """Send the last report, if one waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._endpoint:
            self._thread.join(timeout=TIMEOUT + 1)

    def _run(self) -> None:
        while (report := self._next()) is not None:
            self._post(report)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=INTERVAL)

    def _next(self) -> ProgressReport | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting is not None)
            report, self._waiting = self._waiting, None
            return report

    def _post(self, report: ProgressReport) -> None:
        if self._endpoint is None:
            return
        try:
            self._endpoint.post(report)
        except (OSError, ValueError) as error:  # progress is a service to people; training does not depend on it
            if not self._complained:
                log.warning(
                    "Progress could not be sent to %s: %s. Training goes on; this is said once.",
                    self._endpoint.url,
                    error,
                )
            self._complained = True


def make_report(step: int, total: int, eta: float | None, numbers: Mapping[str, float | None]) -> ProgressReport:
    """A report in the protocol's form; numbers that are not known yet are left out."""
    known = {"step": step, "totalSteps": total} | {name: value for name, value in numbers.items() if value is not None}
    return ProgressReport(
        trainer_status=TrainerStatus(
            progress_percentage=100 * step // total,
            estimated_remaining_seconds=None if eta is None else round(eta),
            metrics=[Metric(name=name, value=f"{value:.10g}") for name, value in known.items()],
            last_updated_time=now(),
        )
    )
