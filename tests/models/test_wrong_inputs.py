"""Errors of networks, spaces, workloads and costs: one line that names the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nas_core.errors import ArchitectureError, CheckpointError, ConfigError, SpaceError, UnknownChoiceError
from nas_core.models import NETWORK_KINDS, kind_of
from nas_core.models.image import VisionConfig, VisionNet
from nas_core.models.language.workload import LanguageWorkloadConfig
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture, Choice, SearchSpace, get_space
from tests.models.image import test_net as image
from tests.models.masked_lm import tiny as masked_lm
from tests.models.translation import tiny as translation

BERT = {"layers": [2], "hidden_dim": [16], "heads": [4], "ffn_ratio": [2.0], "sequence_length": [8]}


def changed(name: str, **genes: Any) -> SearchSpace:
    """A registered space with other options of genes, or without a gene where they are None."""
    space = get_space(name)
    choices = [choice for choice in space.choices if choice.name not in genes]
    fixed = {gene: value for gene, value in space.fixed.items() if gene not in genes}
    chosen = {gene: options for gene, options in genes.items() if options is not None}
    return SearchSpace("wrong", [*choices, *(Choice.make(gene, options) for gene, options in chosen.items())], fixed)


def bert(**genes: list[Any]) -> SearchSpace:
    return SearchSpace("wrong", [Choice.make(gene, options) for gene, options in {**BERT, **genes}.items() if options])


def changed_largest(space: SearchSpace, **genes: Any) -> Architecture:
    return Architecture({**space.largest().to_dict(), **genes})


UNEQUAL = [Choice.make("layers", [2]), Choice.make("hidden_dim", [16, 8], "layers", 2)]
SPACES = [
    (lambda: changed("hat_small", **{"encoder.embed_dim": [0, 64]}), SpaceError, "encoder.embed_dim = 0"),
    (lambda: changed("hat_small", **{"decoder.arbitrary_cross": [3]}), SpaceError, "arbitrary_cross"),
    (lambda: changed("language_small", embed_dim=[0, 64]), SpaceError, "embed_dim = 0"),
    (lambda: changed("language_small", context_length=[8, 16]), SpaceError, "[8, 16]"),
    (lambda: changed("language_small", attention=["sharp"]), UnknownChoiceError, "'sharp'"),
    (lambda: changed("mformer_cifar10_small", image_size=["large"]), SpaceError, "'large'"),
    (lambda: changed("mformer_cifar10_small", relative_clip=[-1]), SpaceError, "-1"),
    (lambda: changed("roberta_small", ffn_dim=[0]), SpaceError, "ffn_dim = 0"),
    (lambda: changed("roberta_small", attention=["sharp"]), SpaceError, "'sharp'"),
    (lambda: bert(heads=[5]), SpaceError, "16, not divisible by 5 heads"),
    (lambda: bert(ffn_dim=[8]), SpaceError, "ffn_dim and ffn_ratio"),
    (lambda: SearchSpace("wrong", UNEQUAL, {"heads": 4, "ffn_dim": 8, "sequence_length": 8}), SpaceError, "outer_dim"),
    (lambda: SearchSpace("wrong", [Choice.make("width", [1, 2])]), SpaceError, "matches no kind"),
]


@pytest.mark.parametrize(("make", "error", "value"), SPACES)
def test_spaces(make: Callable[[], SearchSpace], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        kind_of(make())
    assert "\n" not in str(caught.value) and value in str(caught.value)


LANGUAGE, LANGUAGE_KIND = get_space("mformer_language_small"), NETWORK_KINDS.get("language")
TWO_WIDTHS = {"reference_widths": torch.tensor([1, 2, 3])}
TWO_NUMBERS = {"reference_width": torch.tensor([1, 2])}
CALLS = [
    (lambda: TranslationNet(changed("hat_small", qkv_dim=None), 9, 9), SpaceError, "'qkv_dim'"),
    (lambda: TranslationNet(translation.SPACE, 23, 19, TranslationConfig(share_all_embeddings=True)), SpaceError, "23"),
    (lambda: translation.build().select(changed_largest(translation.SPACE, **{"encoder.embed_dim": 14})),
     ArchitectureError, "14"),
    (lambda: translation.build().load_state_dict({**translation.build().state_dict(), **TWO_WIDTHS}),
     CheckpointError, "(3,)"),
    (lambda: TranslationWorkloadConfig(beam=0), ConfigError, "beam is 0"),
    (lambda: TranslationWorkloadConfig(source_vocab=4), ConfigError, "source_vocab is 4"),
    (lambda: LANGUAGE_KIND.workload(LANGUAGE, LANGUAGE.smallest(), LanguageWorkloadConfig(vocab=9, prompt_length=2056)),
     ConfigError, "2088"),
    (lambda: image.build()(image.build().select(image.MIXED), image.images(18, 16)), ConfigError, "18 x 16"),
    (lambda: image.build()(image.build().select(image.MIXED), image.images()[0]), ConfigError, "(3, 16, 16)"),
    (lambda: image.build().select(Architecture({**image.MIXED, "embed_dim": 10})), ArchitectureError, "10"),
    (lambda: VisionConfig(pool="map"), UnknownChoiceError, "'map'"),
    (lambda: VisionConfig(pool="token", class_token=False), ConfigError, "'token'"),
    (lambda: VisionNet(changed("mformer_cifar10_small", image_size=[18])), ConfigError, "18 x 18"),
    (lambda: masked_lm.build(activation="swish"), UnknownChoiceError, "'swish'"),
    (lambda: masked_lm.build(pooler_activation="swish"), UnknownChoiceError, "'swish'"),
    (lambda: masked_lm.build(layer_order=(0, 0, 1)), ConfigError, "[0, 0, 1]"),
    (lambda: MaskedLMNet(get_space("vit_cifar10_small"), 9), SpaceError, "a masked language model"),
    (lambda: masked_lm.build().load_state_dict({**masked_lm.build().state_dict(), **TWO_NUMBERS}),
     CheckpointError, "(2,)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "value"), CALLS)
def test_calls(call: Callable[[], object], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value) and value in str(caught.value)
