"""Addresses of models and datasets: hf://, https://, pvc://claim/path, configMap://name/key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """An address, taken apart."""

    scheme: str
    name: str
    """Claim or ConfigMap of pvc:// and configMap://."""
    path: str
    """Path on the claim, or key of the ConfigMap."""

    @property
    def claim(self) -> str | None:
        """The claim that it lies on."""
        return self.name if self.scheme == "pvc" else None

    @property
    def config_map(self) -> str | None:
        """The ConfigMap that it lies in."""
        return self.name if self.scheme == "configMap" else None


def parse(address: str) -> Source:
    """Take an address apart; the API server has checked its form."""
    scheme, _, rest = address.partition("://")
    name, _, path = rest.partition("/")
    return Source(scheme, name, path)
