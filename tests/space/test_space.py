"""Spaces: the contract on small ones, uniform sampling, labels and the registry."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from nas_core.errors import SpaceError
from nas_core.space import SearchSpace, get_space, list_spaces
from nas_core.space.image import image_space
from nas_core.space.labels import options_by_label, parameters_of
from nas_core.space.masked_lm import masked_lm_space
from nas_core.space.registry import register_space
from tests.contracts.space import SpaceContract, enumerate_architectures
from tests.space.tiny import tiny_space


class TestTinySpace(SpaceContract):
    def make(self) -> SearchSpace:
        return tiny_space()

    def test_counts(self) -> None:
        # activation 2, encoder 2*1*3 + 2, decoder 1 + 2*2
        assert self.make().cardinality() == 2 * (6 + 2) * (1 + 4) == len(list(enumerate_architectures(self.make())))

    def test_sampling_is_uniform_per_gene_but_not_over_architectures(self) -> None:
        space = self.make()
        rows = space.sample_rows(np.random.default_rng(0), 20_000)
        names = [choice.name for choice in space.choices]
        depths = rows[:, space.slots.columns[names.index("encoder.layers")].start]
        assert chisquare(np.bincount(depths)).pvalue > 0.001
        assert chisquare(list(Counter(row.tobytes() for row in rows).values())).pvalue < 1e-6

    def test_mutation_replaces_at_the_given_rate(self) -> None:
        space = self.make()
        parents = np.repeat(space.rows([space.largest()]), 20_000, axis=0)
        column = space.slots.columns[0].start  # two options: half of the replacements draw the same one
        changed = space.mutate_rows(parents, 0.3, np.random.default_rng(0))[:, column] != parents[:, column]
        assert changed.mean() == pytest.approx(0.15, abs=0.01)

    def test_centred_encodings_go_from_minus_one_to_one(self) -> None:
        space = self.make()
        smallest, largest = space.encode([space.smallest(), space.largest()], "centred").tolist()
        # no decoder layer: no decoder.cross; encoder.ffn_dim has (64 + 64 + 48) / 3 and 32 of 8 to 64
        assert smallest == pytest.approx([-1, -1, (32 - 36) / 28, -1, 0])
        assert largest == pytest.approx([1, 1, (176 / 3 - 36) / 28, 1, 1])
        drawn = space.sample_rows(np.random.default_rng(0), 200)
        centred, summary = space.encode_rows(drawn, "centred"), space.encode_rows(drawn)
        assert centred.shape == summary.shape and np.abs(centred).max() <= 1
        for column in range(centred.shape[1]):
            exists = centred[:, column] != 0
            correlation = np.corrcoef(centred[exists, column], summary[exists, column])[0, 1]
            assert correlation == pytest.approx(1, abs=1e-5)

    def test_labels_are_those_of_options_and_of_existing_layers(self) -> None:
        space = self.make()
        options = options_by_label(space)
        assert options["encoder.ffn_dim.2"] == (48, 16, 8) and options["activation"] == ("relu", "gelu")
        assert parameters_of(space, space.smallest()).keys() == {
            "activation", "encoder.layers", "encoder.ffn_dim.0", "decoder.layers",
        }  # fmt: skip
        parameters = parameters_of(space, space.largest())
        assert parameters.keys() == options.keys() and all(parameters[name] in options[name] for name in options)


class TestTranslation(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_translation_small")


class TestLanguage(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("mformer_language_small")


class TestMaskedLm(SpaceContract):
    def make(self) -> SearchSpace:
        return masked_lm_space(
            "tiny", layers=(2, 1), embed_dims=(12, 8), ffn_dims=(16, 8), heads=(2, 1), head_dim=4, sequence_length=8,
            attention=("softmax", "linear", "others"),
        )  # fmt: skip


class TestImage(SpaceContract):
    def make(self) -> SearchSpace:
        return image_space(
            "tiny", layers=(1, 2), embed_dims=(8, 12), ffn_dims=(8, 16), heads=(1, 2), head_dim=4, image_size=8,
            patch_size=4, attention=("softmax", "linear"),
        )  # fmt: skip


def test_registration_is_idempotent_and_loud() -> None:
    def hat_small() -> SearchSpace:
        return tiny_space()

    before = list_spaces()
    from nas_core.space.hat import hat_small as original

    assert register_space(original) is original and list_spaces() == before
    with pytest.raises(SpaceError, match="already registered"):
        register_space(hat_small)
    assert get_space("hat_small") == original()
