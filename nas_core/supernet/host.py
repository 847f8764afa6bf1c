"""Base classes of host frameworks and their supernets, and functions that open checkpoints of any host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.adapters import ADAPTERS, Adapter
from nas_core.errors import CheckpointError, ConfigError, DataError, MissingHostError, UnsupportedError
from nas_core.precision import check_precision
from nas_core.registry import import_object
from nas_core.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from nas_core.export.parts import Exportable

Report = Callable[[float, Mapping[str, float]], None]
"""Callback after each evaluated batch, with the fraction of the data that is evaluated, and metrics."""


class Supernet:
    """A trained supernet that evaluates architectures with inherited weights and extracts them as static models.

    A host implements :meth:`evaluate` and :meth:`extract`. Other methods are optional and raise
    :class:`~nas_core.errors.UnsupportedError` by default.
    """

    space: SearchSpace
    """Search space of the training."""
    task: Mapping[str, Any]
    """Properties of the training data as JSON types, such as vocabulary sizes; defaults of the latency workload."""
    units: Mapping[str, str] = {}
    """Units of metrics by name, for reports."""
    maximised: Sequence[str] = ()
    """Names of metrics for which larger is better."""
    precision = "fp32"
    """Precision of evaluations, one of :data:`nas_core.precision.PRECISIONS`."""

    def _unsupported(self, capability: str) -> UnsupportedError:
        host = type(self).__module__.partition(".")[0]
        return UnsupportedError(f"{type(self).__name__} of {host} does not {capability}; use a host that does")

    def evaluate(self, architecture: Architecture, report: Report | None = None) -> dict[str, float]:
        """Return metrics of a subnet on a fixed part of the validation data, including ``loss``."""
        raise self._unsupported("evaluate subnets")

    def add_metric(self, metric: str) -> None:
        """Add an expensive metric to the results of :meth:`evaluate`. Unknown names are ignored."""

    def extract(self, architecture: Architecture, path: Path) -> int:
        """Save a subnet as a static model of the host framework, and return its number of parameters."""
        raise self._unsupported("extract subnets")

    def extract_plain(self, architecture: Architecture, path: Path) -> int:
        """Save a subnet as a checkpoint of the host's original model class, and return its number of parameters.

        Raises:
            ConfigError: the host has no model class for this network.
        """
        raise self._unsupported("extract checkpoints of the host's model classes")

    def extract_bert(self, architecture: Architecture, path: Path) -> int:
        """Save a subnet as a BERT model for ``transformers``, and return its number of parameters.

        Raises:
            ConfigError: BERT does not support this network.
        """
        raise self._unsupported("extract models of Hugging Face's BERT")

    def exportable(self, architecture: Architecture) -> Exportable:
        """Return a subnet for export to ONNX or ``torch.export``."""
        raise self._unsupported("export models")

    @property
    def network(self) -> Any:
        """Module with the weights of all subnets. ``network.select(architecture)`` returns the weights of one."""
        raise self._unsupported("give access to its weights")

    def examples_key(self) -> str:
        """Return a hash of the evaluated examples, for comparison with standalone networks, or ""."""
        return ""

    def training_data(self) -> Mapping[str, str]:
        """Return the paths of training and validation data by the host's setting names."""
        raise self._unsupported("train networks")

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> Sequence[str]:
        """Return the command that trains an architecture from scratch, or continues such a training.

        Args:
            folder: existing folder for checkpoints and logs.
            changes: settings that differ from the supernet's training, by the host's names.

        Raises:
            ConfigError: the checkpoint has no training settings, or a setting is unknown.
        """
        raise self._unsupported("train standalone networks")

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        """Return metrics of a standalone network, as in :meth:`evaluate`, and its :meth:`examples_key`."""
        raise self._unsupported("train standalone networks")


