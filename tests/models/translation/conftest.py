"""What tests of translation networks share."""

from __future__ import annotations

from tests.export.exports import exported

__all__ = ["exported"]
