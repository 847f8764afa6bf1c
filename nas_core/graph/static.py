"""Numbers of whole networks, put to graphs that others made: costs, zero-cost proxies, whatever is known of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.graphs import Graphs


def with_static(graphs: Graphs | Iterable[Graph], values: ArrayLike) -> Graphs:
    """The same graphs with further static features, behind those that they have.

    Args:
        values: ``(G, F)``, a row of numbers for each graph, or ``(G,)``, one.

    Raises:
        GraphError: another number of rows, or values that are no numbers.
    """
    made = Graphs.of(graphs)
    try:
        columns = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise GraphError("static features are no table of numbers; expected a row for each graph") from None
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or len(columns) != len(made):
        raise GraphError(f"static features have shape {columns.shape}; expected ({len(made)}, F), a row for each graph")
    if not np.isfinite(columns).all():
        raise GraphError("static features hold a value that is no number; leave such networks out, or give one")
    return replace(made, static=columns.copy() if made.static is None else np.hstack([made.static, columns]))
