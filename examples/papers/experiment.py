"""Experiments of papers: commands in steps, with variables such as the data folder."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nas_core.cli.user_dir import user_dir
from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.files.reading import read_json

FOLDER = Path(__file__).parent
_VARIABLE = re.compile(r"\{([A-Z_]+)\}")
BUILT_IN = {"USER_DIR": user_dir(), "HERE": str(FOLDER)}
"""Variables that all experiments have."""


@dataclass(frozen=True)
class Variable:
    """Variable in the commands of an experiment, set as ``NAME=VALUE``."""

    name: str
    help: str
    default: str | None = None
    """Default; None if the variable is required."""
    options: bool = False
    """True if the value may contain several words."""
    finalist_of: str = ""
    """Output folder of a search, whose best architecture is the default."""


@dataclass(frozen=True)
class Step:
    """Command of an experiment."""

    name: str
    about: str
    words: tuple[str, ...]
    """Words of the command, with variables in braces."""
    makes: str
    """File that the command writes."""
    optional: bool = False
    """Run the step only if ``--step`` names it."""


@dataclass(frozen=True)
class Experiment:
    """Steps of an experiment, and their variables."""

    name: str
    about: str
    variables: Mapping[str, Variable]
    steps: Mapping[str, Step]

    def values(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the values of all variables that are set or have a default."""
        for name in settings:
            if name not in self.variables:
                raise unknown_choice(f"variable of experiment {self.name}", name, self.variables)
        defaults = {name: str(v.default) for name, v in self.variables.items() if v.default is not None}
        texts = {**BUILT_IN, **defaults, **settings}
        values = {name: _fill(value, texts) for name, value in texts.items()}
        for name, variable in self.variables.items():
            if name not in values and variable.finalist_of:
                finalist, _ = best_finalist(Path(_fill(variable.finalist_of, values)))
                if finalist:
                    values[name] = finalist
        return values

    def command(self, step: Step, values: Mapping[str, str], partly: bool = False) -> list[str]:
        """Return the words of a step's command; with ``partly``, variables without a value remain as ``$NAME``."""
        words: list[str] = []
        for word in step.words:
            match = _VARIABLE.fullmatch(word)
            if match and match[1] in values and match[1] in self.variables and self.variables[match[1]].options:
                words += shlex.split(values[match[1]])
                continue
            for name in _VARIABLE.findall(word):
                if name not in values and not partly:
                    raise self._missing(name, step, values)
            words.append(_fill(word, values))
        return words

    def _missing(self, name: str, step: Step, values: Mapping[str, str]) -> ConfigError:
        variable = self.variables[name]
        if variable.finalist_of and (reason := best_finalist(Path(_fill(variable.finalist_of, values)))[1]):
            return ConfigError(f"step {step.name} of {self.name} needs {name}=FILE: {reason}")
        hint = f" (after step search, or {name}=FILE)" if variable.finalist_of else ""
        return ConfigError(f"step {step.name} of {self.name} needs {name}=...{hint}: {variable.help}")


def list_experiments() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yml"))


def read_experiment(name: str) -> Experiment:
    """Read an experiment by its name, or from a YAML file."""
    path = Path(name) if name.endswith((".yml", ".yaml")) else FOLDER / f"{name}.yml"
    if not path.is_file():
        raise unknown_choice("experiment", name, list_experiments())
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        variables = {key: _variable(key, value) for key, value in content.pop("variables").items()}
        steps = {key: _step(key, **value) for key, value in content.pop("steps").items()}
        experiment = Experiment(path.stem, variables=variables, steps=steps, **content)
        if "OUT" not in variables:
            raise ValueError("it has no variable OUT, the output folder")
        for step in steps.values():
            for unknown in set(_VARIABLE.findall(" ".join((*step.words, step.makes)))) - {*variables, *BUILT_IN}:
                raise ValueError(f"step {step.name} has {{{unknown}}}, which is not a variable")
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a valid experiment: {error}; see the examples in {FOLDER}") from None
    return experiment


def _variable(name: str, content: Any) -> Variable:
    return Variable(name, **({"help": content} if isinstance(content, str) else content))


def _step(name: str, about: str, run: str | list[str], makes: str, optional: bool = False) -> Step:
    lines = [run] if isinstance(run, str) else run
    return Step(name, about, tuple(word for line in lines for word in shlex.split(line)), makes, optional)


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1], f"${match[1]}"), text)


def best_finalist(folder: Path) -> tuple[str, str]:
    """Return the architecture file with the lowest loss within the limit, and a reason if there is none.

    Both are empty if the search has not ended.
    """
    if not (folder / "finalists.json").is_file():
        return "", ""
    finalists = read_json(folder / "finalists.json")["finalists"]
    in_limit = [finalist for finalist in finalists if finalist["best_of"]]
    if not in_limit and (over_limit := [finalist for finalist in finalists if finalist["over_limit"]]):
        fastest = min(over_limit, key=lambda finalist: float(finalist["measured"]["latency_ms"]))
        missed = f"{float(fastest['measured']['latency_ms']):.4g} ms ({folder / fastest['file']})"
        return "", (
            f"all finalists of {folder} were measured above the limit, the fastest with {missed}; give this file, or"
            " search with a larger limit"
        )
    best = min(in_limit or finalists, key=lambda finalist: float(finalist["metrics"]["loss"]))
    return str(folder / best["file"]), ""


def executable(word: str) -> str:
    """Return the path of a command in the environment of the running Python."""
    if word == "python":
        return sys.executable
    path = Path(sys.executable).parent / word
    if not path.exists():
        raise ConfigError(
            f"{word} is not installed in {path.parent}; run 'make setup', and start the experiment with that Python"
        )
    return str(path)
