"""``nas-ext latency dataset --from-timm``: latencies that were published, with graphs made here."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset import NetworkSet
from nas_core.latency.by_graph.published import (
    ABSENT_FAMILY,
    NetworkSource,
    PublishedConfig,
    collect_published,
    network_source,
    read_published,
)
from nas_core.options import flag_of
from nas_core.report.network_set import summary

__all__ = ["changed_options", "only_of_tables", "published"]

_OF_TABLES = ("from_timm", "graphs", "max_nodes", "most_memory_gb", "most_seconds")
_OF_BOTH = ("device", "networks", "out", "seed")


def changed_options(command: Callable[..., object], values: Mapping[str, Any]) -> list[str]:
    """Names of a command's options whose values are not the defaults, in the order in which help shows them."""
    options = inspect.signature(command).parameters
    return [name for name, option in options.items() if values[name] != option.default]


def only_of_tables(given: Collection[str]) -> None:
    """Check options for networks that are measured here.

    Raises:
        ConfigError: one is for tables alone.
    """
    if other := [name for name in given if name in _OF_TABLES]:
        raise ConfigError(f"{flag_of(other[0])} is for tables of --from-timm; leave it out")


def published(
    out: Path,
    csv: Path,
    host: str,
    device: str,
    networks: int | None,
    config: PublishedConfig,
    graphs: Path | None,
    given: Collection[str],
) -> None:
    """Fill a folder with networks that a host published latencies of.

    Raises:
        NasExtError: of the table, the folder or the options, as :func:`collect_published` tells.
    """
    if other := [name for name in given if name not in (*_OF_TABLES, *_OF_BOTH)]:
        raise ConfigError(
            f"{flag_of(other[0])} is for networks that are measured here; leave it out with --from-{host}"
        )
    named = "device" in given
    table = read_published(csv, device if named else None)
    chosen = device if named or device in table.devices else None
    source = network_source(host)
    found = collect_published(out, table, source, chosen, networks, config, graphs=graphs)
    typer.echo(summary(found))
    good = sum("error" not in row for row in found.rows)
    typer.echo(f"{good} networks in {out}, as {host} measured them on {found.machine['device_name']}")
    _tell_skipped(found, source)


def _tell_skipped(found: NetworkSet, source: NetworkSource) -> None:
    """On stderr: in one line the networks that the host has no more; then why others are skipped, the most frequent
    family first, and which."""
    skipped = [row for row in found.rows if "error" in row]
    absent = sorted({row["settings"]["model"] for row in skipped if row["family"] == ABSENT_FAMILY})
    if absent:
        names = "model" if len(absent) == 1 else f"{len(absent)} models"
        typer.echo(
            f"note: {source.name} {source.version} does not have the {names} {', '.join(absent)}; install the release"
            " that measured them, or go on without",
            err=True,
        )
    skipped = [row for row in skipped if row["family"] != ABSENT_FAMILY]
    if not skipped:
        return
    families = Counter(row["family"] for row in skipped)
    told = ", ".join(f"{family} {count}" for family, count in families.most_common())
    typer.echo(f"note: {len(skipped)} skipped ({told}); {found.path} keeps the reasons", err=True)
    for row in sorted(skipped, key=lambda row: (row["family"], row["name"])):
        typer.echo(f"  {row['name']}: {row['error']}", err=True)
