"""Write the pages of the reference from the public names: ``python -m tools.reference``.

Each page is a table of signatures and first sentences, and a directive per name that the site expands.
Sources are read with griffe; nothing is imported.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

PAGES = {
    "space": ("Search spaces", ["nas_core.space"]),
    "layers": ("Layers", ["nas_core.layers", "nas_core.layers.attention", "nas_core.layers.attention.cosformer"]),
    "graph": ("Graphs", ["nas_core.graph"]),
    "models": (
        "Networks",
        [f"nas_core.models{kind}" for kind in ("", ".translation", ".language", ".masked_lm", ".image")],
    ),
    "supernet": ("Supernets", ["nas_core.supernet"]),
    "predictor": ("Accuracy predictors", ["nas_core.predictor"]),
    "latency": ("Latency", ["nas_core.latency", "nas_core.latency.by_graph"]),
    "search": ("Search", ["nas_core.search"]),
    "compression": ("Compression", ["nas_core.compression"]),
    "report": ("Reports and export", ["nas_core.report", "nas_core.export"]),
    "timm": ("timm", ["timm_ext"]),
    "hf": ("Hugging Face", ["hf_ext"]),
    "nni": ("NNI", ["nni_ext"]),
    "naslib": ("NASLib", ["naslib_ext"]),
    "optuna": ("Optuna", ["optuna_ext"]),
}
"""Page -> title and packages."""
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"


def page(name: str, modules: Any) -> str:
    """Return the text of a page."""
    title, packages = PAGES[name]
    lines = ["<!-- written by: python -m tools.reference -->", "", f"# {title}"]
    for package in packages:
        names = sorted(str(export) for export in modules[package].exports)
        members = {member: modules[package].members[member] for member in names}
        members = {member: m.final_target if m.is_alias else m for member, m in members.items() if not _is_module(m)}
        lines += ["", f"## {package}", "", "| name | |", "|---|---|"]
        lines += [f"| `{_signature(member, m)}` | {_first_sentence(m)} |" for member, m in members.items()]
        for member in members:
            lines += ["", f"::: {package}.{member}"]
    return "\n".join(lines) + "\n"


def _is_module(member: Any) -> bool:
    return bool((member.final_target if member.is_alias else member).is_module)


def _signature(name: str, target: Any) -> str:
    if target.is_attribute:
        return name
    parameters = [p for p in target.parameters if p.name not in ("self", "cls") and not p.kind.name.startswith("var_")]
    optional = {p.name for p in parameters if p.default is not None}
    return f"{name}({', '.join(f'{p.name}=..' if p.name in optional else p.name for p in parameters)})"


def _first_sentence(target: Any) -> str:
    text = target.docstring.value.partition("\n\n")[0] if target.docstring else ""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<! al)\. ", " ".join(text.split()))[0].removesuffix(".")


def load() -> Any:
    """Read the packages."""
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)])
    for package in sorted({package.partition(".")[0] for _, packages in PAGES.values() for package in packages}):
        loader.load(package)
    loader.resolve_aliases(implicit=True)
    return loader.modules_collection


if __name__ == "__main__":
    sources = load()
    for name in PAGES:
        (FOLDER / f"{name}.md").write_text(page(name, sources), encoding="utf-8")
