"""torch's random numbers: remembered, and brought back."""

from __future__ import annotations

import torch


class RandomState:
    """torch's random numbers on all devices: what dropout draws from."""

    def __init__(self) -> None:
        """Remember now."""
        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []

    def restore(self) -> None:
        """Go back to then."""
        torch.set_rng_state(self._cpu)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
