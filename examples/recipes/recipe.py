"""A recipe: the commands of a paper's experiment, step by step, with variables for what is yours."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nas_core.cli.user_dir import user_dir
from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.files import read_json

__all__ = ["Recipe", "Step", "Variable", "list_recipes", "read_recipe"]

FOLDER = Path(__file__).parent
_VARIABLE = re.compile(r"\{([A-Z_]+)\}")
_KEYS = {"about", "variables", "steps"}
_STEP_KEYS = {"about", "run", "makes", "optional"}
_VARIABLE_KEYS = {"default", "help", "options", "finalist_of"}


@dataclass(frozen=True)
class Variable:
    """A word of the commands that is yours to set, as ``NAME=VALUE``."""

    name: str
    help: str
    default: str | None = None
    """None: it has to be given."""
    options: bool = False
    """It stands for any number of words."""
    finalist_of: str = ""
    """Run folder of the search whose best finalist is the default."""


@dataclass(frozen=True)
class Step:
    """One command."""

    name: str
    about: str
    words: tuple[str, ...]
    """Of the command, variables in braces."""
    makes: str
    """The file that shows that it is done."""
    optional: bool = False
    """It is run only when it is asked for by name."""


@dataclass(frozen=True)
class Recipe:
    """Steps in order, and the variables in them."""

    name: str
    about: str
    variables: Mapping[str, Variable]
    steps: Mapping[str, Step]

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """What each variable that is known so far stands for; defaults may name other variables.

        Raises:
            UnknownChoiceError: a variable that the recipe has not.
        """
        for name in given:
            if name not in self.variables:
                raise unknown_choice(f"variable of recipe {self.name}", name, self.variables)
        built_in = {"USER_DIR": user_dir(), "HERE": str(FOLDER)}
        defaults = {name: one.default for name, one in self.variables.items() if one.default is not None}
        known = {**built_in, **defaults, **given}
        values = {name: _filled(value, known) for name, value in known.items()}
        for name, variable in self.variables.items():
            if name not in values and variable.finalist_of:
                folder = Path(_filled(variable.finalist_of, values))
                if found := _best_finalist(folder):
                    values[name] = found
        return values

    def command(self, step: Step, values: Mapping[str, str], partly: bool = False) -> list[str]:
        """The words of a step's command. ``partly`` leaves variables that are not known in place, as ``$NAME``.

        Raises:
            ConfigError: a variable has to be given.
        """
        words: list[str] = []
        for word in step.words:
            whole = _VARIABLE.fullmatch(word)
            if whole and whole[1] in values and whole[1] in self.variables and self.variables[whole[1]].options:
                words += shlex.split(values[whole[1]])
                continue
            for name in _VARIABLE.findall(word):
                if name not in values and not partly:
                    raise self._missing(name, step)
            words.append(_filled(word, values))
        return words

    def _missing(self, name: str, step: Step) -> ConfigError:
        variable = self.variables[name]
        before = f" (after step search, or {name}=FILE)" if variable.finalist_of else ""
        return ConfigError(f"step {step.name} of {self.name} needs {name}=...{before}: {variable.help}")


def list_recipes() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yml"))


def read_recipe(name: str) -> Recipe:
    """The recipe of that name, or of that YAML file.

    Raises:
        UnknownChoiceError: no such recipe. DataError: the file is none.
    """
    path = Path(name) if name.endswith((".yml", ".yaml")) else FOLDER / f"{name}.yml"
    if not path.is_file():
        raise unknown_choice("recipe", name, list_recipes())
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no YAML ({error}); mend it") from None
    _check_keys(path, "a recipe", content, _KEYS, ("about", "steps"))
    variables = {key: _variable(path, key, value) for key, value in (content.get("variables") or {}).items()}
    steps = {key: _step(path, key, value) for key, value in content["steps"].items()}
    if "OUT" not in variables:
        raise DataError(f"{path} has no variable OUT, the folder that everything is written to; add it to variables")
    known = {*variables, "USER_DIR", "HERE"}
    for step in steps.values():
        for unknown in set(_VARIABLE.findall(" ".join((*step.words, step.makes)))) - known:
            raise DataError(f"{path}: step {step.name} has {{{unknown}}}, which is no variable; add it to variables")
    return Recipe(path.stem, str(content["about"]), variables, steps)


def _check_keys(path: Path, kind: str, content: Any, known: set[str], needed: Sequence[str]) -> None:
    if not isinstance(content, dict):
        raise DataError(f"{path}: {kind} is {content!r}; expected a mapping with {', '.join(sorted(known))}")
    for key in content:
        if key not in known:
            raise DataError(f"{path}: {kind} has no {key!r}; expected {', '.join(sorted(known))}")
    for key in needed:
        if key not in content:
            raise DataError(f"{path}: {kind} lacks {key!r}; add it")


def _variable(path: Path, name: str, content: Any) -> Variable:
    if isinstance(content, str):
        return Variable(name, content)
    _check_keys(path, f"variable {name}", content, _VARIABLE_KEYS, ("help",))
    default = content.get("default")
    return Variable(
        name,
        str(content["help"]),
        None if default is None else str(default),
        bool(content.get("options", False)),
        str(content.get("finalist_of", "")),
    )


def _step(path: Path, name: str, content: Any) -> Step:
    _check_keys(path, f"step {name}", content, _STEP_KEYS, ("about", "run", "makes"))
    try:
        words = tuple(word for line in content["run"] for word in shlex.split(str(line)))
    except ValueError as error:
        raise DataError(f"{path}: step {name} cannot be split into words ({error})") from None
    if not words:
        raise DataError(f"{path}: step {name} runs nothing; give its command")
    return Step(name, str(content["about"]), words, str(content["makes"]), bool(content.get("optional", False)))


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1], f"${match[1]}"), text)


def _best_finalist(folder: Path) -> str:
    """File of the finalist with the least loss among the best of each search; empty before there is one."""
    if not (folder / "finalists.json").is_file():
        return ""
    finalists = read_json(folder / "finalists.json")["finalists"]
    best = [one for one in finalists if one["best_of"]] or finalists
    return str(folder / min(best, key=lambda one: one["metrics"]["loss"])["file"]) if best else ""


def executable(word: str) -> str:
    """A command of the environment that this Python runs in.

    Raises:
        ConfigError: it is not installed there.
    """
    if word == "python":
        return sys.executable
    path = Path(sys.executable).parent / word
    if not path.exists():
        raise ConfigError(f"{word} is not in {path.parent}; run 'make setup', and start the recipe with its Python")
    return str(path)
