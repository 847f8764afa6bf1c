"""HAT's spaces, draw order, files and released architectures."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.published import HAT_SPACES, RELEASED, absent, released
from nas_core.errors import ArchitectureError, DataError
from nas_core.space import Architecture, get_space, hat_draw, read_hat_yaml


@pytest.mark.parametrize("name", HAT_SPACES.values())
def test_size_is_the_published_one(name: str) -> None:
    space = get_space(name)
    assert space.cardinality() == 417_846_678_672_384
    assert space.cardinality() == 2 * 2 * (3 * 2) ** 6 * sum((3 * 2 * 2 * 3) ** depth for depth in range(1, 7))
    assert space.slots.count == 40  # HAT's gene has 40 places


def test_small_space_fits_the_sizes_it_is_meant_for() -> None:
    space = get_space("hat_small")
    assert space.cardinality() == 2 * 2 * 6**3 * (36 + 36**2 + 36**3)
    assert space.largest().number("encoder.embed_dim") == 128
    assert space.largest().numbers("decoder.ffn_dim") == (512, 512, 512)


def reference_draw(update: int) -> dict[str, Any]:
    """HAT's procedure for the WMT spaces, written down once more from its description."""
    random.seed(update)
    genes: dict[str, Any] = {"qkv_dim": 512}
    genes["encoder.embed_dim"] = random.choice([640, 512])
    genes["decoder.embed_dim"] = random.choice([640, 512])
    genes["encoder.layers"] = random.choice([6])
    genes["decoder.layers"] = random.choice([6, 5, 4, 3, 2, 1])
    for name in ("encoder.ffn_dim", "encoder.self_heads", "decoder.ffn_dim", "decoder.self_heads"):
        genes[name] = []
    genes["decoder.cross_heads"] = []
    for _ in range(genes["encoder.layers"]):
        genes["encoder.ffn_dim"].append(random.choice([3072, 2048, 1024]))
        genes["encoder.self_heads"].append(random.choice([8, 4]))
    for _ in range(genes["decoder.layers"]):
        genes["decoder.ffn_dim"].append(random.choice([3072, 2048, 1024]))
        genes["decoder.self_heads"].append(random.choice([8, 4]))
        genes["decoder.cross_heads"].append(random.choice([8, 4]))
    cross = [random.choice([-1, 1, 2]) for _ in range(6)]
    genes["decoder.arbitrary_cross"] = cross[: genes["decoder.layers"]]
    return genes


def test_draw_order_is_hats() -> None:
    space = get_space("hat_wmt14_en_de")
    for update in (*range(40), 39_999):
        drawn = hat_draw(space, update)
        assert drawn == Architecture(reference_draw(update))
        assert drawn in space


def test_draw_leaves_the_global_generator_alone() -> None:
    random.seed(5)
    expected = random.random()
    random.seed(5)
    hat_draw(get_space("hat_small"), 1)
    assert random.random() == expected


def test_released_architectures_lie_in_their_spaces() -> None:
    if reason := absent(RELEASED):
        pytest.skip(reason)
    outside = {}
    entries = released()
    for entry, architecture in entries:
        try:
            get_space(HAT_SPACES[entry["task"]]).validate(architecture)
        except ArchitectureError as error:
            outside[entry["name"]] = str(error)
    assert len(entries) == 44
    assert outside == {}


HAT_YAML = """
encoder-embed-dim-subtransformer: 512
decoder-embed-dim-subtransformer: 512
encoder-ffn-embed-dim-all-subtransformer: [3072, 3072, 3072, 3072, 3072, 3072]
decoder-ffn-embed-dim-all-subtransformer: [3072, 3072, 1024]
encoder-layer-num-subtransformer: 6
decoder-layer-num-subtransformer: 2
encoder-self-attention-heads-all-subtransformer: [4, 8, 8, 4, 8, 8]
decoder-self-attention-heads-all-subtransformer: [8, 8]
decoder-ende-attention-heads-all-subtransformer: [8, 8]
decoder-arbitrary-ende-attn-all-subtransformer: [-1, 1]
"""


def test_sub_transformer_file(tmp_path: Path) -> None:
    path = tmp_path / "titanxp.yml"
    path.write_text(HAT_YAML)
    architecture = read_hat_yaml(path)
    assert architecture in get_space("hat_wmt14_en_de")
    assert architecture.numbers("decoder.ffn_dim") == (3072, 3072)  # the third of two layers is dropped
    assert architecture.numbers("decoder.arbitrary_cross") == (-1, 1)
    assert architecture.number("qkv_dim") == 512


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not readable as YAML"),
        ("- 1", "missing"),
        ("a: 1", "encoder-embed-dim-subtransformer"),
        (HAT_YAML.replace("num-subtransformer: 2", "num-subtransformer: two"), "'two' layers"),
        (HAT_YAML.replace("num-subtransformer: 2", "num-subtransformer: 3"), "3 layers"),
    ],
)
def test_bad_sub_transformer_files(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(text)
    with pytest.raises(ArchitectureError, match=said):
        read_hat_yaml(path)
    with pytest.raises(DataError, match=r"missing\.yml"):
        read_hat_yaml(tmp_path / "missing.yml")


def test_summary_encoding_is_hats_latency_features() -> None:
    """Averages over existing layers, cross-attention as the number of encoder layers read, HAT's constants."""
    architecture = Architecture(
        {
            **get_space("hat_wmt14_en_de").largest().to_dict(),
            "decoder.layers": 2,
            "decoder.ffn_dim": [3072, 1024],
            "decoder.self_heads": [8, 4],
            "decoder.cross_heads": [4, 4],
            "decoder.arbitrary_cross": [-1, 2],
        }
    )
    space = get_space("hat_wmt14_en_de")
    features = dict(zip(space.feature_names(), space.encode(architecture)[0], strict=True))
    expected = {
        "encoder.embed_dim": 640 / 640,
        "encoder.layers": 6 / 6,
        "encoder.ffn_dim.mean": 3072 / 2048,
        "encoder.self_heads.mean": 8 / 6,
        "decoder.embed_dim": 640 / 640,
        "decoder.layers": 2 / 6,
        "decoder.ffn_dim.mean": 2048 / 2048,
        "decoder.self_heads.mean": 6 / 6,
        "decoder.cross_heads.mean": 4 / 6,
        "decoder.arbitrary_cross.mean": (1 + 3) / 2 / 2,
    }
    assert features.keys() == expected.keys()
    assert np.allclose([features[name] for name in expected], list(expected.values()))
