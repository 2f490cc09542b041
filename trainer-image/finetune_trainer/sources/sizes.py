"""Sizes in the words of people."""

from __future__ import annotations

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def human(count: float) -> str:
    """Bytes in decimal units, as disks are sold."""
    unit = next((pair for pair in _UNITS if count >= pair[0]), None)
    return f"{count / unit[0]:.1f} {unit[1]}" if unit else f"{count:.0f} bytes"
