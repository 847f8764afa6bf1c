"""``nas-ext latency dataset``: collect measured or published latencies of whole networks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nas_core.cli.options import settings_help, with_options
from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig, collect_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.registry import chosen_families, network_families
from nas_core.latency.by_graph.published.collect import NetworkSource, collect_published, read_published
from nas_core.latency.by_graph.published.export import ABSENT_FAMILY
from nas_core.latency.protocol import TimingConfig
from nas_core.options import config_from, options_of, read_pairs
from nas_core.registry import import_object
from nas_core.report.tables import Column, Table

_FAMILY_COLUMNS = (
    Column("family", "family"),
    Column("networks", "networks", "d"),
    Column("skipped", "skipped", "d"),
    Column("median", "median ms", ".2f"),
)
_TIMING, _NETWORKS = {"warmup": 1, "repeats": 3}, 1300
_HELP = """Measure random networks of many families, or read latencies that timm published. The same command resumes; a
larger --networks adds more. A reference network is measured in between to correct for drift of the machine's speed."""


def _dataset(
    out: Annotated[Path | None, typer.Option(help="Folder of the dataset; an existing one is continued.")] = None,
    networks: Annotated[
        int | None,
        typer.Option(min=1, help=f"Total number of networks; default: {_NETWORKS}, with --from-timm all."),
    ] = None,
    from_timm: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Instead of measuring: table of latencies published by timm."),
    ] = None,
    families: Annotated[str, typer.Option(help="Names of families, separated by commas, or all; see --list.")] = "all",
    device: Annotated[
        str | None, typer.Option(help="cpu (default), cuda, cuda:1; with --from-timm, a device of the table.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Setting from the lists above; repeatable."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the families and exit.")] = False,
) -> None:
    if list_:
        typer.echo(_families())
        return
    if out is None:
        raise ConfigError("--out is missing; give --out FOLDER, or --list to show the families")
    if from_timm is not None:
        if families != "all" or settings:
            raise ConfigError("--families and --set have no effect with --from-timm; leave them or --from-timm out")
        _published(out, from_timm, device, networks)
        return
    pairs, selected = read_pairs("set", settings or []), chosen_families(families)
    names = {option.name for option in options_of(TimingConfig)} - {"device"}
    timed = {name: pairs.pop(name) for name in list(pairs) if name in names}
    config = config_from(NetworkSetConfig, pairs, "setting of a data set")
    timing = config_from(TimingConfig, {**_TIMING, "device": device or "cpu", **timed}, "setting")
    measured = collect_networks(out, selected, networks or _NETWORKS, timing, config)
    _print_families(measured)
    machine = measured.machine["device_name"]
    typer.echo(f"{len(measured.rows)} networks in {out}, on {machine}, {timing.threads} thread(s)")


def _print_families(dataset: NetworkSet) -> None:
    measured = [row for row in dataset.rows if "error" not in row]
    skipped = Counter(row["family"] for row in dataset.rows if "error" in row)
    for runtime in dataset.reference_ms if measured else ():
        times: dict[str, list[float]] = {row["family"]: [] for row in dataset.rows}
        for row in measured:
            times[row["family"]].append(row["measured"][runtime]["corrected_ms"])
        rows = [
            {"family": family, "networks": len(ms), "skipped": skipped[family], "median": np.median(ms) if ms else None}
            for family, ms in times.items()
        ]
        typer.echo(f"{runtime}\n{Table(_FAMILY_COLUMNS, rows).text()}")
    if seconds := sum(row["seconds"] for row in measured):
        typer.echo(f"{len(measured) / seconds * 3600:.0f} networks per hour")


def _published(out: Path, csv: Path, device: str | None, networks: int | None) -> None:
    table, source = read_published(csv, device), import_object("networks of timm", "timm_ext.published:NETWORKS")
    collected = collect_published(out, table, source, device, networks)
    _print_families(collected)
    measured = sum("error" not in row for row in collected.rows)
    typer.echo(f"{measured} networks in {out}, as timm measured them on {collected.machine['device_name']}")
    _print_skipped(collected, source)


def _print_skipped(collected: NetworkSet, source: NetworkSource) -> None:
    skipped = [row for row in collected.rows if "error" in row]
    missing = sorted({row["settings"]["model"] for row in skipped if row["family"] == ABSENT_FAMILY})
    if missing:
        names = "model" if len(missing) == 1 else f"{len(missing)} models"
        typer.echo(
            f"note: {source.name} {source.version} does not have the {names} {', '.join(missing)}; install the release"
            " that measured them, or go on without",
            err=True,
        )
    skipped = [row for row in skipped if row["family"] != ABSENT_FAMILY]
    if not skipped:
        return
    families = Counter(row["family"] for row in skipped)
    counts = ", ".join(f"{family} {count}" for family, count in families.most_common())
    typer.echo(f"note: {len(skipped)} skipped ({counts}); {collected.path} keeps the reasons", err=True)
    for row in sorted(skipped, key=lambda row: (row["family"], row["name"])):
        typer.echo(f"  {row['name']}: {row['error']}", err=True)


def _families() -> str:
    families = network_families()
    width = max(map(len, families))
    return "\n".join(
        f"{name:{width}}  {family.description if isinstance(family, Family) else f'not usable: {family}'}"
        for name, family in families.items()
    )


dataset = with_options(
    _dataset,
    {},
    "\n\n".join(
        [
            _HELP,
            settings_help("Networks; --set NAME=VALUE", NetworkSetConfig),
            settings_help("Timing; --set NAME=VALUE, but for device; default: warmup=1, repeats=3", TimingConfig),
        ]
    ),
)
