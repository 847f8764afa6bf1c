"""Translation networks as a kind of network."""

from __future__ import annotations

import pytest
from torch import nn

from nas_core.errors import SpaceError
from nas_core.models import kind_of
from nas_core.models.translation import TranslationConfig
from nas_core.models.translation.genes import attention_options
from nas_core.space import Choice, SearchSpace, get_space, list_spaces, translation_space, with_attention
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


@pytest.mark.parametrize(
    "gene", ["encoder.ffn_dim", "encoder.self_heads", "decoder.cross_heads", "decoder.arbitrary_cross"]
)
def test_a_gene_of_layers_is_chosen_for_each_of_them(gene: str) -> None:
    """Found when the network was built, or with its first sentence, where it was the same for all layers."""
    space = get_space("hat_small")
    option = space.choice(gene).options[0][0]
    others = [choice for choice in space.choices if choice.name != gene]
    said = rf"one {gene} for all layers; expected options for each layer, 'per: {gene.split('.')[0]}.layers'"
    for choices, fixed in (
        (others, {**space.fixed, gene: option}),
        ([*others, Choice.make(gene, [option])], space.fixed),
    ):
        with pytest.raises(SpaceError, match=said):
            kind_of(SearchSpace("once", choices, fixed))


def test_attention_fixed_for_all_layers_is_built_as_such() -> None:
    space = get_space("hat_small")
    fixed = {**space.fixed, "encoder.self_attention": "linear"}
    kind = kind_of(linear := SearchSpace("linear", space.choices, fixed))
    network = kind.build(linear, linear.largest(), kind.config({"source_vocab": 9, "target_vocab": 9}))
    assert network.config == TranslationConfig()
    assert attention_options(network.space, "encoder.self_attention") == [("linear",)] * 3
