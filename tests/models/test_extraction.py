"""Static networks of every kind against the subnets that they were extracted from: outputs and gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from nas_core.layers.weights import named_tensors
from nas_core.models.image import VisionNet
from nas_core.models.translation import TranslationNet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.image import static_image_space
from tests.models.image import test_net as image
from tests.models.language import test_net as language
from tests.models.language import tiny as language_tiny
from tests.models.masked_lm import test_bert as bert
from tests.models.masked_lm import tiny as masked_lm
from tests.models.translation import test_attention_kinds as kinds
from tests.models.translation import tiny as translation


class Case(NamedTuple):
    build: Callable[[str], Any]
    architectures: Mapping[str, Architecture]
    outputs: Callable[[Any, Any], list[Tensor]]
    mixtures: Collection[str]
    tolerance: float = 1e-5


def translated(net: Any, subnet: Any) -> list[Tensor]:
    return [net(subnet, translation.sentences(5, 7, 2), translation.sentences(6, 4, 3, seed=1))]


def predicted(net: Any, subnet: Any) -> list[Tensor]:
    features = net.encode(subnet, masked_lm.sentences())
    heads = [net.classify(subnet, features, head) for head in subnet.classification_heads]
    return [net.predict(subnet, features), *heads]


def masked(form: str, space: SearchSpace, tolerance: float = 1e-5) -> Case:
    return Case(
        lambda mos: masked_lm.build(form, space, mos), masked_lm.architectures(space), predicted, masked_lm.MIXTURES,
        tolerance,
    )  # fmt: skip


IMAGES = {"patches": {"class_token": False}, "token": {"pool": "token"}}
CASES = {
    **{
        f"translation, {tables} tables": Case(
            lambda mos, tables=tables: translation.build(mos, tables, norm_first=tables == "decoder"),
            translation.ARCHITECTURES, translated, translation.MIXTURES,
        )
        for tables in translation.EMBEDDINGS
    },
    "translation, every attention": Case(
        lambda mos: translation.build(mos, space=kinds.MIXED, **kinds.SETTINGS["relative"]).double(),
        {str(index): architecture for index, architecture in enumerate(kinds.some_architectures())},
        translated, ("neuron",), 1e-9,
    ),
    **{
        f"image, {name}": Case(
            lambda mos, options=options: image.build(mos=image.MIXTURES[mos], **options), image.ARCHITECTURES,
            lambda net, subnet: [net(subnet, image.images())], image.MIXTURES, 2e-5,
        )
        for name, options in IMAGES.items()
    },
    **{
        f"language, {name}": Case(
            lambda mos, config=config: language_tiny.build(mos, **config), language_tiny.architectures(),
            lambda net, subnet: [net(subnet, language_tiny.sentences(2, 30))], language_tiny.MIXTURES, 1e-4,
        )
        for name, config in language.CONFIGS.items()
    },
    **{f"masked_lm, {form}": masked(form, masked_lm.SPACE) for form in masked_lm.FORMS},
    "masked_lm, every attention": masked("roberta", masked_lm.MIXED, 1e-4),
    **{f"bert, {name}": masked("untied", space, 1e-4) for name, space in bert.SPACES.items()},
}  # fmt: skip


def static_of(net: Any, architecture: Architecture) -> Any:
    """The static network, which is loaded with the extracted state."""
    if isinstance(net, VisionNet):
        static: Any = VisionNet(static_image_space(architecture), net.config.static())
    else:
        subnet = net.select(architecture)
        tables = (subnet.source_embedding, subnet.output) if isinstance(net, TranslationNet) else (subnet.embedding,)
        space = SearchSpace.of(architecture, like=net.space)
        static = type(net)(space, *map(len, tables), net.config.static())
    static = static.to(next(net.parameters()).dtype)
    static.load_state_dict(net.static_state(architecture), strict=True)
    return static.eval()


@pytest.mark.parametrize(("name", "mos"), [(name, mos) for name, case in CASES.items() for mos in case.mixtures])
def test_extracted_equals_the_active_subnet(name: str, mos: str) -> None:
    case = CASES[name]
    for which, architecture in case.architectures.items():
        net = case.build(mos).eval()
        static, subnet = static_of(net, architecture), net.select(architecture)
        selected, supernet = dict(named_tensors(subnet)), dict(net.named_parameters())
        for tensor in selected.values():
            tensor.retain_grad()
        results = []
        for model, weights in ((net, subnet), (static, static.select(architecture))):
            outputs = case.outputs(model, weights)
            torch.manual_seed(1)
            sum((output * torch.randn(output.shape)).sum() for output in outputs).backward()  # type: ignore[union-attr]
            results.append(outputs)
        for got, expected in zip(*results, strict=True):
            torch.testing.assert_close(got, expected, atol=case.tolerance, rtol=case.tolerance)
        for parameter, value in static.named_parameters():
            if parameter in selected:  # layers change their index, and experts are mixed
                gradient = selected[parameter].grad
            else:
                gradient = supernet[parameter].grad[tuple(slice(size) for size in value.shape)]
            torch.testing.assert_close(
                gradient, value.grad, atol=case.tolerance, rtol=case.tolerance,
                msg=lambda m, p=parameter, w=which: f"{w}, gradient of {p}: {m}",
            )  # fmt: skip
