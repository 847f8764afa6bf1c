"""Example of a router: one mixture of experts for each block of 16 rows."""

from __future__ import annotations

from torch import Tensor

from nas_core.layers import Router

BLOCK = 16


class BlockRouter(Router):
    """Offered as ``blocks = "package.module:BlockRouter"`` in the entry-point group ``nas_ext.routers``."""

    @staticmethod
    def rows(out_features: int) -> int:
        return -(-out_features // BLOCK)

    def forward(self, encoding: Tensor, out_features: int) -> Tensor:
        mixtures = self.mixtures(encoding, self.rows(out_features))
        return mixtures.repeat_interleave(BLOCK, dim=0)[:out_features]
