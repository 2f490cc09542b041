"""The certificates of the progress endpoint: a CA for ten years, and a leaf that is renewed under the same CA.

Trainers trust the CA, and may keep their TLS context for life: so only the leaf ever changes.
"""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Mapping

CA_LIFE, LEAF_LIFE, RENEW_BEFORE = timedelta(days=3653), timedelta(days=90), timedelta(days=30)
_CLOCK_SKEW = timedelta(hours=1)
_FIELDS = {"ca.crt": "ca", "ca.key": "ca_key", "tls.crt": "leaf", "tls.key": "leaf_key"}


class BrokenSecretError(Exception):
    """The Secret does not hold what it should."""


@dataclass(frozen=True)
class Certificates:
    """PEM texts."""

    ca: str
    ca_key: str
    leaf: str
    leaf_key: str

    def data(self) -> dict[str, str]:
        """The data of the Secret."""
        return {key: base64.b64encode(getattr(self, name).encode()).decode() for key, name in _FIELDS.items()}

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Certificates:
        """Out of the data of the Secret."""
        try:
            found = cls(**{name: base64.b64decode(data[key]).decode() for key, name in _FIELDS.items()})
            x509.load_pem_x509_certificate(found.ca.encode())
            x509.load_pem_x509_certificate(found.leaf.encode())
            serialization.load_pem_private_key(found.ca_key.encode(), password=None)
        except (KeyError, ValueError) as error:
            raise BrokenSecretError(f"it lacks a usable {error}") from error
        return found


def make(hosts: tuple[str, ...], now: datetime) -> Certificates:
    """A new CA and its first leaf."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("finetune-operator progress CA")
    ca = (
        _builder(name, name, key.public_key(), now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return renewed(Certificates(_pem(ca), _private(key), "", ""), hosts, now)


def renewed(certificates: Certificates, hosts: tuple[str, ...], now: datetime) -> Certificates:
    """The same CA with a new leaf."""
    ca = x509.load_pem_x509_certificate(certificates.ca.encode())
    ca_key = serialization.load_pem_private_key(certificates.ca_key.encode(), password=None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise BrokenSecretError("ca.key is not the key that the operator made")
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = (
        _builder(_name(hosts[0][:64]), ca.subject, key.public_key(), now, LEAF_LIFE)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Certificates(certificates.ca, certificates.ca_key, _pem(leaf), _private(key))


def needs_renewal(certificates: Certificates, hosts: tuple[str, ...], now: datetime) -> bool:
    """Does the leaf expire soon, or is it for other names?"""
    leaf = x509.load_pem_x509_certificate(certificates.leaf.encode())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    wanted = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
    return names != wanted or leaf.not_valid_after_utc - now < RENEW_BEFORE


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
