"""How to reach the API server: the service account in a pod, the kubeconfig elsewhere. kopf uses the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import kopf

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
CONNECTIONS = 32
TOKEN_SECONDS = 300.0
"""A service account's token is renewed in its file long before it expires."""


def login() -> kopf.ConnectionInfo:
    """Read the credentials anew."""
    settings = kopf.OperatorSettings()
    found = kopf.login_with_service_account(settings=settings) or kopf.login_with_kubeconfig(settings=settings)
    if found is None:
        raise kopf.LoginError("No cluster to work for: run the operator in a pod, or set KUBECONFIG.")
    return found


class Connection:
    """One session, with a token that is read again from time to time."""

    def __init__(self, info: kopf.ConnectionInfo) -> None:
        """Take the credentials; must be called in a running event loop."""
        self.server = (info.server or "").rstrip("/")
        self._info = info
        self._read_at = asyncio.get_running_loop().time()
        context: ssl.SSLContext = info.as_ssl_context()
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=CONNECT_SECONDS),
        )

    def headers(self) -> dict[str, str]:
        """The authorization of a call."""
        now = asyncio.get_running_loop().time()
        if self._info.token and now - self._read_at > TOKEN_SECONDS:
            self._info, self._read_at = login(), now
        return self._info.as_http_headers()

    async def close(self) -> None:
        """End the session."""
        await self.session.close()
