"""Samples of NNI's model spaces as graphs, by the kind of network that the space holds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("nni.nas.strategy", reason="needs NNI: pip install 'nas-ext[nni]'")

from nas_core.errors import ConfigError, SpaceError
from nas_core.models import kind_of
from nas_core.space import Choice, SearchSpace, get_space
from nni_ext import as_model_space
from nni_ext.nas.readers import reader_for


@pytest.mark.parametrize(("name", "kind"), [("hat_small", "translation"), ("mformer_cifar10_small", "image")])
def test_a_space_is_read_by_its_kind(name: str, kind: str) -> None:
    space = get_space(name)
    made, architecture = as_model_space(space), space.sample(np.random.default_rng(0))
    options = [row for choice in space.choices for row in choice.options]
    chosen = [row[max(0, index)] for row, index in zip(options, space.row(architecture), strict=True)]
    sample = dict(zip(space.feature_names("layers"), chosen, strict=True))
    assert reader_for(made, kind)(sample) == reader_for(made)(sample) == kind_of(space).graph(architecture)
    with pytest.raises(ConfigError, match=f"models of ArchitectureSpace are read by {kind}:"):
        reader_for(made, "nasbench201")


def test_a_space_of_no_kind_is_refused() -> None:
    with pytest.raises(SpaceError, match="space 'size' fits no kind of network"):
        reader_for(as_model_space(SearchSpace("size", [Choice.make("size", [1, 2])])))
