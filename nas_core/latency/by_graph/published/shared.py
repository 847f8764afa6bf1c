"""Graphs that were made for one device, taken for another: there only the batch differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.latency.by_graph.dataset.export import OPSET
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.published.source import NetworkSource
from nas_core.latency.by_graph.published.table import PublishedNetwork


class MadeGraphs:
    """The ONNX files of a folder of :func:`nas_core.latency.by_graph.published.collect_published`.

    Raises:
        DataError: the folder is missing, damaged or something else. ConfigError: its networks are of another source, or
        were measured here.
    """

    def __init__(self, folder: str | Path, source: NetworkSource) -> None:
        found = NetworkSet.read(folder)
        if found.settings.get("source") != source.name:
            raise ConfigError(
                f"{folder} has graphs of {found.settings.get('source', 'networks that were measured')}, not of networks"
                f" that {source.name} published; give a folder of --from-{source.name}"
            )
        by = f"{source.name} {source.version}"
        usable = [row for row in found.rows if "error" not in row and row.get("source") == by]
        if found.settings.get("opset") != OPSET:
            usable = []
        try:
            self._files = {
                _key(row["settings"], row.get("published", {})): found.onnx_path(row["name"]) for row in usable
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: a row lacks or garbles {error} of its network; remove the line") from None

    def of(self, network: PublishedNetwork) -> Path | None:
        """The file of this network at this image size, whatever its batch; None where there is none."""
        return self._files.get(_key(network.settings, network.costs))


def _key(settings: Mapping[str, Any], costs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What decides a graph but for its batch: of networks that have several forms, the parameters tell which."""
    return settings["model"], settings["img_size"], costs.get("params_m")
