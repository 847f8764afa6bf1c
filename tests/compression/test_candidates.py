"""Candidates at a limit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nas_core.compression.candidates import SPACED, Fitting, depths, plain_drops, pruned
from nas_core.space import Architecture, get_space
from nas_core.space.image import image_space

SPACE = image_space("six", layers=(6, 3), embed_dims=(64, 48), heads=(4, 2), ffn_dims=(256, 64), head_dim=16,
                    image_size=32, patch_size=8, attention=("softmax",), relative_clip=0)  # fmt: skip


def share(architecture: Architecture) -> float:
    """A latency that is linear in sizes, 1 for the whole network."""
    heads, hidden = architecture.numbers("heads"), architecture.numbers("ffn_dim")
    width = architecture.number("embed_dim") / 64
    return 0.1 + 0.9 * width * sum(0.4 * h / 4 + 0.6 * f / 256 for h, f in zip(heads, hidden, strict=True)) / 6


def test_kept_layers_and_widths_decide_the_architecture() -> None:
    assert pruned(SPACE, {"": range(6)}) == SPACE.largest()
    architecture = pruned(SPACE, {"": (0, 3)}, ("heads", "ffn_dim"), 0.5)
    assert architecture.number("layers") == 2 and architecture.number("embed_dim") == 64
    assert architecture.numbers("heads") == (2, 2) and architecture.numbers("ffn_dim") == (128, 128)


@pytest.mark.parametrize("limit", [0.25, 0.35, 0.5, 0.75])
def test_all_candidates_are_within_the_limit_and_the_drops_are_the_deepest(limit: float) -> None:
    fitting = Fitting(SPACE, share, limit)
    drops, mixed = fitting.drops({"": 6}), fitting.mixed({"": 6}, {"": (0, 5, 1, 4, 2, 3)})
    assert all(share(candidate.architecture) <= limit for candidate in (*drops, *mixed))
    depth = int((limit - 0.1) / 0.15 + 1e-9)
    kept = {candidate.layers[""] for candidate in drops}
    assert kept == {tuple(layers) for layers in plain_drops(6, depth).values()}
    assert {len(candidate.layers[""]) for candidate in mixed} > {depth}, "deeper networks of smaller widths"
    deepest = max(mixed, key=lambda candidate: len(candidate.layers[""]))
    assert share(deepest.architecture) > limit - 0.1, "as wide as the limit lets it be"
    for candidate in mixed:
        heads, hidden = candidate.architecture.numbers("heads"), candidate.architecture.numbers("ffn_dim")
        reduced = {"channels": candidate.architecture.number("embed_dim") < 64, "heads": max(heads) < 4}
        named = {name for name in ("channels", "heads", "hidden units") if name in candidate.name}
        assert named == {
            name for name, is_reduced in {**reduced, "hidden units": max(hidden) < 256}.items() if is_reduced
        }


@pytest.mark.parametrize(
    ("sides", "last"),
    [({"encoder": 6, "decoder": 1}, []), ({"": 3}, []),
     ({"encoder": 2, "decoder": 3}, [{"encoder": 2, "decoder": 2}, {"encoder": 2, "decoder": 1}])],
)  # fmt: skip
def test_depths_of_all_sides_and_of_the_last(sides: dict[str, int], last: list[dict[str, int]]) -> None:
    equal, *others = depths(sides)
    assert equal[0] == sides and [option[list(sides)[-1]] for option in equal] == [
        *range(equal[0][list(sides)[-1]], 0, -1)
    ]
    assert others == ([last] if last else [])


def test_layers_of_the_decoder_are_dropped_alone() -> None:
    space = get_space("hat_small")
    sides = {side: space.largest().number(f"{side}.layers") for side in ("encoder", "decoder")}

    def by_decoder(architecture: Architecture) -> float:
        return architecture.number("decoder.layers") / sides["decoder"]

    drops = Fitting(space, by_decoder, 0.7).drops(sides)
    equal, alone = ([c for c in drops if c.name.endswith("decoder") == ends] for ends in (False, True))
    assert all(len(c.layers["decoder"]) < sides["decoder"] for c in drops) and equal and alone
    assert {len(c.layers["encoder"]) for c in alone} == {sides["encoder"]}
    assert all(len(c.layers["encoder"]) < sides["encoder"] for c in equal)
    (whole,) = Fitting(space, by_decoder, 1.0).drops(sides)[:1]
    assert whole.name == "all layers"


def test_nothing_within_the_limit() -> None:
    fitting = Fitting(SPACE, share, 0.05)
    assert not fitting.drops({"": 6}) and not fitting.mixed({"": 6}, {"": range(6)})


@pytest.mark.parametrize(
    ("depth", "count", "every"),
    [(6, 3, {SPACED: (0, 2, 5), "without the first layers": (3, 4, 5), "without the last layers": (0, 1, 2)}),
     (4, 1, {SPACED: (0,), "without the first layers": (3,), "without the last layers": (0,)})],
)  # fmt: skip
def test_plain_drops(depth: int, count: int, every: Mapping[str, tuple[int, ...]]) -> None:
    assert plain_drops(depth, count) == every
