"""``nas-ext latency dataset --from-timm``: latencies that were published, with graphs made here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from nas_core.latency.by_graph.dataset import NetworkSet
from nas_core.latency.by_graph.published import (
    ABSENT_FAMILY,
    NetworkSource,
    PublishedConfig,
    collect_published,
    network_source,
    read_published,
)
from nas_core.report.network_set import summary


def published(
    out: Path,
    csv: Path,
    host: str,
    device: str | None,
    networks: int | None,
    config: PublishedConfig,
    graphs: Path | None,
) -> None:
    """Fill a folder with networks that a host published latencies of.

    Raises:
        NasExtError: of the table, the folder or the options, as :func:`collect_published` tells.
    """
    table = read_published(csv, device)
    source = network_source(host)
    found = collect_published(out, table, source, device, networks, config, graphs=graphs)
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
