"""The table of readers."""

from __future__ import annotations

import pytest

from nas_core.errors import UnknownChoiceError
from nas_core.graph import nasbench201_graph
from nas_core.predictor import READERS, reader_for, reader_names


def test_readers_are_found_by_their_names() -> None:
    assert all(reader_for(name) is reader and reader.name == name for name, reader in READERS.items())
    assert reader_for("nasbench201").read is nasbench201_graph
    assert reader_names() == [*READERS.names(), "translation", "image", "language", "masked_lm", "bert"]
    assert len(READERS.names()) == 7


def test_latency_reads_operations_that_reach_no_output() -> None:
    cell = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
    pruned, whole = (reader_for(name).from_json(cell) for name in ("nasbench201", "nasbench201_unpruned"))
    assert len(pruned) == 3 and whole == nasbench201_graph(cell, prune=False) and len(whole) == 5


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UnknownChoiceError, match=r"'nasbench202'.*Did you mean 'nasbench201'"):
        reader_for("nasbench202")
