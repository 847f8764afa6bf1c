"""The reference holds every public name, and every command with every option."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from nas_core.cli import COMMANDS, LAB, application
from tests.toys import ROOT
from tests.warm import python

REFERENCE = ROOT / "docs" / "reference"
PAGES = {
    "fairseq": ("fairseq_ext",),
    "graph": ("nas_core.graph",),
    "latency": (
        "nas_core.latency", "nas_core.latency.by_genes", "nas_core.latency.by_graph",
        "nas_core.latency.by_graph.families",
    ),
    "layers": ("nas_core.layers", "nas_core.layers.attention"),
    "models": ("nas_core.models", "nas_core.models.image", "nas_core.models.masked_lm", "nas_core.models.translation"),
    "naslib": ("naslib_ext",),
    "nni": ("nni_ext",),
    "optuna": ("optuna_ext",),
    "predictor": ("nas_core.predictor", "nas_core.proxies"),
    "report": ("nas_core.report",),
    "search": ("nas_core.search",),
    "space": ("nas_core.space",),
    "studies": ("nas_core.studies",),
    "supernet": ("nas_core.supernet", "nas_core.supernet.elastic", "nas_core.supernet.teacher"),
    "timm": ("timm_ext",),
}  # fmt: skip


def public(package: str) -> list[str]:
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    (names,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return [str(name) for name in ast.literal_eval(names)]


def entries(page: str) -> list[str]:
    return re.findall(r"^::: (\S+)$", (REFERENCE / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_public_name_is_on_its_page(page: str) -> None:
    """A name that two packages of a page have stands there once; a module that is public, by what is in it."""
    shown = entries(page)
    assert len(shown) == len(set(shown))
    places = {entry.rpartition(".")[::2] for entry in shown}
    for package in PAGES[page]:
        for name in public(package):
            below = [entry for entry in shown if f"{entry}.".startswith(f"{package}.{name}.")]
            assert below or any((other, name) in places for other in PAGES[page]), f"{package}.{name}"


def test_pages_are_those_of_the_site() -> None:
    site = re.findall(r"reference/([\w-]+)\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert set(site) == {*PAGES, "index", "command-line"}


def test_every_command_has_a_section_with_each_of_its_options() -> None:
    """Counted by the library of the command line; the page is written from the functions' signatures."""
    text = (REFERENCE / "command-line.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in re.split(r"^#{2,4} ", text, flags=re.MULTILINE)}
    for words in [*([command.name] for command in COMMANDS), ["nni"], *(["lab", command.name] for command in LAB)]:
        group: Any = typer.main.get_command(application(words))
        for word in words:
            group = group.commands[word]
        for path, command in every_command(f"nas-ext {' '.join(words)}", group):
            listed = {flag for line in re.findall(r"^- `([^`]*)`", sections[path], re.M) for flag in line.split(", ")}
            flags = {flag.split()[0] for flag in listed}
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert flags >= {*parameter.opts, *parameter.secondary_opts}, path
            assert len(listed) >= len(command.params)


def every_command(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(f"{path} {name}", below)


@pytest.mark.fairseq
@pytest.mark.timm
def test_the_page_of_commands_is_fresh() -> None:
    """Written by a new process: what other tests plug in stays in the help of commands that they import."""
    pytest.importorskip("fairseq", reason="needs fairseq")
    pytest.importorskip("timm", reason="needs timm")
    program = "import sys; from tools.command_line import page; sys.stdout.buffer.write(page().encode())"
    starter, environment = python()
    new = subprocess.run([starter, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=True)
    page = REFERENCE / "command-line.md"
    assert page.read_text(encoding="utf-8") == new.stdout.decode(), "run: python -m tools.command_line"
