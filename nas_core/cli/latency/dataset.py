"""``nas-ext latency dataset``: build and measure whole networks of many families on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nas_core.cli.latency.published import changed_options, only_of_tables, published
from nas_core.errors import ConfigError
from nas_core.latency.by_graph.dataset import RUNTIMES, NetworkSetConfig, collect_networks, measured_again
from nas_core.latency.by_graph.families import Family, chosen_families, network_families
from nas_core.latency.by_graph.published import PublishedConfig
from nas_core.latency.protocol import TimingConfig
from nas_core.report.network_set import agreement, summary

__all__ = ["dataset"]

_CONFIG, _TIMING = NetworkSetConfig(), TimingConfig(warmup=1, repeats=3)
_PUBLISHED, _NETWORKS = PublishedConfig(), 1300


def dataset(
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
    runtimes: Annotated[str, typer.Option(help="onnxruntime, torch, or both with a comma.")] = ",".join(RUNTIMES),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the list of networks.")] = _CONFIG.seed,
    threads: Annotated[int, typer.Option(min=1, help="Threads a network computes with.")] = _TIMING.threads,
    visits: Annotated[
        int, typer.Option(min=1, help="How often a network is measured, seconds apart.")
    ] = _CONFIG.visits,
    repeats: Annotated[int, typer.Option(min=1, help="Timed passes in each runtime and visit.")] = _TIMING.repeats,
    warmup: Annotated[int, typer.Option(min=0, help="Untimed passes before.")] = _TIMING.warmup,
    clock: Annotated[
        str, typer.Option(help="wall; cpu, for a processor shared with other jobs; device, between CUDA events.")
    ] = _TIMING.clock,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1. Of a table: the name of one of its devices.")
    ] = _TIMING.device,
    precision: Annotated[
        str, typer.Option(help="Numbers they compute with: fp32, tf32 (CUDA); in torch also bf16, fp16.")
    ] = _TIMING.precision,
    cuda_graphs: Annotated[bool, typer.Option(help="In torch, record passes as CUDA graphs.")] = _TIMING.cuda_graphs,
    most_ms: Annotated[float, typer.Option(help="Networks that take longer are skipped.")] = _CONFIG.most_ms,
    most_batch: Annotated[
        int, typer.Option(min=1, help="Networks compute batches of 1 to so many, drawn by chance.")
    ] = _CONFIG.most_batch,
    most_seconds: Annotated[
        float, typer.Option(help="Of a table: networks whose export takes longer are skipped.")
    ] = _PUBLISHED.most_seconds,
    most_memory_gb: Annotated[
        float, typer.Option(help="Of a table: memory that an export may take.")
    ] = _PUBLISHED.most_memory_gb,
    max_nodes: Annotated[
        int, typer.Option(min=1, help="Of a table: networks whose graph has more nodes are skipped.")
    ] = _PUBLISHED.max_nodes,
    again: Annotated[
        int,
        typer.Option(min=0, help="Measure so many of its networks once more, and compare; kept for its report."),
    ] = 0,
    list_: Annotated[bool, typer.Option("--list", help="Show the families and end.")] = False,
) -> None:
    """Measure random networks of many families, a reference between their passes; or take what timm published of its
    own. Run it again to go on or to add networks."""
    given = changed_options(dataset, locals())
    if list_:
        typer.echo(_families())
        return
    if out is None:
        raise ConfigError("latency dataset needs --out FOLDER (or --list, which shows the families)")
    if from_timm is not None:
        limits = PublishedConfig(
            seed=seed, most_seconds=most_seconds, most_memory_gb=most_memory_gb, max_nodes=max_nodes
        )
        published(out, from_timm, "timm", device, networks, limits, graphs, given)
        return
    only_of_tables(given)
    chosen = chosen_families(families)
    if again:
        typer.echo(agreement(measured_again(out, chosen, again, keep=True)))
        return
    config = NetworkSetConfig(
        runtimes=tuple(name.strip() for name in runtimes.split(",")),
        seed=seed,
        visits=visits,
        most_ms=most_ms,
        most_batch=most_batch,
    )
    timing = TimingConfig(
        warmup=warmup,
        repeats=repeats,
        threads=threads,
        clock=clock,
        device=device,
        precision=precision,
        cuda_graphs=cuda_graphs,
    )
    found = collect_networks(out, chosen, networks or _NETWORKS, timing, config)
    typer.echo(summary(found))
    typer.echo(f"{len(found.rows)} networks in {out}, on {found.machine['device_name']}, {threads} thread(s)")
    if told := found.told_clock_states():
        typer.echo(f"note: {told}", err=True)


def _families() -> str:
    known = network_families()
    width = max(map(len, known))
    return "\n".join(
        f"{name:{width}}  {family.description if isinstance(family, Family) else f'not usable: {family}'}"
        for name, family in known.items()
    )
