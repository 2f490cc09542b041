"""https:// datasets: the address that is connected to is checked, not the name; redirects are followed by hand."""

from __future__ import annotations

import http.client
import ipaddress
import logging
import socket
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from finetune_trainer.sources.sizes import human
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger("finetune")
MAX_BYTES = 8 * 1024**3
MAX_REDIRECTS = 5
ATTEMPTS = 5
_TIMEOUT = 30
_CHUNK = 1024 * 1024
_REDIRECTS = {301, 302, 303, 307, 308}
_CLOSED = {401, 403}
_GONE = {404, 410}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PART = 206
_OK = 200


class Passing(Exception):  # noqa: N818 - a trouble that may pass
    """A trouble that another attempt may get over."""


@dataclass(frozen=True)
class Rules:
    """What a download may do."""

    allow_private: bool = False
    max_bytes: int = MAX_BYTES
    sleep: Callable[[float], None] = time.sleep


def allowed(address: str) -> bool:
    """Is this an address of the public internet? An IPv4 address inside of an IPv6 one counts as what it is."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        nat64 = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _NAT64 else None
        parsed = parsed.ipv4_mapped or parsed.sixtofour or nat64 or parsed
    return parsed.is_global and not parsed.is_multicast


class PinnedConnection(http.client.HTTPSConnection):
    """Resolves once, connects to an allowed address out of the answer, and verifies the certificate for the name."""

    def __init__(self, host: str, port: int, rules: Rules) -> None:
        """Take the name and the rules."""
        self._tls = ssl.create_default_context()
        super().__init__(host, port, timeout=_TIMEOUT, context=self._tls)
        self._rules = rules

    def connect(self) -> None:
        """Connect to the first allowed address that answers."""
        entries = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        found = [str(entry[4][0]) for entry in entries]
        usable = [address for address in found if self._rules.allow_private or allowed(address)]
        if not usable:
            raise StageError(
                "AddressNotAllowed", f"{self.host} is {', '.join(found)}: no address of the public internet."
            )
        self.sock = self._tls.wrap_socket(self._open(usable), server_hostname=self.host)

    def _open(self, addresses: list[str]) -> socket.socket:
        failure = OSError(f"{self.host} has no address")
        for address in addresses:
            try:
                return socket.create_connection((address, self.port or 443), _TIMEOUT)
            except OSError as error:
                failure = error
        raise failure


@dataclass
class Download:
    """One file, fetched in as many attempts as it takes; each goes on where the last one ended."""

    url: str
    target: Path
    token: str | None
    rules: Rules = Rules()
    validator: str | None = None
    """ETag or date of the part that is there; without one, a part is worth nothing."""

    @property
    def shown(self) -> str:
        """The address in messages."""
        return _shown(self.url)

    def run(self) -> Path:
        """Fetch it. Raises StageError."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.unlink(missing_ok=True)
        why = ""
        for attempt in range(ATTEMPTS):
            try:
                self._attempt()
            except (Passing, OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
                log.warning("%s: %s (attempt %d of %d)", self.shown, why, attempt + 1, ATTEMPTS)
                if attempt + 1 < ATTEMPTS:
                    self.rules.sleep(2.0**attempt)
            else:
                return self.target
        raise StageError("HubUnreachable", f"{self.shown} could not be fetched in {ATTEMPTS} attempts: {why}.")

    def _attempt(self) -> None:
        url = self.url
        for _ in range(MAX_REDIRECTS + 1):
            onward = self._request(url)
            if onward is None:
                return
            url = urljoin(url, onward)
        raise StageError("DatasetNotFound", f"{self.shown} leads through more than {MAX_REDIRECTS} redirects.")

    def _request(self, url: str) -> str | None:
        """Ask one address; returns where it sends us, or None once the file is there."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise StageError("AddressNotAllowed", f"{self.shown} leads to {_shown(url)}, which is not https://.")
        connection = PinnedConnection(parts.hostname, parts.port or 443, self.rules)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", target, headers=self._headers(parts.netloc))
            response = connection.getresponse()
            if response.status in _REDIRECTS:
                return response.headers.get("Location", "")
            self._refuse(response)
            self._save(response)
        finally:
            connection.close()
        return None

    def _headers(self, host: str) -> dict[str, str]:
        """The token goes to the host that it was meant for, and to no other."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "finetune-operator"}
        if self.token and host == urlsplit(self.url).netloc:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.validator and self.target.exists():
            headers |= {"Range": f"bytes={self.target.stat().st_size}-", "If-Range": self.validator}
        return headers

    def _refuse(self, response: http.client.HTTPResponse) -> None:
        status = response.status
        if status in _GONE:
            raise StageError("DatasetNotFound", f"{self.shown} does not exist (HTTP {status}).")
        if status in _CLOSED:
            ask = (
                "the token of dataset.tokenSecretRef is refused"
                if self.token
                else "it needs a token: name one in dataset.tokenSecretRef"
            )
            raise StageError("DatasetNotFound", f"{self.shown} may not be read (HTTP {status}): {ask}.")
        if status not in {_OK, _PART}:
            raise Passing(f"HTTP {status}")

    def _save(self, response: http.client.HTTPResponse) -> None:
        self.validator = response.headers.get("ETag") or response.headers.get("Last-Modified")
        expected = response.length
        got = 0
        with self.target.open("ab" if response.status == _PART else "wb") as file:
            while chunk := response.read(_CHUNK):
                got += len(chunk)
                file.write(chunk)
                if file.tell() > self.rules.max_bytes:
                    raise StageError("DatasetInvalid", f"{self.shown} is larger than {human(self.rules.max_bytes)}.")
        if expected is not None and got < expected:
            raise Passing(f"the connection ended after {got} of {expected} bytes")


def _shown(url: str) -> str:
    """An address without what may be a secret: what follows a question mark, and what stands before an @."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
