"""Spaces: the contract on small and registered ones, and uniform sampling."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from nas_core.errors import SpaceError, UnknownChoiceError
from nas_core.space import Choice, SearchSpace, get_space, list_spaces, register_space
from tests.contracts.space import SpaceContract, enumerate_architectures
from tests.space.tiny import tiny_space


class TestTinySpace(SpaceContract):
    def make(self) -> SearchSpace:
        return tiny_space()

    def test_counts(self) -> None:
        # activation 2, encoder 2*1*3 + 2, decoder 1 + 2*2
        assert self.make().cardinality() == 2 * (6 + 2) * (1 + 4) == len(list(enumerate_architectures(self.make())))

    def test_sampling_over_architectures_is_uniform(self) -> None:
        space = self.make()
        rows = space.sample_rows(np.random.default_rng(0), 20_000, "architecture")
        seen = Counter(row.tobytes() for row in rows)
        assert len(seen) == space.cardinality()
        assert chisquare(list(seen.values())).pvalue > 0.001

    def test_sampling_per_gene_is_uniform_per_gene_but_not_over_architectures(self) -> None:
        space = self.make()
        rows = space.sample_rows(np.random.default_rng(0), 20_000, "gene")
        depths = rows[:, space.slots.depth_column("encoder.layers")]
        assert chisquare(np.bincount(depths)).pvalue > 0.001
        assert chisquare(list(Counter(row.tobytes() for row in rows).values())).pvalue < 1e-6

    def test_genes_of_missing_layers_are_dropped(self) -> None:
        smallest = self.make().smallest()
        assert smallest.to_dict() == {
            "activation": "relu",
            "decoder.cross": [],
            "decoder.layers": 0,
            "encoder.ffn_dim": [32],
            "encoder.layers": 1,
            "qkv_dim": 16,
        }

    def test_mutation_replaces_at_the_given_rate(self) -> None:
        space = self.make()
        parents = np.repeat(space.rows([space.largest()]), 20_000, axis=0)
        column = space.slots.columns[0].start  # two options: half of the replacements draw the same one
        changed = space.mutate_rows(parents, 0.3, np.random.default_rng(0))[:, column] != parents[:, column]
        assert changed.mean() == pytest.approx(0.15, abs=0.01)

    def test_a_space_of_one_architecture(self) -> None:
        architecture = self.make().largest()
        alone = SearchSpace.of(architecture, self.make())
        assert alone.cardinality() == 1
        assert alone.sample(np.random.default_rng(0)) == architecture

    def test_unknown_words_list_the_choices(self) -> None:
        space, rng = self.make(), np.random.default_rng(0)
        for call in (
            lambda: space.sample(rng, "genes"),
            lambda: space.encode(space.smallest(), "sumary"),
            lambda: space.feature_names("sumary"),
            lambda: space.choice("encoder.ffn"),
            lambda: get_space("hat_smal"),
        ):
            with pytest.raises(UnknownChoiceError, match="expected one of"):
                call()


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ([], "no choices"),
        ([Choice.make("a", [1]), Choice.make("a", [2])], "twice"),
        ([Choice.make("a", [1], "depth", 2)], "no choice named 'depth'"),
        ([Choice.make("n", [1, 2]), Choice.make("a", [1], "n", 3)], "3 layers"),
        ([Choice.make("n", ["x", "y"]), Choice.make("a", [1], "n", 2)], "layer counts"),
        ([Choice.make("n", [2], "n", 2)], "itself repeated"),
    ],
)
def test_contradictory_spaces_are_refused(choices: list[Choice], said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        SearchSpace("bad", choices)


@pytest.mark.parametrize("options", [[], [1, 1], [None], [True], [float("nan")], [[1], 2], [[1], []]])
def test_bad_options_are_refused(options: list[Any]) -> None:
    with pytest.raises(SpaceError):
        Choice.make("a", options)


class TestHatSmall(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("hat_small")


class TestHatWmt(SpaceContract):
    def make(self) -> SearchSpace:
        return get_space("hat_wmt14_en_de")


def test_registration_is_idempotent_and_loud() -> None:
    def hat_small() -> SearchSpace:
        return tiny_space()

    before = list_spaces()
    from nas_core.space.hat import hat_small as original

    assert register_space(original) is original
    assert list_spaces() == before
    with pytest.raises(SpaceError, match="already registered"):
        register_space(hat_small)
    assert get_space("hat_small") == original()
