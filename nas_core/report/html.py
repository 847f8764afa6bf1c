"""One HTML page that needs nothing beside itself: styles inside, pictures embedded, all text escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

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
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""
_LONG = 40
"""Cells with more characters may wrap."""


class Page:
    """A page that is filled from top to bottom and rendered at the end."""

    def __init__(self, title: str, lead: str = "", language: str = "en") -> None:
        self.title = title
        self.language = language
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p>{escape(text)}</p>")

    def facts(self, facts: Mapping[str, object]) -> None:
        """Names and values, one pair to a line."""
        self._parts.append(_pairs(facts.items()))

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
            f"<title>{escape(self.title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<main>\n{body}\n"
            "</main>\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> None:
        write_atomic(path, self.render())


def _cell(text: str, kind: str) -> str:
    if len(text) > _LONG:
        kind = ' class="long"'
    return f"<td{kind}>{escape(text)}</td>"


def _figure(png: bytes, alt: str, caption: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><img alt="{escape(alt)}" src="data:image/png;base64,{data}">{below}</figure>'


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs) + "</dl>"
