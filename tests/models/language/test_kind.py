"""Language models as a kind of network."""

from __future__ import annotations

from torch import nn

from nas_core.space import SearchSpace
from nas_core.space.language import language_space
from tests.contracts.network_kind import NetworkKindContract


class TestLanguage(NetworkKindContract):
    name = "language"
    settings = {"vocab": 30, "prompt_length": 9, "new_tokens": 4, "batch": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        return language_space(
            "tiny",
            layers=(3, 2, 1),
            embed_dims=(16, 12),
            ffn_dims=(24, 16, 8),
            heads=(4, 2),
            head_dim=4,
            context_length=40,
            attention=("softmax", "linear"),
        )

    def counted(self, network: nn.Module) -> int:
        names = dict(network.named_parameters())
        left_out = [name for name in names if "embedding" in name]
        assert len(left_out) == 1, "the table of input and output"
        return sum(parameter.numel() for name, parameter in names.items() if name not in left_out)
