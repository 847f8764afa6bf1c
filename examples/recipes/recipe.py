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
from nas_core.files.reading import read_json

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
    """Words of the command, variables in braces."""
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
                found, _ = best_finalist(Path(_filled(variable.finalist_of, values)))
                if found:
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
                    raise self._missing(name, step, values)
            words.append(_filled(word, values))
        return words

    def _missing(self, name: str, step: Step, values: Mapping[str, str]) -> ConfigError:
        variable = self.variables[name]
        if variable.finalist_of and (why := best_finalist(Path(_filled(variable.finalist_of, values)))[1]):
            return ConfigError(f"step {step.name} of {self.name} needs {name}=FILE: {why}")
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
    variables = {key: _variable(path, key, value) for key, value in _named(path, content, "variables").items()}
    steps = {key: _step(path, key, value) for key, value in _named(path, content, "steps").items()}
    if not steps:
        raise DataError(f"{path} has no steps; give at least one, with about, run and makes")
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


def _named(path: Path, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The variables or the steps, each under its name."""
    found = content.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise DataError(f"{path}: {key} is {found!r}; expected a mapping, each of the {key} under its name")
    for name in found:
        if not isinstance(name, str) or (key == "variables" and not _VARIABLE.fullmatch(f"{{{name}}}")):
            kind = "capital letters" if key == "variables" else "a word"
            raise DataError(f"{path}: {name!r} is no name in {key}; expected {kind}")
    return found


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
    lines = [content["run"]] if isinstance(content["run"], str) else content["run"]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise DataError(
            f"{path}: run of step {name} is {lines!r}; expected a command, as text or as a list of its lines"
        )
    try:
        words = tuple(word for line in lines for word in shlex.split(line))
    except ValueError as error:
        raise DataError(f"{path}: step {name} cannot be split into words ({error})") from None
    if not words:
        raise DataError(f"{path}: step {name} runs nothing; give its command")
    return Step(name, str(content["about"]), words, str(content["makes"]), bool(content.get("optional", False)))


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1], f"${match[1]}"), text)


def best_finalist(folder: Path) -> tuple[str, str]:
    """File of the finalist with the least loss among the best of each search, and why there is none.

    A search whose finalists were all measured above its limit has no best one; training one of those for days is for
    the user to decide. Both are empty before there are finalists.

    Raises:
        DataError: the search's list of finalists is damaged.
    """
    listed = folder / "finalists.json"
    if not listed.is_file():
        return "", ""
    content = read_json(listed)
    try:
        finalists = [(one, str(folder / one["file"]), float(one["metrics"]["loss"])) for one in content["finalists"]]
        within = [one for one in finalists if one[0].get("best_of")]
        if above := [one for one in finalists if one[0].get("over_limit")] if not within else []:
            row, file, _ = min(above, key=lambda one: float(one[0]["measured"]["latency_ms"]))
            missed = f"above the limit, the fastest with {float(row['measured']['latency_ms']):.4g} ms ({file})"
            return "", f"all finalists of {folder} were measured {missed}; give that one, or search with a larger limit"
        return (min(within or finalists, key=lambda one: one[2])[1] if finalists else ""), ""
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{listed} is no list of finalists with file, metrics and loss ({error!r}); repeat the search"
        ) from None


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
