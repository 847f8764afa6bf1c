"""Devices by name, checked before anything is built on them."""

from __future__ import annotations

import torch

from nas_core.errors import ConfigError

__all__ = ["usable_device"]


def usable_device(name: str) -> torch.device:
    """The device, after a tensor was made on it.

    Raises:
        ConfigError: torch does not know the name, or cannot use the device here.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise ConfigError(f"device {name!r} is not usable here ({reason}); give cpu, or see 'nas-ext doctor'") from None
    return device
