"""The networks that an architecture of a space consists of, with inputs to export them for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nas_core.errors import SpaceError
from nas_core.models.image.genes import check_image_space
from nas_core.models.image.net import VisionNet
from nas_core.models.image.subnet import VisionConfig
from nas_core.models.translation.net import TranslationNet
from nas_core.models.translation.workload import TranslationWorkloadConfig
from nas_core.space import Architecture, SearchSpace, static_image_space

__all__ = ["SpacePart", "holds_images", "image_parts", "translation_parts"]


@dataclass(frozen=True)
class SpacePart:
    """One network that runs ``times`` times."""

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    times: int = 1


def holds_images(space: SearchSpace) -> bool:
    """Whether its architectures are image networks."""
    try:
        check_image_space(space)
    except SpaceError:
        return False
    return True


def image_parts(space: SearchSpace, architecture: Architecture) -> list[SpacePart]:
    """One image of the space's size through the network."""
    from nas_core.models.image.export import ImageModel

    net = VisionNet(static_image_space(architecture), VisionConfig()).eval()
    height, width = net.config.image_size or (space.largest().number("image_size"),) * 2
    return [SpacePart("network", ImageModel(net, architecture), (torch.zeros(1, net.config.channels, height, width),))]


def translation_parts(
    space: SearchSpace, architecture: Architecture, config: TranslationWorkloadConfig
) -> list[SpacePart]:
    """The encoder on one sentence, and T decoder steps on ``beam`` hypotheses, each with as many past words as the
    steps have on average (one at least: a file cannot say that an input is empty).

    Raises:
        SpaceError: the space lacks a gene that the network has.
    """
    from nas_core.models.translation.export import part_inputs
    from nas_core.models.translation.export import translation_parts as parts_of

    net = TranslationNet(SearchSpace.of(architecture, like=space), config.source_vocab, config.target_vocab)
    encoder, step = parts_of(net.eval(), architecture, config.source_length, config.target_length)
    stream, lengths = torch.Generator().manual_seed(0), (config.source_length, max(1, config.target_length // 2))
    return [
        SpacePart("encoder", encoder.module, part_inputs(encoder, *lengths, 1, stream)),
        SpacePart("decoder", step.module, part_inputs(step, *lengths, config.beam, stream), config.target_length),
    ]