class Host(Adapter):
    """Base class of frameworks that train supernets.

    A subclass implements :meth:`recognises` and :meth:`open`. Register an instance in the entry point group
    ``nas_ext.hosts``, or name it in an :class:`~nas_core.adapters.Adapter`.
    """

    expects: str = "a file"
    """Form of a checkpoint, for error messages."""
    precisions: Sequence[str] = ("fp32",)
    """Supported values of ``precision`` in :meth:`open`, from :data:`nas_core.precision.PRECISIONS`."""
    takes_uniform: bool = False
    """True if :meth:`open_trained` accepts ``uniform``; ``uniform=False`` lets layers of a space ``auto`` differ in
    size.
    """

    def recognises(self, checkpoint: Path) -> bool:
        """Return True if a file looks like a checkpoint of this host. Must be fast and not raise errors."""
        raise NotImplementedError

    def open(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a supernet.

        Args:
            options: ``data``, ``valid_subset`` (evaluated split), ``valid_samples`` (number of evaluated examples),
                ``device`` and, if not fp32, ``precision``.

        Raises:
            CheckpointError: the file is damaged or belongs to another model.
        """
        raise NotImplementedError

    def open_exportable(self, checkpoint: Path, **options: Any) -> Supernet:
        """Open a supernet or static network for export. The space of a static network has one architecture."""
        return self.open(checkpoint, **options)

    def open_trained(self, checkpoint: Path, **options: Any) -> Any:
        """Open a trained network for conversion, as :class:`nas_core.supernet.elastic.conversion.Trained`.

        Args:
            options: ``data``, ``space`` (``auto``, a name or a file), ``attention`` (types of each layer),
                ``calibration_batches`` (number of batches) and ``device``.

        Raises:
            CheckpointError, ConfigError: the file is damaged, or conversion does not support the network.
            SpaceError: the space does not contain the network.
        """
        raise UnsupportedError(
            f"host {self.name!r} of {checkpoint} cannot convert trained networks; give a checkpoint of another host"
        )

    def vocabularies(self, data: Path) -> tuple[int, int] | None:
        """Return the source and target vocabulary sizes of a data folder, or None if it belongs to another host."""
        return None


def each_host() -> Iterator[tuple[str, Host | MissingHostError]]:
    """Yield each registered host by name, or the error if its packages are missing.

    Each host is imported only when reached.
    """
    for name in ADAPTERS.names():
        try:
            adapter: Any = ADAPTERS.get(name)
            if isinstance(adapter, Host):
                yield name, adapter
            elif adapter.host:
                yield name, import_object(f"host {name!r}", adapter.host)
        except MissingHostError as error:
            yield name, error


def host_of(path: Path, expected: str = "the checkpoint of a trained network") -> Host:
    """Return the host that recognises a file. For errors, see :func:`open_supernet`.

    Args:
        expected: expected file, for error messages.
    """
    if not path.exists():
        raise DataError(f"{path} does not exist; give {expected}, a local file or folder")
    names = []
    for host in _usable():
        if host.recognises(path):
            return host
        names.append(f"{host.name} ({host.expects})")
    raise CheckpointError(
        f"{path} is not a checkpoint of {' or '.join(sorted(names))}; give another file, it may be damaged"
    )


def open_supernet(checkpoint: str | Path, **options: Any) -> Supernet:
    """Open a supernet checkpoint with the host that recognises it.

    Args:
        options: see :meth:`Host.open`.

    Raises:
        DataError: the file does not exist.
        CheckpointError: no host recognises the file.
        MissingHostError: no host is installed.
        ConfigError: the device or host does not support the precision.
    """
    path, precision = Path(checkpoint), options.pop("precision", "fp32")
    host = host_of(path, "the checkpoint of a trained supernet")
    if precision == "fp32":
        return host.open(path, **options)
    check_precision(precision, options.get("device", "cpu"))
    if precision not in host.precisions:
        raise ConfigError(
            f"host {host.name!r} does not support precision {precision}; expected one of {', '.join(host.precisions)}"
        )
    return host.open(path, **options, precision=precision)


def open_exportable(checkpoint: str | Path, **options: Any) -> Any:
    return host_of(Path(checkpoint)).open_exportable(Path(checkpoint), **options)


def open_trained(checkpoint: str | Path, **options: Any) -> Any:
    """Open a trained network for conversion, see :meth:`Host.open_trained`."""
    host = host_of(Path(checkpoint))
    if "uniform" in options and not host.takes_uniform:
        raise UnsupportedError(f"host {host.name!r} has no option --uniform or --no-uniform; leave it out")
    return host.open_trained(Path(checkpoint), **options)


def vocabularies(data: str | Path) -> tuple[int, int]:
    """Return the source and target vocabulary sizes of a data folder."""
    folder = Path(data)
    if not folder.is_dir():
        raise DataError(f"folder {folder} does not exist; give the training data of the supernet")
    for host in _usable():
        if (sizes := host.vocabularies(folder)) is not None:
            return sizes
    raise DataError(f"{folder} contains no vocabularies; expected a folder of fairseq-preprocess with files dict.*.txt")


def _usable() -> Iterator[Host]:
    usable, failures = 0, []
    for _, host in each_host():
        if isinstance(host, MissingHostError):
            failures.append(host)
        else:
            usable += 1
            yield host
    if not usable:
        raise failures[0] if failures else MissingHostError("no host is registered; install nas-ext with 'pip install'")
