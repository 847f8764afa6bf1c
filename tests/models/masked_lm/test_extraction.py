"""Static masked language models against the subnets that they were extracted from, outputs and gradients."""

from __future__ import annotations

import torch

from nas_core.layers.positions import sinusoids
from nas_core.models.masked_lm import MaskedLMNet
from nas_core.models.masked_lm.costs import parameters
from tests.models.masked_lm.tiny import (
    ARCHITECTURES,
    SPACE,
    VOCAB,
    build,
    every_architecture,
    every_form,
    extract,
)


@every_form
@every_architecture
def test_counted_parameters_equal_the_formula(form: str, name: str) -> None:
    static = extract(build(form), ARCHITECTURES[name])
    counted = sum(parameter.numel() for parameter in static.parameters())
    assert counted == parameters(ARCHITECTURES[name], VOCAB, static.config)


def test_the_width_of_the_supernet_travels_with_the_weights() -> None:
    static = extract(build("sinusoids"), SPACE.smallest())
    assert int(static.reference_width) == 16 and static.positions.width == 16
    assert torch.equal(static.positions(300, 12), sinusoids(300, 16)[:, :12])
    assert MaskedLMNet(static.space, VOCAB, reference_width=16).positions.width == 16
