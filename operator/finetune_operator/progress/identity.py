"""The certificates of the progress endpoint as they lie in the cluster: made once, renewed in time."""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp

from finetune_operator.cluster.client import CONFLICT, ApiError
from finetune_operator.cluster.resources import Key
from finetune_operator.progress import tls

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from finetune_operator.cluster.client import Client
    from finetune_operator.core.types import Manifest
    from finetune_operator.progress.tls import Certificates

SECRET_NAME = "finetune-operator-progress-tls"  # noqa: S105 - the name of a Secret
CHECK_SECONDS = 3600.0
_log = logging.getLogger(__name__)


class Identity:
    """Certificates, and the TLS context that uses them."""

    def __init__(self, client: Client, namespace: str, url: str, clock: Callable[[], datetime]) -> None:
        """Certificates are made for the host of the address that trainers are given."""
        self._client = client
        self._key = Key("Secret", namespace, SECRET_NAME)
        host = urlsplit(url).hostname or "localhost"
        self._hosts = (host, "localhost")
        self._clock = clock
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca = ""

    async def ensure(self) -> None:
        """Read the certificates, make them if there are none, renew the leaf if it is time."""
        found = await self._client.get(self._key)
        if found is None:
            found = await self._create()
        certificates = self._read(found)
        if tls.needs_renewal(certificates, self._hosts, self._clock()):
            certificates = tls.renewed(certificates, self._hosts, self._clock())
            await self._client.apply(self._secret(certificates))
            _log.info("%s: the certificate of the progress endpoint was renewed", self._key)
        self.ca = certificates.ca
        _load(self.context, certificates)

    async def run(self) -> None:
        """Look once an hour; new connections get the new leaf."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.ensure()
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                _log.warning("%s: %s: %s", self._key, type(error).__name__, error)

    async def _create(self) -> Manifest:
        try:
            made = await self._client.create(self._secret(tls.make(self._hosts, self._clock())))
        except ApiError as error:
            if error.status != CONFLICT or (found := await self._client.get(self._key)) is None:
                raise
            return found
        _log.info("%s: made the certificates of the progress endpoint", self._key)
        return made

    def _read(self, secret: Manifest) -> Certificates:
        try:
            return tls.Certificates.read(secret.get("data", {}))
        except tls.BrokenSecretError as error:
            raise tls.BrokenSecretError(
                f"Secret {self._key} cannot be used: {error}. Delete it and restart the operator: it makes a new one "
                "(trainers that run now then cannot report their progress)."
            ) from error

    def _secret(self, certificates: Certificates) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "type": "Opaque",
            "data": certificates.data(),
        }


def _load(context: ssl.SSLContext, certificates: Certificates) -> None:
    """Python's ssl reads certificates from files alone; these are gone right after."""
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder, "tls.pem")
        chain.touch(mode=0o600)
        chain.write_text(certificates.leaf + certificates.leaf_key)
        context.load_cert_chain(chain)
