"""The active subnet of a supernet model: random in training, fixed in evaluation.

Random subnets depend only on seed and update number, so that all workers use the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.sampling import draw

Weights = TypeVar("Weights")


class SubnetHolder(Generic[Weights]):
    """Mixin for ``torch.nn.Module`` of a host framework that runs one subnet at a time.

    A subclass calls :meth:`set_space`, implements :meth:`select`, and sets :attr:`train_architecture` to :meth:`draw`
    at each update. Checkpoints do not contain the active subnet.
    """

    training: bool
    space: SearchSpace
    train_architecture: Architecture
    """Architecture in training."""
    eval_architecture: Architecture
    """Architecture in evaluation."""
    fixed_architecture: Architecture | None = None
    """Architecture inside a block of :meth:`use_architecture`, in training and evaluation."""
    _frozen: Weights | None = None

    def set_space(self, space: SearchSpace, seed: int, sampling: str = "gene") -> None:
        """Set the search space, and use the largest architecture.

        Args:
            seed: seed of :meth:`draw`.
            sampling: one of :data:`nas_core.supernet.sampling.DRAWS`.
        """
        self.space, self._seed, self._sampling = space, seed, sampling
        self.train_architecture = self.eval_architecture = space.largest()

    def select(self, architecture: Architecture) -> Weights:
        raise NotImplementedError

    @property
    def architecture(self) -> Architecture:
        if self.fixed_architecture is not None:
            return self.fixed_architecture
        return self.train_architecture if self.training else self.eval_architecture

    def draw(self, update: int) -> Architecture:
        """Return the random architecture of an update. It is the same in all processes."""
        return draw(self.space, update, self._seed, self._sampling)

    @contextmanager
    def use_architecture(self, architecture: Architecture, freeze: bool = False) -> Iterator[None]:
        """Use an architecture inside a ``with`` block. Blocks can be nested.

        Args:
            freeze: select its weights only once. They must not change inside the block.
        """
        checked = self.space.validate(architecture)
        with self.use_subnet(checked, self.select(checked) if freeze else None):
            yield

    @contextmanager
    def use_subnet(self, architecture: Architecture, weights: Weights | None) -> Iterator[None]:
        """Use an architecture inside a ``with`` block. If ``weights`` is None, each forward pass selects them."""
        previous = self.fixed_architecture, self._frozen
        self.fixed_architecture, self._frozen = architecture, weights
        try:
            yield
        finally:
            self.fixed_architecture, self._frozen = previous

    def active_subnet(self) -> Weights:
        return self.select(self.architecture) if self._frozen is None else self._frozen
