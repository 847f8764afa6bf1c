"""Recipes, precisions and readers by name."""

from __future__ import annotations

from nas_core.graph import Graph, Graphs
from nas_core.graph.nasbench201 import nasbench201_graph
from nas_core.predictor import READERS, NNFormer, reader_for
from nas_core.predictor.readers import reader_names
from nas_core.predictor.recipes import get_recipe, required_settings
from tests.predictor.graphs import random_graphs


def test_a_recipe_adapts_to_the_number_of_graphs() -> None:
    recipe = get_recipe("ensemble")
    assert recipe.adapt(100) == recipe
    changed = recipe.with_changes(members=2).adapt(4236)
    assert changed.members == 2 and changed.train.batch_size == 66
    assert recipe.with_changes(batch_size=8, dim=64).adapt(6400).train.batch_size == 8
    assert recipe.adapt(100).train.batch_size == 16 and recipe.adapt(6400).train.batch_size == 100
    paper = get_recipe("paper")
    assert paper.adapt(4236) == paper


def test_data_decide_what_the_model_reads() -> None:
    featured, bare = random_graphs((7, 40), features=True), Graphs.of([Graph([0, 40], [(0, 1)])])
    needed = {"attributes": 8, "shapes": 4, "static": 4, "max_nodes": 41}
    assert (
        required_settings(random_graphs((7, 5)), get_recipe("paper"))
        == required_settings(featured, get_recipe("latency"))
        == {}
    )
    assert required_settings(featured, get_recipe("paper")) == needed
    changed = get_recipe("paper").with_changes(attributes=0, max_nodes=50)
    assert required_settings(featured, changed) == {"shapes": 4, "static": 4}
    needed = required_settings(bare, get_recipe("latency"))
    assert needed == {"attributes": 0, "shapes": 0, "static": 0, "operations": 41}
    assert NNFormer(get_recipe("latency").with_changes(dim=16, **needed).model).embed.in_features == 41


def test_readers_have_their_names() -> None:
    assert all(reader_for(name) is reader and reader.name == name for name, reader in READERS.items())
    assert set(reader_names()) > {"translation", "image", "language", "masked_lm", *READERS.names()}
    cell = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
    pruned, full = (reader_for(name).from_json(cell) for name in ("nasbench201", "nasbench201_unpruned"))
    assert len(pruned) == 3 and full == nasbench201_graph(cell, prune=False) and len(full) == 5
