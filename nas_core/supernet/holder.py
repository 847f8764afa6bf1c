"""The active subnet of a supernet: drawn in training, fixed in evaluation, or held inside a block.

Draws depend only on seed and update number, so all workers use the same subnet. The state belongs to the model object
and is shared by threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.sampling import draw

Weights = TypeVar("Weights")


class SubnetHolder(Generic[Weights]):
    """Mixin of a host's ``torch.nn.Module`` that runs one subnet at a time.

    A subclass calls :meth:`start`, implements :meth:`select`, and sets :attr:`train_architecture` to :meth:`draw` of an
    update number. Checkpoints do not contain the state.
    """

    training: bool
    space: SearchSpace
    train_architecture: Architecture
    """Latest draw, used in training."""
    eval_architecture: Architecture
    """Used in evaluation."""
    held: Architecture | None = None
    """Used in both inside :meth:`using`."""
    _frozen: Weights | None = None

    def start(self, space: SearchSpace, seed: int, how: str) -> None:
        """Start with the largest architecture; :meth:`draw` uses ``seed`` and ``how``, one of
        :data:`nas_core.supernet.sampling.DRAWS`.
        """
        self.space, self._seed, self._how = space, seed, how
        self.train_architecture = self.eval_architecture = space.largest()

    def select(self, architecture: Architecture) -> Weights:
        raise NotImplementedError

    @property
    def architecture(self) -> Architecture:
        if self.held is not None:
            return self.held
        return self.train_architecture if self.training else self.eval_architecture

    def draw(self, update: int) -> Architecture:
        """Return the random architecture of an update, the same in all processes."""
        return draw(self.space, update, self._seed, self._how)

    @contextmanager
    def using(self, architecture: Architecture, freeze: bool = False) -> Iterator[None]:
        """Use an architecture inside a block; blocks may be nested.

        Args:
            freeze: select its weights once for the block; no weight may change inside.
        """
        checked = self.space.validate(architecture)
        with self.running(checked, self.select(checked) if freeze else None):
            yield

    @contextmanager
    def running(self, architecture: Architecture, weights: Weights | None) -> Iterator[None]:
        """Use an architecture and its weights from :meth:`select`; None: select them in each forward pass."""
        previous = self.held, self._frozen
        self.held, self._frozen = architecture, weights
        try:
            yield
        finally:
            self.held, self._frozen = previous

    def active_subnet(self) -> Weights:
        return self.select(self.architecture) if self._frozen is None else self._frozen
