"""Settings of the demo: one frozen dataclass, from which the command line is made."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from nas_core.differences import first_difference
from nas_core.errors import ConfigError
from nas_core.files import read_json, write_json
from nas_core.options import add_options, read_options
from nas_core.space import get_space, space_to_dict

DEFAULT_MINUTES = 4.0
"""Training time when neither minutes nor updates are given; the rest of ten minutes is left for everything else."""
ENOUGH_UPDATES = 1000
"""Updates until networks translate, of the built-in corpus as of a folder of some ten thousand pairs; trained also if
that takes longer than the minutes."""
WORTH_A_TRIAL = 100
"""So few updates are made without finding out first how long they take."""
DEFAULT_SUBWORDS = 6000
EXTENDABLE = (
    "minutes",
    "updates",
    "samples",
    "limits",
    "iterations",
    "population",
    "valid_sentences",
    "beam",
    "lenpen",
)
"""Settings that may differ when a run is continued; all others belong to what the run was begun with."""


@dataclass(frozen=True)
class Settings:
    """What one run of the demo is told; each field is an option of the command line."""

    out: Path = Path("runs/demo")
    """run folder; the same command again continues it"""
    data: Path | None = None
    """folder with train|val|test*.{src,tgt}[.gz]; default: a corpus drawn from a small built-in grammar"""
    direction: str = ""
    """languages of --data as file suffixes, source first (en-de); default: from English"""
    test: str = ""
    """which test set of --data, if it has several (test_2016_flickr)"""
    lower: bool = False
    """lower-case --data"""
    subwords: int = -1
    """size of the joint subword vocabulary; 0 keeps words; default: 6000 with --data, else 0"""
    pairs: int = 16_000
    """training pairs drawn from the built-in grammar"""
    words: int = 12
    """longest sentence drawn from the built-in grammar"""
    space: str = "hat_small"
    """search space: a name of 'nas-ext lab space list' or a YAML file"""
    arch: str = "mos_transformer_small"
    """fairseq architecture that holds the space"""
    mos: str = "neuron"
    """experts of the supernet: none, layer (mixed per layer), neuron (mixed per neuron)"""
    experts: int = 2
    """experts per feed-forward layer"""
    sampling: str = "spos"
    """training: spos (one random subnet per update) or sandwich (also the largest and the smallest)"""
    minutes: float = 0.0
    """training time of the supernet; default: 4, or as long as it takes until networks translate"""
    updates: int = 0
    """training updates of the supernet"""
    max_tokens: int = 0
    """tokens per batch; default: 2048 with --data, else 512"""
    lr: float = 3e-3
    """peak learning rate"""
    warmup: int = 400
    """updates until the peak learning rate"""
    dropout: float = 0.1
    """dropout of the largest subnet"""
    train_args: str = ""
    """more options for fairseq-train, as one quoted string"""
    samples: int = 60
    """architectures whose latency is measured"""
    limits: int = 3
    """latency limits, spread between the smallest and the largest architecture"""
    iterations: int = 8
    """populations of each search"""
    population: int = 24
    """architectures in a population"""
    valid_sentences: int = 150
    """sentences the search evaluates an architecture on"""
    beam: int = 4
    """beam of decoding and of latency"""
    lenpen: float = 0.6
    """length penalty of decoding"""
    threads: int = 0
    """processor threads for training, search and decoding; default: 1 or 2, which a trial finds faster"""
    latency_threads: int = 1
    """processor threads while latency is measured"""
    seed: int = 1
    """of the corpus, the training and the search"""
    restart: bool = False
    """throw away what the run folder holds and begin anew"""

    @property
    def subword_size(self) -> int:
        return self.subwords if self.subwords >= 0 else DEFAULT_SUBWORDS if self.data else 0

    @property
    def batch_tokens(self) -> int:
        return self.max_tokens or (2048 if self.data else 512)

    @property
    def budget(self) -> tuple[float, int]:
        """Minutes and updates of training; one of them is 0."""
        return (0.0 if self.updates else self.minutes or DEFAULT_MINUTES), self.updates

    @property
    def worth_a_trial(self) -> bool:
        """Whether a trial finds out how fast training is here."""
        return not self.updates or self.updates > WORTH_A_TRIAL

    def validate(self) -> Settings:
        """Return these settings, checked.

        Raises:
            ConfigError: a number out of range.
        """
        least = {
            "pairs": 100, "experts": 1, "max_tokens": 0, "warmup": 1, "samples": 16, "limits": 1, "iterations": 1,
            "population": 4, "valid_sentences": 1, "beam": 1, "threads": 0, "latency_threads": 1, "subwords": -1,
            "minutes": 0, "updates": 0, "seed": 0, "words": 6,
        }  # fmt: skip
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ConfigError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected at least {bound}")
        if self.minutes and self.updates:
            raise ConfigError("--minutes and --updates both say how long to train: give one of them")
        if not self.data and (self.direction or self.test or self.lower):
            raise ConfigError("--direction, --test and --lower choose among files: give their folder with --data")
        return self

    def identity(self) -> dict[str, Any]:
        """What a run is begun with, as plain data."""
        skip = {*EXTENDABLE, "out", "restart", "threads"}
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in skip}
        data = str(self.data.resolve()) if self.data else None
        return {**values, "data": data, "choices": space_to_dict(get_space(self.space))}

    def check_folder(self) -> None:
        """A run folder is continued and cleared, so it must be one: new, empty, or begun by the demo.

        Raises:
            ConfigError: the folder holds something else.
        """
        path = self.out / "settings.json"
        ours = path.exists() and isinstance(begun := read_json(path), dict) and "pairs" in begun and "space" in begun
        if not ours and self.out.exists() and any(self.out.iterdir()):
            raise ConfigError(f"{self.out} holds files that are no run of the demo; give a new folder with --out")

    def settle(self) -> None:
        """Keep :meth:`identity` in the run folder, or compare it with what stands there.

        Raises:
            ConfigError: the folder holds a run begun with other settings.
        """
        path = self.out / "settings.json"
        if not path.exists():
            write_json(path, self.identity())
            return
        if difference := first_difference(read_json(path), self.identity()):
            name, before, now = difference
            raise ConfigError(
                f"{self.out} holds a run with {name} = {before!r}, now it is {now!r}; give another"
                " folder with --out, or begin it anew with --restart"
            )


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Settings from a command line; options and help come from the dataclass."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="From a parallel corpus to a Pareto front of fast translation models.",
    )
    add_options(parser, Settings)
    settings = read_options(Settings, parser.parse_args(argv)).validate()
    try:
        shlex.split(settings.train_args)
    except ValueError as error:
        raise ConfigError(f"--train-args cannot be split into options ({error})") from None
    return settings
