"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime

LOOK_AGAIN = 30.0
"""Seconds until a missing object is looked for again, should no watch tell of it."""


def stamp(moment: datetime) -> str:
    """2026-12-01T02:33:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """The moment that a stamp names."""
    return datetime.fromisoformat(text)


def seconds_since(text: str | None, now: datetime) -> float:
    """Seconds from a stamp to now; 0 without a stamp."""
    return (now - parse(text)).total_seconds() if text else 0.0


def words(seconds: float) -> str:
    """A duration for people: 45s, 38m, 1h05m."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m" if minutes else f"{rest}s"
