import json
import subprocess
from pathlib import Path

import pytest

from testnode import pki
from testnode.settings import Settings


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = Settings(tmp_path_factory.mktemp("cache"))
    pki.ensure_pki(settings.pki)
    pki.write_kubeconfigs(settings)
    return settings


def _openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", sorted(pki.IDENTITIES))
def test_every_certificate_is_signed_by_the_authority(made: Settings, name: str) -> None:
    certificate = str(made.pki / f"{name}.crt")
    assert "OK" in _openssl("verify", "-CAfile", str(made.pki / "ca.crt"), certificate)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.42.0.1", "10.43.0.1"])
def test_the_api_server_is_known_under_its_addresses(made: Settings, address: str) -> None:
    text = _openssl("x509", "-in", str(made.pki / "apiserver.crt"), "-noout", "-ext", "subjectAltName")
    assert f"IP Address:{address}" in text


def test_the_node_is_who_the_node_authorizer_expects(made: Settings) -> None:
    subject = _openssl("x509", "-in", str(made.pki / "kubelet.crt"), "-noout", "-subject")
    assert "O = system:nodes, CN = system:node:node1" in subject


def test_a_second_time_changes_nothing(made: Settings) -> None:
    before = {path.name: path.read_bytes() for path in made.pki.iterdir()}
    pki.ensure_pki(made.pki)
    assert {path.name: path.read_bytes() for path in made.pki.iterdir()} == before


def test_keys_are_for_their_owner_only(made: Settings) -> None:
    assert made.pki.stat().st_mode & 0o077 == 0
    assert made.kubeconfig.stat().st_mode & 0o077 == 0


def test_the_kubeconfig_names_the_address_of_the_bridge(made: Settings) -> None:
    config = json.loads(made.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://10.42.0.1:6443"


def test_certificates_are_made_anew_when_one_is_about_to_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pki"
    monkeypatch.setattr(pki, "IDENTITIES", {"admin": pki.IDENTITIES["admin"]})
    pki.ensure_pki(folder)
    before = (folder / "ca.crt").read_bytes()
    monkeypatch.setattr(pki, "RENEW_SECONDS", str(366 * 24 * 60 * 60))
    pki.ensure_pki(folder)
    assert (folder / "ca.crt").read_bytes() != before
