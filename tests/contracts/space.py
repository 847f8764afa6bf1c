"""What every search space must satisfy. A new space subclasses `SpaceContract` and writes `make`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ArchitectureError
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict

SMALL = 5000
ROOT = Path(__file__).resolve().parents[2]


def enumerate_architectures(space: SearchSpace) -> Iterator[Architecture]:
    """All architectures, gene by gene, without the rows the space itself works with."""
    scalars = [choice for choice in space.choices if choice.per is None]
    for values in itertools.product(*(choice.options[0] for choice in scalars)):
        genes: dict[str, Any] = {choice.name: value for choice, value in zip(scalars, values, strict=True)}
        layered = [choice for choice in space.choices if choice.per is not None]
        per_choice = [list(itertools.product(*choice.options[: genes[str(choice.per)]])) for choice in layered]
        for rest in itertools.product(*per_choice):
            yield Architecture(
                {**space.fixed, **genes, **{c.name: gene for c, gene in zip(layered, rest, strict=True)}}
            )


def draws(space: SearchSpace) -> list[dict[str, Any]]:
    """A few draws of every kind, for comparison with another process."""
    rng = np.random.default_rng(7)
    drawn = [space.sample(rng) for _ in range(6)]
    first, second = (space.row(drawn[index])[None] for index in (0, 4))
    drawn.append(space.architecture(space.mutate_rows(first, 0.5, rng)[0]))
    drawn.append(space.architecture(space.crossover_rows(first, second, rng)[0]))
    return [{"key": architecture.key, **architecture.to_dict()} for architecture in drawn]


class SpaceContract:
    """Subclass it with a name that starts with ``Test``."""

    def make(self) -> SearchSpace:
        raise NotImplementedError

    def test_cardinality_is_the_number_of_architectures(self) -> None:
        space = self.make()
        if space.cardinality() > SMALL:
            pytest.skip(f"{space.cardinality()} architectures are too many to enumerate")
        all_architectures = list(enumerate_architectures(space))
        assert len(set(all_architectures)) == len(all_architectures) == space.cardinality()
        assert all(architecture in space for architecture in all_architectures)

    def test_samples_are_members_and_survive_conversion(self) -> None:
        space = self.make()
        rows = space.sample_rows(np.random.default_rng(0), 50)
        architectures = space.architectures(rows)
        assert np.array_equal(space.rows(architectures), rows)
        for architecture in architectures:
            assert architecture in space
            assert space.validate(architecture) == architecture
            reloaded = Architecture.from_json(json.loads(json.dumps({"genes": architecture.to_dict()})))
            assert (reloaded, hash(reloaded), reloaded.key) == (architecture, hash(architecture), architecture.key)

    def test_mutation_and_crossover_stay_inside(self) -> None:
        space, rng = self.make(), np.random.default_rng(1)
        first, second = space.sample_rows(rng, 200), space.sample_rows(rng, 200)
        for rows in (space.mutate_rows(first, 0.5, rng), space.crossover_rows(first, second, rng)):
            assert np.array_equal(space.rows(space.architectures(rows)), rows)
        assert np.array_equal(space.mutate_rows(first, 0.0, rng), first)

    def test_smallest_and_largest_bound_all_samples(self) -> None:
        space = self.make()
        codes = space.slots.codes(space.sample_rows(np.random.default_rng(3), 300))
        smallest, largest = (space.slots.codes(space.rows([a])) for a in (space.smallest(), space.largest()))
        exists = space.slots.exists(space.rows([space.smallest()]))
        assert (codes <= largest).all()
        assert (codes >= smallest)[:, exists[0]].all()

    def test_foreign_architectures_are_refused_in_one_line(self) -> None:
        space = self.make()
        good = space.smallest().to_dict()
        choice = space.choices[0]
        bad = {
            choice.name: {**good, choice.name: 987654},
            "no_such_gene": {**good, "no_such_gene": 1},
            "no gene": {name: gene for name, gene in good.items() if name != choice.name},
        }
        for message, genes in bad.items():
            assert Architecture(genes) not in space
            with pytest.raises(ArchitectureError, match=message) as caught:
                space.validate(Architecture(genes))
            assert "\n" not in str(caught.value)

    def test_encodings_are_finite_named_and_tell_architectures_apart(self) -> None:
        space = self.make()
        rows = np.unique(space.sample_rows(np.random.default_rng(4), 100), axis=0)
        for how in ("summary", "layers", "onehot"):
            features = space.encode_rows(rows, how)
            assert features.shape == (len(rows), len(space.feature_names(how)))
            assert np.isfinite(features).all()
        assert len(np.unique(space.encode_rows(rows, "onehot"), axis=0)) == len(rows)

    def test_dictionary_round_trip(self) -> None:
        space = self.make()
        reloaded = space_from_dict(json.loads(json.dumps(space_to_dict(space))))
        assert reloaded == space
        assert reloaded.name == space.name
        assert draws(reloaded) == draws(space)
