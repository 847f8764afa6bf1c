"""What the command line asks of a host framework's adapter, and how adapters are found.

An adapter offers one :class:`Host` under the entry-point group ``nas_ext.hosts``; another distribution's adapter plugs
in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nas_core.errors import CheckpointError, ConfigError, DataError, MissingHostError
from nas_core.precision import check_precision
from nas_core.registry import first_line
from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "GROUP",
    "BertSupernet",
    "Differentiable",
    "Host",
    "MoreMetrics",
    "PlainSupernet",
    "Report",
    "Supernet",
    "each_host",
    "host_of",
    "hosts",
    "open_supernet",
]

GROUP = "nas_ext.hosts"

Report = Callable[[float, Mapping[str, float]], None]
"""Called after each batch of an evaluation: the share of the data that was seen, and the metrics on it."""


@runtime_checkable
class Supernet(Protocol):
    """A trained supernet: evaluates architectures with inherited weights and saves them as static models.

    It may tell the units of its metrics in ``units``, a mapping of names such as ``loss``, which reports show, and in
    ``maximised`` the names of those that are better the larger they are.
    """

    space: SearchSpace
    """The space it was trained on."""
    task: Mapping[str, Any]
    """What the networks are for, as plain data (e.g. vocabulary sizes); latency is measured with it."""

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Metrics of the subnet with inherited weights on a fixed part of the validation data, ``loss`` among them."""
        ...

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save the subnet as a static model of its own size, in the host's checkpoint format; its parameter count."""
        ...


@runtime_checkable
class PlainSupernet(Protocol):
    """A :class:`Supernet` some of whose subnets are networks of the host's own models."""

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save the subnet as a checkpoint that needs nothing of this project; its parameter count.

        Raises:
            ConfigError: the host's own models have no such network; what differs is said.
        """
        ...


@runtime_checkable
class MoreMetrics(Protocol):
    """A :class:`Supernet` with metrics that cost too much to be told each time."""

    def also_evaluate(self, metric: str) -> None:
        """Let :meth:`Supernet.evaluate` tell this metric from now on, also of networks trained from its subnets; where
        there is none of this name, nothing changes."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """A :class:`Supernet` whose weights can be looked at, and whose training loss can be differentiated by them."""

    network: Any
    """The module (``torch.nn.Module``) that holds the weights of all subnets; ``network.select(architecture)`` gives
    those of one."""

    def batches(self) -> Iterable[Any]:
        """The examples that :meth:`Supernet.evaluate` takes, in batches, the same each time: a list, from
        whose whole length a study takes some; or read one by one, in a random order of the examples.

        Raises:
            DataError: there is no such split, or nothing in it.
        """
        ...

    def training_loss(self, architecture: Architecture, batch: Any) -> Tensor:
        """The loss that training minimises (label smoothing included) of a subnet, as mean over a batch of
        :meth:`batches`, in nats: a number with a gradient. Dropout and augmentation are off, so that it repeats itself.
        """
        ...


@runtime_checkable
class BertSupernet(Protocol):
    """A :class:`Supernet` of encoders of text, some of whose subnets are Hugging Face's BERT."""

    def extract_bert(self, architecture: Architecture, path: Path) -> int:
        """Save the subnet as a folder that ``transformers`` loads; its parameter count.

        Raises:
            ConfigError: BERT has no such network; what differs is said.
        """
        ...


@runtime_checkable
class Host(Protocol):
    """A framework that trains supernets. Reports also show its training, see :mod:`nas_core.supernet.curves`."""

    name: str

    def recognises(self, checkpoint: Path) -> bool:
        """Whether the file looks like a checkpoint of this host; cheap, never raises."""
        ...

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a supernet; ``options`` are ``data``, ``valid_subset``, ``valid_sentences``, ``device`` and, where it is
        not ``fp32``, ``precision`` (one of :data:`nas_core.precision.PRECISIONS`), which the supernet then has as an
        attribute, so that no other host's results are taken for its own.

        Raises:
            CheckpointError: the file is damaged or of another model.
        """
        ...


def hosts() -> dict[str, Host | MissingHostError]:
    """Every registered host by name, or why it cannot be used."""
    return dict(each_host())


def each_host() -> Iterator[tuple[str, Host | MissingHostError]]:
    """One after the other: a host that is not needed is not imported."""
    for entry in entry_points(group=GROUP):
        try:
            host = entry.load()
        except MissingHostError as error:
            yield entry.name, error
        except Exception as error:  # what another distribution does at its import is not ours
            message = f"host {entry.name!r} does not import: {first_line(error)}; see 'nas-ext doctor --import'"
            yield entry.name, MissingHostError(message)
        else:
            yield entry.name, host if isinstance(host, Host) else _no_host(entry.name, host)


def _no_host(name: str, found: object) -> MissingHostError:
    return MissingHostError(
        f"host {name!r} is an object of {type(found).__name__}; expected one with name, recognises and open"
    )


def open_supernet(checkpoint: str | Path, **options: Any) -> Supernet:
    """Open a checkpoint with the host that recognises it.

    Args:
        options: as :meth:`Host.open` takes them.

    Raises:
        DataError: no such file. CheckpointError: no installed host knows it. MissingHostError: no host is usable.
        ConfigError: the device has no such precision, or the host evaluates in ``fp32`` alone.
    """
    path, precision = Path(checkpoint), options.pop("precision", "fp32")
    host = host_of(path, "the checkpoint of a trained supernet")
    if precision == "fp32":
        return host.open(path, **options)
    check_precision(precision, options.get("device", "cpu"))
    try:
        supernet = host.open(path, **options, precision=precision)
    except TypeError as error:
        if "unexpected keyword argument 'precision'" not in str(error):
            raise
        supernet = None
    if supernet is None or getattr(supernet, "precision", None) != precision:
        raise ConfigError(f"host {host.name!r} evaluates in fp32 alone, not in {precision}; leave the precision out")
    return supernet


def host_of(path: Path, wanted: str = "the checkpoint of a trained network") -> Host:
    """The host that recognises a file; errors as of :func:`open_supernet`."""
    if not path.is_file():
        raise DataError(f"no file {path}; give {wanted}")
    usable, failures = [], []
    for name, host in each_host():
        if isinstance(host, MissingHostError):
            failures.append(host)
        elif host.recognises(path):
            return host
        else:
            usable.append(name)
    if not usable:
        raise failures[0] if failures else MissingHostError("no host is registered; install nas-ext with 'pip install'")
    raise CheckpointError(
        f"{path} is not a checkpoint that {', '.join(sorted(usable))} can open; it may be damaged or of another program"
    )
