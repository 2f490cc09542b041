"""Amounts of memory: as Kubernetes writes them, and as people read them."""

from __future__ import annotations

from decimal import Decimal

GIB = 2**30
_UNITS: dict[str, int | Decimal] = {
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "m": Decimal("0.001"),
}  # fmt: skip


def parse(quantity: str) -> int:
    """Bytes of a quantity such as 24Gi, 1500M or 1073741824."""
    for unit, factor in _UNITS.items():
        if quantity.endswith(unit):
            return int(Decimal(quantity.removesuffix(unit)) * factor)
    return int(Decimal(quantity))


def quantity(size: int) -> str:
    """The size in whole MiB, rounded up."""
    return f"{-(-size // 2**20)}Mi"


def words(size: int) -> str:
    """91.2 GiB."""
    return f"{size / GIB:.1f} GiB"
