"""Translation networks as a kind of network."""

from __future__ import annotations

from torch import nn

from nas_core.models import kind_of
from nas_core.space import SearchSpace, get_space, list_spaces, translation_space, with_attention
from tests.contracts.network_kind import NetworkKindContract


class TestTranslation(NetworkKindContract):
    name = "translation"
    settings = {"source_vocab": 30, "target_vocab": 40, "source_length": 5, "target_length": 4, "beam": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        plain = translation_space(
            "tiny",
            embed_dims=(16, 12),
            ffn_dims=(24, 16, 8),
            heads=(4, 2),
            encoder_layers=(2, 1),
            decoder_layers=(2, 1),
            qkv_dim=8,
        )
        return with_attention(plain, "tiny", encoder=("softmax", "linear"), cross=("softmax", "linear"))

    def counted(self, network: nn.Module) -> int:
        names = dict(network.named_parameters())
        left_out = [name for name in names if "embed" in name or name.startswith("output")]
        assert len(left_out) == 3, "two embeddings and the output projection"
        return sum(parameter.numel() for name, parameter in names.items() if name not in left_out)


def test_registered_spaces_have_the_kind_that_their_names_say() -> None:
    for name in list_spaces():
        words = {"cifar": "image", "autoformer": "image", "roberta": "masked_lm", "language": "language"}
        words["bert"] = "bert"
        kind = next((kind for word, kind in words.items() if word in name), "translation")
        assert kind_of(get_space(name)).name == kind, name
