"""Statistics of graphs that a model reads, in groups: by operation index, by what operations do, and of a prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import GraphError, Graphs, Operation
from nas_core.graph.operation import KINDS
from nas_core.predictor.artifact import below
from nas_core.predictor.prior.model import Prior
from nas_core.predictor.statistics.operation_features import FEATURES, operation_features
from nas_core.predictor.statistics.vocabulary import Vocabulary

__all__ = ["Description"]

Array = NDArray[np.float64]
LAST = 2**31
"""Beyond any column."""


@dataclass(frozen=True)
class Description:
    """What is told of each graph: columns of the prior first, then of what operations do, then of their indices."""

    vocabulary: Vocabulary
    operations: tuple[Operation, ...] | None = None
    """What the operations of the training graphs do, where they say it"""
    prior: Prior | None = None

    @classmethod
    def of(cls, graphs: Graphs, prior: Prior | None = None) -> Description:
        """That of training graphs, at least one.

        Raises:
            GraphError: the prior needs to know what operations do, and the graphs do not say.
        """
        if prior is not None and graphs.operations is None:
            operation_features(graphs)  # says what is missing
        return cls(Vocabulary.of(graphs), graphs.operations, prior)

    @property
    def told(self) -> int:
        """How many columns are the prior's, which every process reads; the first is all that it says in one."""
        return 0 if self.prior is None else self.prior.width

    @property
    def groups(self) -> tuple[range, ...]:
        """Columns that a process draws its own from: what operations do, and all to the last; the latter alone where
        nobody says what they do."""
        every = range(self.told, LAST)
        return (every,) if self.operations is None else (range(self.told, self.told + len(FEATURES)), every)

    @property
    def counted(self) -> slice:
        """Columns that count operations by kind and value of an attribute."""
        first, own = len(self) - len(self.vocabulary), self.vocabulary.counted
        return slice(first + own.start, first + own.stop)

    def __len__(self) -> int:
        """How many statistics there are."""
        return self.told + (0 if self.operations is None else len(FEATURES)) + len(self.vocabulary)

    def describe(self, graphs: Graphs) -> Array:
        """``(G, F)`` statistics.

        Raises:
            GraphError: operations of these graphs do something else than those of the training graphs; and as of
                :meth:`Vocabulary.describe`.
        """
        parts = [self.vocabulary.describe(graphs)]
        if self.operations is not None:
            features = operation_features(self._known(graphs))
            parts.insert(0, features)
            if self.prior is not None:
                parts.insert(0, self.prior.columns(features))
        return np.concatenate(parts, 1)

    def _known(self, graphs: Graphs) -> Graphs:
        """The graphs with a word on all their operations; those without one mean what the training graphs meant."""
        assert self.operations is not None
        ops = np.unique(graphs.ops).tolist()
        table = graphs.operations or self.operations
        for op in ops:
            learned, given = (each[op] if op < len(each) else None for each in (self.operations, table))
            if learned and given and learned != given:
                raise GraphError(f"operation {op} of these graphs is {given}; of those that it learned from {learned}")
        end, most = Operation("end"), max([*ops, len(self.operations) - 1, len(table) - 1])
        whole = (*table, *self.operations[len(table) :])
        return replace(graphs, operations=(*whole, *(end for _ in range(most + 1 - len(whole)))))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        named = self.vocabulary.to_tensors()
        if self.operations is not None:
            rows = [(KINDS.index(each.kind), *astuple(each)[1:]) for each in self.operations]
            named["operations"] = torch.tensor(rows, dtype=torch.float64)
        return named if self.prior is None else named | {f"prior.{k}": v for k, v in self.prior.to_tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Description:
        """The inverse of :meth:`to_tensors`.

        Raises:
            KeyError: a tensor is missing.
            NasExtError: they do not fit together.
        """
        vocabulary, parts = Vocabulary.from_tensors(tensors), below("prior.", tensors)
        if "operations" not in tensors:
            return cls(vocabulary)
        rows = tensors["operations"]
        if rows.dtype != torch.float64 or rows.ndim != 2 or rows.shape[1] != len(fields(Operation)):
            raise DataError(
                f"operations are {rows.dtype} of shape {tuple(rows.shape)}; expected what each of them does"
            )
        return cls(vocabulary, tuple(map(_operation, rows.tolist())), Prior.from_tensors(parts) if parts else None)


def _operation(row: list[float]) -> Operation:
    """The operation of a row of numbers, kinds by index."""
    types = {"int": int, "float": float, "bool": bool}
    names = [field for field in fields(Operation) if field.name != "kind"]
    if any(field.type != "float" and value != int(value) for field, value in zip(names, row[1:], strict=True)):
        raise DataError(f"an operation of {row}; expected whole numbers")
    values = {field.name: types[str(field.type)](value) for field, value in zip(names, row[1:], strict=True)}
    if not 0 <= row[0] < len(KINDS):
        raise DataError(f"an operation of kind {row[0]:g}; expected 0 to {len(KINDS) - 1}")
    return Operation(KINDS[int(row[0])], **values)
