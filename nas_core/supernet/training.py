"""What studies ask of a supernet whose host can train: its subnets from scratch or further, or another supernet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nas_core.space import Architecture
from nas_core.supernet.host import Supernet

if TYPE_CHECKING:
    from nas_core.layers import MoSConfig

__all__ = ["FurtherTraining", "StandaloneTraining", "SupernetTraining"]


@runtime_checkable
class StandaloneTraining(Protocol):
    """A :class:`Supernet` whose host can train its architectures from scratch, each as a static network."""

    def examples_key(self) -> str:
        """A text that is equal for supernets and standalone networks that are evaluated on equal examples."""
        ...

    def training_data(self) -> Mapping[str, str]:
        """What :meth:`standalone_command` trains and validates on, as resolved paths by what they are for: networks
        that were trained on other data are not mixed with these.

        Raises:
            ConfigError: nothing says what to train on.
        """
        ...

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> Sequence[str]:
        """The command that trains an architecture by the host's own trainer with the settings of the supernet's
        training; started again, it goes on from what an interrupted run left in the folder.

        Args:
            folder: where the run lies; it is there.
            changes: settings that are others than the supernet's, by the host's names.

        Raises:
            ConfigError: the checkpoint does not say how it was trained, or there is no such setting.
        """
        ...

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        """Metrics of the network that the command has trained in a folder, by the names of :meth:`Supernet.evaluate`,
        and the :meth:`examples_key` of what it was evaluated on.

        Raises:
            CheckpointError, DataError: the run has left no network.
        """
        ...


@runtime_checkable
class FurtherTraining(StandaloneTraining, Protocol):
    """A :class:`StandaloneTraining` whose host can also train a subnet on from its inherited weights."""

    def further_command(
        self, architecture: Architecture, folder: Path, changes: Mapping[str, str], every: int, most: int
    ) -> Sequence[str]:
        """The command that trains a subnet further, as :meth:`standalone_command` would from scratch, under one
        schedule of the learning rate; started again, it goes on.

        Args:
            folder: where the run lies; it is there.
            changes: settings that are others than the supernet's, by the host's names.
            every: updates after which the network is kept each time.
            most: updates of the whole run.

        Raises:
            ConfigError: the checkpoint does not say how it was trained, or there is no such setting.
        """
        ...

    def kept_networks(self, folder: Path) -> Mapping[int, Path]:
        """The networks that the command has kept in a folder so far, written whole, by their number of updates; also
        such as were kept for other reasons."""
        ...

    def evaluate_network(self, path: Path) -> dict[str, float]:
        """Metrics of a kept network, on the same examples as :meth:`Supernet.evaluate`."""
        ...

    def standalone_updates(self, folder: Path) -> int | None:
        """How many updates the network of :meth:`standalone_command` was trained for; None: nobody knows."""
        ...


@runtime_checkable
class SupernetTraining(Protocol):
    """A :class:`Supernet` whose host can train another supernet of the same space with other experts."""

    @property
    def experts(self) -> MoSConfig:
        """The experts and routers that it has."""
        ...

    def training_data(self) -> Mapping[str, str]:
        """What :meth:`supernet_command` trains and validates on, as resolved paths by what they are for."""
        ...

    def supernet_command(self, folder: Path, experts: MoSConfig, changes: Mapping[str, str]) -> Sequence[str]:
        """The command that trains a supernet with these experts by the host's own trainer, with the settings of this
        one's training; started again, it goes on from what an interrupted run left in the folder.

        Args:
            changes: settings that are others than this supernet's, by the host's names.

        Raises:
            ConfigError: the checkpoint does not say how it was trained, or there is no such setting.
        """
        ...

    def trained_supernet(self, folder: Path) -> Supernet:
        """The supernet that the command has trained in a folder, evaluated on the same examples as this one.

        Raises:
            CheckpointError, DataError: the run has left none.
        """
        ...
