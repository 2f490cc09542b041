"""What something needs, part by part, in bytes: the common form of the training plan and of the serving plan."""

from __future__ import annotations

from pydantic import Field

from finetune_trainer.contract.base import Wire


class MemoryPlan(Wire):
    """Two columns. A platform with one pool adds them up; one with a card of its own keeps them apart."""

    host: dict[str, int] = Field(default_factory=dict)
    """Part → bytes of host memory, for example ``{"weights": …, "process": …}``."""
    device: dict[str, int] = Field(default_factory=dict)
    """Part → bytes of device memory; empty without a GPU."""

    @property
    def host_bytes(self) -> int:
        """The whole host column."""
        return sum(self.host.values())

    @property
    def device_bytes(self) -> int:
        """The whole device column."""
        return sum(self.device.values())
