from __future__ import annotations

import ssl
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from finetune_operator.cluster.resources import Key
from finetune_operator.progress import tls
from finetune_operator.progress.identity import SECRET_NAME, Identity

from tests.support.edges import NOW, obj

if TYPE_CHECKING:
    from datetime import datetime

    from tests.support.edges import FakeClient

HOSTS = ("finetune-operator.finetune-system.svc", "localhost", "127.0.0.1")
KEY = Key("Secret", "finetune-system", SECRET_NAME)


@pytest.fixture(scope="module")
def made() -> tls.Certificates:
    return tls.make(HOSTS, NOW)


def test_the_leaf_is_signed_by_the_ca_for_every_host(made: tls.Certificates) -> None:
    ca, leaf = (x509.load_pem_x509_certificate(pem.encode()) for pem in (made.ca, made.leaf))
    leaf.verify_directly_issued_by(ca)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == list(HOSTS)
    assert ca.not_valid_after_utc - NOW > timedelta(days=3650)


def test_it_goes_through_a_secret_unchanged(made: tls.Certificates) -> None:
    assert tls.Certificates.read(made.data()) == made


@pytest.mark.parametrize(
    ("later", "hosts", "wanted"),
    [
        (timedelta(days=1), HOSTS, False),
        (timedelta(days=59), HOSTS, False),
        (timedelta(days=61), HOSTS, True),
        (timedelta(days=900), HOSTS, True),
        (timedelta(days=1), ("another.svc", "localhost"), True),
    ],
)
def test_when_the_leaf_is_renewed(
    made: tls.Certificates, later: timedelta, hosts: tuple[str, ...], *, wanted: bool
) -> None:
    assert tls.needs_renewal(made, hosts, NOW + later) is wanted


def test_a_renewal_keeps_the_ca(made: tls.Certificates) -> None:
    new = tls.renewed(made, HOSTS, NOW)
    assert (new.ca, new.ca_key) == (made.ca, made.ca_key)
    assert new.leaf != made.leaf


@pytest.mark.parametrize("data", [{}, {"ca.crt": "eA==", "ca.key": "eA==", "tls.crt": "eA==", "tls.key": "eA=="}])
def test_a_broken_secret_is_named(data: dict[str, str]) -> None:
    with pytest.raises(tls.BrokenSecretError):
        tls.Certificates.read(data)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def identity(client: FakeClient, clock: Clock) -> Identity:
    """As the program makes it."""
    url = "https://finetune-operator.finetune-system.svc:8443/v1/progress"
    return Identity(client, "finetune-system", url, clock)  # type: ignore[arg-type]


async def test_a_restart_finds_the_same_certificates(client: FakeClient) -> None:
    first, second = identity(client, Clock()), identity(client, Clock())
    await first.ensure()
    await second.ensure()
    assert first.ca == second.ca
    assert [call[0] for call in client.calls] == ["get", "create", "get"]


async def test_the_leaf_is_renewed_in_time_and_the_ca_stays(client: FakeClient) -> None:
    clock = Clock()
    ours = identity(client, clock)
    await ours.ensure()
    before, ca = client.objects[KEY]["data"]["tls.crt"], ours.ca
    clock.now += timedelta(days=70)
    await ours.ensure()
    assert client.objects[KEY]["data"]["tls.crt"] != before
    assert ours.ca == ca


async def test_a_secret_that_cannot_be_used_is_said_with_what_to_do(client: FakeClient) -> None:
    client._stamped(
        {**obj("Secret", SECRET_NAME, data={}), "metadata": {"name": SECRET_NAME, "namespace": "finetune-system"}}
    )
    with pytest.raises(tls.BrokenSecretError, match="Delete it and restart the operator"):
        await identity(client, Clock()).ensure()


async def test_the_context_serves_only_tls_1_2_and_newer(client: FakeClient) -> None:
    assert identity(client, Clock()).context.minimum_version >= ssl.TLSVersion.TLSv1_2
