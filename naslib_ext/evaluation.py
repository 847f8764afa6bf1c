"""Configuration, search spaces and accuracy tables for NASLib's evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError, unknown_choice
from nas_core.files.archives import DAMAGED_ARCHIVE, open_npz
from nas_core.graph.nasbench201 import nasbench201_ops
from naslib_ext.compat import load

SPACES = ("nasbench101", "nasbench201", "nasbench301")
"""Search spaces that both NASLib's evaluator and :func:`naslib_ext.graphs.graph_of` support."""


class Settings(dict[str, Any]):
    """Configuration for NASLib: a dictionary whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def make_space(name: str) -> Any:
    """Create a search space of NASLib that samples architectures without building torch modules."""
    if name not in SPACES:
        raise unknown_choice("search space of NASLib's evaluator", name, SPACES)
    if name == "nasbench201":
        return _light_nasbench201()
    (spaces,) = load("naslib.search_spaces")
    space = {"nasbench101": spaces.NasBench101SearchSpace, "nasbench301": spaces.NasBench301SearchSpace}[name]()
    space.instantiate_model = False
    return space


def _light_nasbench201() -> Any:
    # NASLib's own class copies 15 cells of torch modules, 0.3 s per architecture.
    graph, core = load("naslib.search_spaces.nasbench201.graph", "naslib.search_spaces.core.graph")

    class LightNasBench201(graph.NasBench201SearchSpace):  # type: ignore[misc, name-defined]
        """NASLib's NAS-Bench-201, with architectures of six operation indices only."""

        def __init__(self) -> None:
            core.Graph.__init__(self)
            self.space_name = "nasbench201"
            self.op_indices = self.labeled_archs = None
            self.instantiate_model = self.sample_without_replacement = False
            self.max_epoch = 199

        def clone(self) -> Any:
            copy = type(self)()
            copy.op_indices = self.op_indices
            return copy

    return LightNasBench201()


class NASBench201Table(dict[str, Any]):
    """Accuracies of NAS-Bench-201 with the interface of NASLib's pickled table.

    Args:
        ops: ``(n, 6)`` operation indices in the official order.
        accuracies: ``(n,)`` in percent.
        dataset: name of the data set in NASLib's pickles.
    """

    def __init__(self, ops: NDArray[np.integer[Any]], accuracies: NDArray[np.floating[Any]], dataset: str) -> None:
        super().__init__()
        self.rows = {tuple(row): index for index, row in enumerate(ops.tolist())}
        self.accuracies, self.dataset = accuracies, dataset

    def __missing__(self, architecture: str) -> dict[str, Any]:
        row = self.rows.get(nasbench201_ops(architecture))
        if row is None:
            raise DataError(f"the table has no architecture {architecture}; give a table of all 15,625 architectures")
        accuracy = float(self.accuracies[row])
        costs = {"train_time": 0.0}  # the evaluator sums it; the table has none
        return {self.dataset: {"eval_acc1es": [accuracy], "train_acc1es": [accuracy], "cost_info": costs}}


def nasbench201_table(path: str | Path, column: str | None = None) -> dict[str, Any]:
    """Read an ``.npz`` table with ``ops`` (n, 6) and columns of accuracies (n,) as NASLib's ``dataset_api``.

    Args:
        column: column to read; default: the only column of validation accuracy after 200 epochs.
    """
    try:
        with open_npz(path) as file:
            arrays = {name: file[name] for name in file.files}
    except DAMAGED_ARCHIVE as error:
        raise DataError(
            f"{path} cannot be read as a table ({error}); give an .npz file with 'ops' of shape (n, 6)"
        ) from None
    ops = arrays.pop("ops", np.zeros(0))
    if ops.ndim != 2 or ops.shape[1] != 6 or ops.dtype.kind not in "iu":
        raise DataError(
            f"'ops' in {path} has shape {ops.shape} and type {ops.dtype}; expected integers of shape (n, 6)"
        )
    columns = [name for name, values in arrays.items() if values.shape == (len(ops),) and values.dtype.kind == "f"]
    candidates = [name for name in columns if "val" in name and name.endswith("200")] or columns
    selected = column or (candidates[0] if len(candidates) == 1 else "")
    if selected not in columns:
        raise unknown_choice(f"column of {Path(path).name}", selected, columns)
    return {"nb201_data": NASBench201Table(ops, arrays[selected], "cifar10-valid")}
