"""Language models as a kind of network."""

from __future__ import annotations

import pytest
from torch import nn

from nas_core.errors import ConfigError, SpaceError, UnknownChoiceError
from nas_core.models import kind_of
from nas_core.models.language import LanguageWorkloadConfig
from nas_core.models.language.kind import LANGUAGE
from nas_core.space import Choice, SearchSpace, get_space, language_space, list_spaces
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
            attention=("softmax", "local", "linear"),
        )

    def counted(self, network: nn.Module) -> int:
        names = dict(network.named_parameters())
        left_out = [name for name in names if "embedding" in name]
        assert len(left_out) == 1, "the table of input and output"
        return sum(parameter.numel() for name, parameter in names.items() if name not in left_out)


def test_registered_spaces_are_of_this_kind() -> None:
    names = [name for name in list_spaces() if "language" in name]
    assert len(names) == 4
    for name in names:
        assert kind_of(get_space(name)) is LANGUAGE


def test_wrong_options_are_told_by_the_kind() -> None:
    space = get_space("language_small")
    choices = [choice for choice in space.choices if choice.name != "embed_dim"]
    with pytest.raises(SpaceError, match=r"embed_dim = 0; expected an integer above 0"):
        kind_of(SearchSpace("zero", [*choices, Choice.make("embed_dim", [0, 64])], space.fixed))
    with pytest.raises(UnknownChoiceError, match="'sharp'"):
        kind_of(SearchSpace("sharp", space.choices, {**space.fixed, "attention": "sharp"}))
    fixed = {name: value for name, value in space.fixed.items() if name != "context_length"}
    with pytest.raises(SpaceError, match=r"searches context_length \[8, 16\]"):
        kind_of(SearchSpace("two", [*space.choices, Choice.make("context_length", [8, 16])], fixed))


def test_a_workload_that_is_longer_than_the_network_reads() -> None:
    space = get_space("mformer_language_small")
    with pytest.raises(ConfigError, match=r"are 2088 tokens, this network reads 2048 \(context_length\)"):
        LANGUAGE.workload(space, space.smallest(), LanguageWorkloadConfig(vocab=9, prompt_length=2056))
