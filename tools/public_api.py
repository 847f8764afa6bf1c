"""Everything that callers may rely on as one text, ``tests/public_api.txt``: a review sees each change of it.

``python -m tools.public_api`` writes the file; a test says when it is out of date. Public is what the reference shows,
and below it what has no leading underscore. Signatures are read by griffe, as the site reads them, and not imported: no
host has to be installed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

from nas_core.cli.doctor import GROUPS, installed_plug_ins
from nas_core.files import write_atomic
from nas_core.latency.by_graph.families import CORE
from nas_core.precision import PRECISIONS
from nas_core.predictor import list_recipes
from nas_core.space import list_spaces

__all__ = ["FILE", "PACKAGES", "commands", "entry_points", "main", "names", "signatures", "text"]

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "public_api.txt"
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = ("nas_core", "fairseq_ext", "timm_ext", "nni_ext", "naslib_ext", "optuna_ext")
LONGEST_VALUE = 100
"""A longer value of a constant is not what its callers rely on."""
_NOTES = re.compile(r"\(((?:required|may be given several times|at least|default: )[^()]*(?:\([^()]*\)[^()]*)*)\)$")


def text() -> str:
    """The whole file."""
    parts = {
        "Names, signatures and fields": sorted(set(signatures(ROOT, PACKAGES, _shown()))),
        "Commands and options": commands((REFERENCE / "command-line.md").read_text(encoding="utf-8")),
        "Entry points and extras": entry_points(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))),
        "Names that are given as texts": names(),
    }
    told = "# What callers may rely on; written by: python -m tools.public_api\n"
    return told + "".join(
        f"\n## {title}\n\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts.items()
    )


def main() -> None:
    """Write the file."""
    write_atomic(FILE, text())


def signatures(root: Path, packages: tuple[str, ...], shown: list[str]) -> Iterator[str]:
    """A line for each of the names ``shown`` of packages in ``root``, and for what is public below it.

    What a class inherits stands at its base; where that is not shown itself, at the class.
    """
    loader = griffe.GriffeLoader(search_paths=[str(root)], allow_inspection=False)
    for package in packages:
        loader.load(package)
    loader.resolve_aliases(implicit=False, external=False)
    found = {path: loader.modules_collection[path] for path in shown}
    modules = [member for member in found.values() if member.is_module]
    homes = {
        member.canonical_path for member in [*found.values(), *(one[name] for one in modules for name in _names(one))]
    }
    for path, member in found.items():
        yield from _lines(path, member, homes)


def commands(page: str) -> list[str]:
    """A line for each command and option on the reference's page of the command line, which has a test of its own."""
    lines = []
    for section in re.split(r"^#{2,4} ", page, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        lines.append(title)
        for part in body.split("\n\n"):
            for item in re.split(r"^- `", part, flags=re.MULTILINE)[1:]:
                given, _, said = " ".join(item.split()).partition("`")
                notes = _NOTES.search(said)
                lines.append(f"{title} {given}" + (f" ({notes[1]})" if notes else ""))
        architectures = re.search(r"The architectures: ([^.]*)\.", " ".join(body.split()))
        lines += [f"{title} {name}" for name in re.findall(r"`([^`]*)`", architectures[1] if architectures else "")]
    return sorted(lines)


def entry_points(settings: dict[str, Any]) -> list[str]:
    """Commands, entry points and extras of the distribution, and the groups in which others may offer entry points."""
    project = settings["project"]
    lines = [f"command {name} = {target}" for name, target in project["scripts"].items()]
    lines += [f"extra {name}" for name in project["optional-dependencies"]]
    lines += [f"group {group}" for group in GROUPS]
    for group, members in project["entry-points"].items():
        lines += [f"entry point {group}: {name} = {target}" for name, target in members.items()]
    return sorted(lines)


def names() -> list[str]:
    """Members of registries, spaces, recipes, families and precisions of the project by their names."""
    others = {(one.group, one.name) for one in installed_plug_ins()}
    lines = [f"space {name}" for name in list_spaces()]
    lines += [f"recipe {name}" for name in list_recipes()]
    lines += [f"network family {family.name}" for family in CORE]
    lines += [f"precision {name}" for name in PRECISIONS]
    for group, place in GROUPS.items():
        if place:
            module, _, attribute = place.partition(":")
            registry = getattr(import_module(module), attribute)
            lines += [f"{registry.what} {name}" for name in registry.names() if (group, name) not in others]
    return sorted(lines)


def _shown() -> list[str]:
    """The names on the pages of the reference."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md"))]
    return [name for page in pages for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]


def _lines(path: str, member: Any, homes: set[str]) -> Iterator[str]:
    if member.is_alias:
        member = member.final_target
    tell: dict[str, Callable[..., Iterator[str]]] = {"module": _module, "class": _class, "function": _function}
    yield from tell.get(member.kind.value, _attribute)(path, member, homes)


def _module(path: str, module: Any, homes: set[str]) -> Iterator[str]:
    for name in _names(module):
        yield from _lines(f"{path}.{name}", module.members[name], homes)


def _names(module: Any) -> list[str]:
    """What stands in ``__all__``; without one, what is defined here. Modules below have lines of their own, or none."""
    defined = [name for name, member in module.members.items() if _is_public(name) and not member.is_alias]
    exported = defined if module.exports is None else map(str, module.exports)
    return [name for name in exported if not module.members[name].is_module]


def _class(path: str, one: Any, homes: set[str]) -> Iterator[str]:
    bases = ", ".join(str(base) for base in one.bases)
    yield _called(path, one) + (f" [class of {bases}]" if bases else " [class]")
    members = {name: member for name, member in one.members.items() if _is_public(name)}
    for name, member in one.inherited_members.items():
        base = member.final_target.parent
        if _is_public(name) and base.canonical_path not in homes:
            members.setdefault(name, member)
    for name, member in members.items():
        if member.is_alias and not member.inherited:
            continue  # an import in the body of a class
        yield from _lines(f"{path}.{name}", member, homes)


def _called(path: str, one: Any) -> str:
    """What a class is called with."""
    if any(str(base).endswith("NamedTuple") for base in one.bases):
        fields = [member for member in one.members.values() if member.is_attribute and member.annotation is not None]
        told = (f"{field.name}: {field.annotation}" + (f" = {field.value}" if field.value else "") for field in fields)
        return f"{path}({', '.join(told)})"
    init = one.all_members.get("__init__")
    return str(init.signature(name=path, return_type=False)) if init else path


def _function(path: str, function: Any, homes: set[str]) -> Iterator[str]:
    kinds = "".join(f" [{label}]" for label in ("classmethod", "staticmethod") if label in function.labels)
    for one in function.overloads or [function]:
        yield f"{one.signature(name=path)}{kinds}"


def _attribute(path: str, one: Any, homes: set[str]) -> Iterator[str]:
    """A field, a property or a constant; what an instance's attribute begins as is no part of it."""
    annotation = f": {one.annotation}" if one.annotation is not None else ""
    held = "dataclass" in one.parent.labels or "class-attribute" in one.labels or "instance-attribute" not in one.labels
    value = str(one.value) if held and one.value is not None else ""
    kinds = "".join(f" [{label}]" for label in ("property", "cached") if label in one.labels)
    yield f"{path}{annotation}" + (f" = {value}" if value and len(value) <= LONGEST_VALUE else "") + kinds


def _is_public(name: str) -> bool:
    return not name.startswith("_")


if __name__ == "__main__":
    main()
