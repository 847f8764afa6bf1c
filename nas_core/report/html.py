"""One HTML page that needs nothing beside itself: styles and scripts inside, pictures embedded, all text escaped."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from nas_core.files import write_atomic
from nas_core.report.tables import Table

__all__ = ["Page"]

_CSS = """
:root { --ink: #22272d; --soft: #5d6670; --line: #dfe3e8; --wash: #f5f7f9; --accent: #1f6fb4; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; line-height: 1.55;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .7rem; padding-top: 1.1rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 48rem; }
.lead, figcaption, .note { color: var(--soft); }
.scroll { overflow-x: auto; margin: .9rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .8rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; background: var(--wash); }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 20rem; color: var(--soft); font-size: .82rem; }
th.number, td.number { text-align: right; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
figcaption { font-size: .88rem; margin-top: .35rem; max-width: 48rem; }
.pictures { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: flex-start; }
.pictures figure { flex: 1 1 20rem; margin: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.1rem; margin: .8rem 0; font-size: .95rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.example { background: var(--wash); border-radius: 6px; padding: .7rem 1rem; margin: .8rem 0; }
.example dl { margin: 0; } .same { color: #2c7a4b; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--soft); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .82rem; background: #fff; padding: .6rem; }
.plot { width: 100%; }
#architecture { background: var(--wash); border-radius: 6px; padding: .7rem 1rem; margin: 1rem 0; min-height: 4rem; }
#architecture h3 { font-size: 1rem; margin: .2rem 0; }
#architecture .columns { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; align-items: flex-start; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""
_LONG = 40
"""Cells with more characters may wrap."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:;"
    " form-action 'none'; base-uri 'none'"
)
"""What the page may load: nothing from elsewhere. plotly.js makes functions from text for its parallel coordinates."""


class Page:
    """A page that is filled from top to bottom and rendered at the end."""

    def __init__(self, title: str, lead: str = "", language: str = "en") -> None:
        self.title = title
        self.language = language
        self._parts = [f"<h1>{escape(title)}</h1>"]
        self._plots = 0
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p>{escape(text)}</p>")

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, one pair to a line."""
        self._parts.append(_pairs(facts.items()))

    def details(self, summary: str, facts: Mapping[str, object]) -> None:
        """Facts that are folded away until somebody asks for them."""
        self._parts.append(f"<details><summary>{escape(summary)}</summary>{_pairs(facts.items())}</details>")

    def table(self, table: Table) -> None:
        numeric = [' class="number"' if column.spec else "" for column in table.columns]
        head = "".join(
            f"<th{kind}>{escape(column.header)}</th>" for kind, column in zip(numeric, table.columns, strict=True)
        )
        body = "".join(
            "<tr>" + "".join(_cell(cell, kind) for cell, kind in zip(row, numeric, strict=True)) + "</tr>\n"
            for row in table.cells()
        )
        self._parts.append(
            f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'
        )

    def image(self, png: bytes, alt: str, caption: str = "") -> None:
        self._parts.append(_figure(png, alt, caption))

    def images(self, pictures: Sequence[tuple[bytes, str, str]]) -> None:
        """Several pictures ``(png, alt, caption)`` side by side where there is room."""
        self._parts.append('<div class="pictures">' + "".join(_figure(*picture) for picture in pictures) + "</div>")

    def points(self, content: Mapping[str, Any], first: int) -> None:
        """The evaluations that plots refer to by number, and the place where the one that is clicked on is shown;
        see :mod:`nas_core.report.points`. At the beginning that is number ``first``."""
        self._parts.append(f'{_data("points", content)}<div id="architecture" data-number="{first}"></div>')

    def plot(self, figure: Mapping[str, Any], alt: str, caption: str = "", still: bytes | None = None) -> None:
        """A figure of :mod:`nas_core.report.interactive`; ``still`` is its picture for readers without scripts."""
        self._plots += 1
        name = f"plot{self._plots}"
        without = f"<noscript>{_image(still, alt)}</noscript>" if still else ""
        self._parts.append(
            f'<figure><div class="plot" id="{name}" role="img" aria-label="{escape(alt)}"'
            f' style="min-height: {int(figure["layout"]["height"])}px"></div>{without}{_below(caption)}</figure>'
            + _data(f"{name}-figure", figure)
        )

    def example(self, given: Mapping[str, str], outputs: Mapping[str, str], reference: str) -> None:
        """One translation: what was given, and each model's output by name; those equal to the reference are marked."""
        rows = [(name, text, "") for name, text in given.items()]
        rows += [(name, text, ' class="same"' if text == reference else "") for name, text in outputs.items()]
        lines = "".join(f"<dt>{escape(name)}</dt><dd{kind}>{escape(text)}</dd>" for name, text, kind in rows)
        self._parts.append(f'<div class="example"><dl>{lines}</dl></div>')

    def render(self) -> str:
        body = "\n".join(self._parts)
        return (
            f'<!doctype html>\n<html lang="{escape(self.language)}">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n"
            f"</main>\n{_scripts() if self._plots else ''}</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> None:
        write_atomic(path, self.render())


def _cell(text: str, kind: str) -> str:
    if len(text) > _LONG:
        kind = ' class="long"'
    return f"<td{kind}>{escape(text)}</td>"


def _figure(png: bytes, alt: str, caption: str) -> str:
    return f"<figure>{_image(png, alt)}{_below(caption)}</figure>"


def _image(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'


def _below(caption: str) -> str:
    return f"<figcaption>{escape(caption)}</figcaption>" if caption else ""


def _data(name: str, content: Mapping[str, Any]) -> str:
    """JSON in which no text can end the element that holds it."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _scripts() -> str:
    """plotly.js, whole, and what draws this page's figures with it."""
    from plotly.offline import get_plotlyjs

    ours = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    return f"<script>{get_plotlyjs()}</script>\n<script>{ours}</script>\n"


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs) + "</dl>"
