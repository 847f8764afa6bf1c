"""Image networks as a kind of network."""

from __future__ import annotations

import pytest

from nas_core.errors import ArchitectureError, ConfigError, SpaceError, UnknownChoiceError
from nas_core.models import kind_of
from nas_core.models.image import ImageWorkload, ImageWorkloadConfig
from nas_core.space import Architecture, SearchSpace, get_space, image_space
from tests.contracts.network_kind import NetworkKindContract


def tiny(**changes: object) -> SearchSpace:
    settings = {
        "layers": (1, 2, 3),
        "embed_dims": (8, 12),
        "ffn_dims": (8, 16),
        "heads": (1, 2, 3),
        "head_dim": 4,
        "image_size": 16,
        "patch_size": 4,
        "attention": ("softmax", "linear"),
        "relative_clip": 3,
    }
    return image_space("tiny", **{**settings, **changes})  # type: ignore[arg-type]


class TestImage(NetworkKindContract):
    name = "image"

    def space(self) -> SearchSpace:
        return tiny()


class TestRatios(TestImage):
    """Feed-forward widths in units of the embedding's, softmax attention alone, no relative positions."""

    settings = {"batch": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        return tiny(ffn_dims=(), mlp_ratios=(2.0, 3.5), attention=("softmax",), relative_clip=0)


def test_a_batch_of_images_of_the_size_of_the_space() -> None:
    space, config = tiny(), ImageWorkloadConfig(batch=5, classes=7, channels=1)
    workload = ImageWorkload(space, space.largest(), config)
    assert workload.classify().shape == (5, 7) and list(workload.parts) == ["network"]
    assert workload.classify().equal(ImageWorkload(space, space.largest(), config).classify())
    for name in ("batch", "classes", "channels"):
        with pytest.raises(ConfigError, match=f"{name} is 0, expected at least 1"):
            ImageWorkloadConfig(**{name: 0})
    with pytest.raises(ArchitectureError, match="head_dim"):
        ImageWorkload(space, get_space("mformer_cifar10_small").largest(), config)


def test_wrong_options_are_told_by_the_kind() -> None:
    space = tiny()
    for fixed, said in (({"image_size": "large"}, "image_size = 'large'"), ({"relative_clip": -1}, "relative_clip")):
        with pytest.raises(SpaceError, match=said):
            kind_of(SearchSpace("wrong", space.choices, {**space.fixed, **fixed}))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ffn_dims": (), "mlp_ratios": (0.0, 2.0)}, r"mlp_ratio = 0.0; expected a number above 0"),
        ({"heads": (1.5, 2)}, r"heads = 1.5; expected an integer above 0"),
        ({"relative_clip": -1}, r"relative_clip = -1; expected an integer, 0 or above"),
    ],
)
def test_what_is_expected_of_an_option_is_what_is_taken(changed: dict[str, object], said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        kind_of(tiny(**changed))


def test_one_kind_of_attention_for_all_layers_is_shown_too() -> None:
    largest = get_space("vit_cifar10_small").largest()
    assert kind_of(largest).layers(largest)[""]["attention"] == ("softmax",) * 6
    ratios = get_space("autoformer_s").smallest()
    assert set(kind_of(ratios).layers(ratios)[""]) == {"mlp_ratio", "heads", "attention"}


def test_an_architecture_says_its_network_alone() -> None:
    genes = {"layers": 1, "embed_dim": 8, "ffn_dim": 8, "heads": 2, "head_dim": 4, "image_size": 8, "patch_size": 4}
    assert kind_of(Architecture({**genes, "relative_clip": 0})).name == "image"


def test_the_activation_is_part_of_the_workload() -> None:
    space, kind = tiny(), kind_of(tiny())
    relu, gelu = ImageWorkloadConfig(), ImageWorkloadConfig(activation="gelu")
    assert [kind.described(config)["activation"] for config in (relu, gelu)] == ["relu", "gelu"]
    one, other = (ImageWorkload(space, space.largest(), config).classify() for config in (relu, gelu))
    assert not one.equal(other)
    with pytest.raises(UnknownChoiceError, match="activation"):
        ImageWorkloadConfig(activation="square")
