"""``nas-ext latency dataset``: build and measure whole networks of many families on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.cli.latency.published import published
from nas_core.cli.options import settings_help, with_options
from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset import NetworkSetConfig, collect_networks, measured_again
from nas_core.latency.by_graph.families import Family, chosen_families, network_families
from nas_core.latency.by_graph.published import PublishedConfig
from nas_core.latency.protocol import TimingConfig
from nas_core.options import config_from, options_of, read_pairs, read_texts
from nas_core.report.network_set import agreement, summary

_TIMING, _NETWORKS = {"warmup": 1, "repeats": 3}, 1300
_HELP = """Measure random networks of many families, a reference between their passes; or take what timm published of
its own. Run it again to go on or to add networks."""


def _dataset(
    out: Annotated[Path | None, typer.Option(help="Folder of the data set; an existing one is continued.")] = None,
    networks: Annotated[
        int | None,
        typer.Option(min=1, help=f"Networks the folder shall hold; default: {_NETWORKS}, of a table all."),
    ] = None,
    from_timm: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Measure nothing: take latencies that timm published, with graphs of its networks."
        ),
    ] = None,
    graphs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of a table: a data set of another device, whose graphs are taken."),
    ] = None,
    families: Annotated[str, typer.Option(help="Names with commas, or all; see --list.")] = "all",
    device: Annotated[
        str | None, typer.Option(help="cpu (default), cuda, cuda:1. Of a table: the name of one of its devices.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the lists above; repeatable."),
    ] = None,
    again: Annotated[
        int,
        typer.Option(min=0, help="Measure so many of its networks once more, and compare; kept for its report."),
    ] = 0,
    list_: Annotated[bool, typer.Option("--list", help="Show the families and end.")] = False,
) -> None:
    if list_:
        typer.echo(_families())
        return
    if out is None:
        raise ConfigError("latency dataset needs --out FOLDER (or --list, which shows the families)")
    typed = read_pairs("set", settings or [])
    if from_timm is not None:
        if families != "all" or again:
            raise ConfigError("--families and --again are for networks that are measured here; leave out --from-timm")
        limits = config_from(PublishedConfig, read_texts(PublishedConfig, typed), "setting of published networks")
        published(out, from_timm, "timm", device, networks, limits, graphs)
        return
    if graphs is not None:
        raise ConfigError("--graphs is for tables of --from-timm; leave it out")
    chosen = chosen_families(families)
    if again:
        typer.echo(agreement(measured_again(out, chosen, again, keep=True)))
        return
    names = {option.name for option in options_of(TimingConfig)} - {"device"}
    timed = {name: typed.pop(name) for name in list(typed) if name in names}
    config = config_from(NetworkSetConfig, read_texts(NetworkSetConfig, typed), "setting of a data set")
    timing = config_from(
        TimingConfig, {**_TIMING, "device": device or "cpu", **read_texts(TimingConfig, timed)}, "setting"
    )
    found = collect_networks(out, chosen, networks or _NETWORKS, timing, config)
    typer.echo(summary(found))
    typer.echo(f"{len(found.rows)} networks in {out}, on {found.machine['device_name']}, {timing.threads} thread(s)")
    if told := found.told_clock_states():
        typer.echo(f"note: {told}", err=True)


def _families() -> str:
    known = network_families()
    width = max(map(len, known))
    return "\n".join(
        f"{name:{width}}  {family.description if isinstance(family, Family) else f'not usable: {family}'}"
        for name, family in known.items()
    )


dataset = with_options(
    _dataset,
    {},
    "\n\n".join(
        [
            _HELP,
            settings_help("Networks; --set NAME=VALUE", NetworkSetConfig),
            settings_help("Timing; --set NAME=VALUE, but for device; default: warmup=1, repeats=3", TimingConfig),
            settings_help("With --from-timm; --set NAME=VALUE", PublishedConfig),
        ]
    ),
)
