"""The table of readers."""

from __future__ import annotations

import pytest

from nas_core.errors import UnknownChoiceError
from nas_core.graph import READERS, nasbench201_graph, reader_for


def test_readers_are_found_by_their_names() -> None:
    assert all(reader_for(name) is reader and reader.name == name for name, reader in READERS.items())
    assert reader_for("nasbench201").read is nasbench201_graph
    assert len(READERS) == 6


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UnknownChoiceError, match=r"'nasbench202'.*Did you mean 'nasbench201'"):
        reader_for("nasbench202")
