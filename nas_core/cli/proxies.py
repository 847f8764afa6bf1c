"""``nas-ext lab proxies``: score untrained networks by zero-cost proxies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.cli.options import Workload
from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import real_path
from nas_core.graph import nasbench201_string
from nas_core.graph.nasbench201 import nasbench201_ops
from nas_core.latency.by_genes.collect import planned_architectures
from nas_core.locks import file_lock
from nas_core.options import read_pairs
from nas_core.progress import counted
from nas_core.proxies import PROXIES
from nas_core.proxies.networks import NasBench201Proxies, NetworkProxies, SpaceProxies
from nas_core.space import Architecture, SearchSpace, get_space

BENCHMARK = "nasbench201"
"""Value of ``--space`` for cells of NAS-Bench-201."""

Read = Callable[[Any], tuple[Any, Any]]
"""Function that returns an architecture's canonical JSON and the architecture."""


def command(
    space: Annotated[str, typer.Option(help=f"Search space: a name of 'lab space list', a YAML file, or {BENCHMARK}.")],
    out: Annotated[Path, typer.Option(help="File for the scores (.jsonl); an existing file is continued.")],
    samples: Annotated[int | None, typer.Option(min=1, help="Number of random architectures to score.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Architectures to score (.jsonl), instead of --samples; other fields with text or numbers are copied."
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option(help=f"Proxy: one of {', '.join(PROXIES.names())}; repeatable; default: all.")
    ] = None,
    batch: Annotated[int, typer.Option(min=2, help="Batch size of the random inputs.")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="Seed of architectures, weights and inputs.")] = 0,
    workload: Workload = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, cuda:1, mps.")] = "cpu",
) -> None:
    """Score architectures with random weights on a batch of random inputs; after an interruption, the same command
    resumes.
    """
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out is {out}; expected a name ending in .jsonl")
    if (samples is None) == (data is None):
        raise ConfigError("got both or none of --samples and --data; expected one of them")
    if data is not None and real_path(data) == real_path(out):
        raise ConfigError(f"--out {out} is also the input --data; give another file")
    more: dict[str, Any] = {"batch": batch, "seed": seed, "device": device}
    scores: NetworkProxies
    read: Read
    if space == BENCHMARK:
        if workload:
            raise ConfigError(f"--workload {workload[0]} has no effect with --space {BENCHMARK}; leave it out")
        scores, read = NasBench201Proxies(proxy, **more), _cell
        drawn: list[Any] = [] if samples is None else NasBench201Proxies.drawn(samples, seed)
    else:
        searched = get_space(space)
        typed = read_pairs("workload", workload or [])
        scores, read = SpaceProxies(searched, proxy, typed, **more), _reader(searched)
        drawn = [] if samples is None else [one.to_dict() for one in planned_architectures(searched, samples, seed)]
    planned = [(*read(value), {}) for value in drawn] if data is None else _from_file(data, read)
    with file_lock(out.with_name(f"{out.name}.lock"), f"is scoring into {out}", "give another file"):
        before = _scored_before(out, scores)
        missing = [network for network in planned if _key(network[0]) not in before]
        with counted("scoring", len(missing), "network") as advance:
            for description, network, fields in missing:
                score = {"architecture": description, "proxies": scores(network), "settings": scores.settings}
                append_jsonl(out, {**fields, **score})
                advance(1)
    typer.echo(f"{len(planned)} networks of {space}, {len(planned) - len(missing)} of them scored before: {out}")


def _cell(value: Any) -> tuple[Any, Any]:
    text = nasbench201_string(nasbench201_ops(value) if isinstance(value, str) else value)
    return text, text


def _reader(space: SearchSpace) -> Read:
    def read(value: Any) -> tuple[Any, Any]:
        is_architecture = "genes" in value
        architecture = space.validate(Architecture.from_json(value) if is_architecture else Architecture(value))
        return architecture.to_dict(), architecture

    return read


def _from_file(path: Path, read: Read) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Return the different architectures of a file, each with the other fields of its record."""
    networks: dict[str, tuple[Any, Any, dict[str, Any]]] = {}
    for number, record in enumerate(read_jsonl(path), 1):
        try:
            description, network = read(record["architecture"])
        except (NasExtError, LookupError, TypeError, ValueError) as error:
            raise DataError(f"{path}, record {number}: the architecture cannot be read ({error})") from error
        fields = {name: value for name, value in record.items() if isinstance(value, str | int | float)}
        networks.setdefault(_key(description), (description, network, fields))
    if not networks:
        raise DataError(f"{path} is empty; expected one JSON object per line with an architecture")
    return list(networks.values())


def _scored_before(out: Path, scores: NetworkProxies) -> set[str]:
    if not out.exists():
        return set()
    records = read_jsonl(out)
    settings = json.loads(json.dumps(scores.settings))
    for record in records:
        if record.get("settings") != settings or list(record["proxies"]) != scores.proxies:
            raise ConfigError(
                f"{out} contains scores of {', '.join(record.get('proxies', ()))} with"
                f" {json.dumps(record.get('settings'))}; give the same settings to continue, or another file"
            )
    return {_key(record["architecture"]) for record in records}


def _key(description: Any) -> str:
    return json.dumps(description, sort_keys=True)
