"""The subnet that a supernet runs: drawn while training, fixed in evaluation, or held for the length of a block.

Every worker knows the same one without being told: a draw depends on the seed and the update number alone, see
:mod:`nas_core.supernet.sampling`. What is held belongs to one model object and is not guarded against other threads:
a second thread that runs the same model runs what the first one holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.sampling import draw

Weights = TypeVar("Weights")


class SubnetHolder(Generic[Weights]):
    """What a host's model class inherits beside its own base (a ``torch.nn.Module``) to run one subnet at a time.

    The architecture in use is :attr:`architecture`. A subclass calls :meth:`start`, gives :meth:`select`, and says when
    a new architecture is drawn by setting :attr:`train_architecture` to :meth:`draw` of its update number. Nothing
    of this is a parameter or a buffer, so it is no part of a checkpoint.
    """

    training: bool
    """Set by ``torch.nn.Module``."""
    space: SearchSpace
    train_architecture: Architecture
    """In use while training: the latest draw."""
    eval_architecture: Architecture
    """In use in evaluation."""
    held: Architecture | None = None
    """In use whatever the mode, inside :meth:`using`."""
    _frozen: Weights | None = None

    def start(self, space: SearchSpace, seed: int, how: str) -> None:
        """Begin with the largest architecture; ``how`` is one of :data:`nas_core.supernet.sampling.DRAWS`."""
        self.space, self._seed, self._how = space, seed, how
        self.train_architecture = self.eval_architecture = space.largest()

    def select(self, architecture: Architecture) -> Weights:
        """The weights of an architecture that was checked to be one of the space."""
        raise NotImplementedError

    @property
    def architecture(self) -> Architecture:
        """The architecture in use."""
        if self.held is not None:
            return self.held
        return self.train_architecture if self.training else self.eval_architecture

    def draw(self, update: int) -> Architecture:
        """The random architecture of an update, the same in every process."""
        return draw(self.space, update, self._seed, self._how)

    @contextmanager
    def using(self, architecture: Architecture, freeze: bool = False) -> Iterator[None]:
        """Run with this architecture; ``freeze`` mixes and slices its weights once for the whole block, which is right
        only while no weight changes. Blocks may stand in each other.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        checked = self.space.validate(architecture)
        with self.running(checked, self.select(checked) if freeze else None):
            yield

    @contextmanager
    def running(self, architecture: Architecture, weights: Weights | None) -> Iterator[None]:
        """Run with an architecture of the space and these weights, which :meth:`select` gave for it; None: whichever it
        gives at each pass."""
        previous = self.held, self._frozen
        self.held, self._frozen = architecture, weights
        try:
            yield
        finally:
            self.held, self._frozen = previous

    def active_subnet(self) -> Weights:
        """The weights of the architecture in use."""
        return self.select(self.architecture) if self._frozen is None else self._frozen
