"""One HTML page that needs nothing beside itself: styles and scripts inside, pictures embedded, all text escaped."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from nas_core.files import write_atomic
from nas_core.report.page.text import in_words
from nas_core.report.points import Points
from nas_core.report.tables import Table

__all__ = ["Following", "Page"]

_SCRIPTS = ("base", "drawing", "panel", "table", "theme", "legend", "plots", "ranges", "running", "page")
"""Our own scripts, in the order in which they are put together."""
_LONG = 40
"""Cells with more characters may wrap."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:;"
    " form-action 'none'; base-uri 'none'"
)
"""What the page may load: nothing from elsewhere. plotly.js makes functions from text for its parallel coordinates."""


@dataclass(frozen=True)
class Following:
    """What a page says about something that still goes on, and how often it is loaded again meanwhile."""

    head: str
    """How far it was when the page was written."""
    late: str
    """What is said instead once there has been no news for ``patience_s``."""
    alive: bool
    """Whether it went on when the page was written; otherwise the page is not loaded again."""
    last: datetime
    """When the last news came, with its time zone."""
    patience_s: float
    every_s: float
    """Seconds after which the page is loaded again."""
    done: int = 0
    total: int | None = None


class Page:
    """A page that is filled from top to bottom and rendered at the end."""

    def __init__(self, title: str, lead: str = "", language: str = "en") -> None:
        self.title = title
        self.language = language
        self._parts = [f"<h1>{escape(title)}</h1>"]
        self._heading = title
        self._plots = 0
        self._scripted = False
        self._reload_s = 0
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")
        self._heading = text

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
            f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(self._heading)}"><table>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

    def image(self, png: bytes, alt: str, caption: str = "") -> None:
        self._parts.append(_figure(png, alt, caption))

    def images(self, pictures: Sequence[tuple[bytes, str, str]]) -> None:
        """Several pictures ``(png, alt, caption)`` side by side where there is room."""
        self._parts.append('<div class="pictures">' + "".join(_figure(*picture) for picture in pictures) + "</div>")

    def following(self, what: Following) -> None:
        """A box about what still goes on; the page is loaded again, and keeps what its reader has selected."""
        now = datetime.now(UTC)
        bar = f'<progress value="{what.done}" max="{what.total}" aria-label="done"></progress>' if what.total else ""
        kind = "alive" if what.alive else "ended"
        said = f"Last evaluation at {_time(what.last)}; page written at {_time(now)}."
        data = {
            "late": what.late,
            "alive": what.alive,
            "last": what.last.isoformat(),
            "written": now.isoformat(),
            "patience_s": what.patience_s,
            "every_s": what.every_s,
        }
        self._parts.append(
            f'<section id="running" class="{kind}" aria-label="State of the search">'
            f'<p id="running-state">{escape(what.head)}</p>{bar}<p id="running-age">{said}</p></section>'
            + _data("following", data)
        )
        self._reload_s = math.ceil(what.every_s) if what.alive else 0
        self._scripted = True

    def points(self, points: Points, first: int = 0, heading: str = "") -> None:
        """What plots refer to by number, see :mod:`nas_core.report.points`: the place where the one that is selected is
        shown, at the beginning number ``first``, and under a ``heading`` a table of all."""
        noun = escape(points.noun)
        self._parts.append(
            f'<h2 id="selected">Selected {noun}</h2>{_data("points", points.content)}'
            f'<section id="architecture" aria-labelledby="selected" data-number="{first}"></section>'
            f'<h2 id="all">{escape(heading or f"All {points.noun}s")}</h2>'
            '<section id="rows" aria-labelledby="all"></section>'
            f"<noscript><p>The table of all {noun}s, and what is behind the points, need scripts.</p></noscript>"
        )
        self._scripted = True

    def plot(self, figure: Mapping[str, Any], alt: str, caption: str = "", still: bytes | None = None) -> None:
        """A figure of :mod:`nas_core.report.page.interactive`; ``still`` is its picture for readers without scripts."""
        self._plots += 1
        name = f"plot{self._plots}"
        self._scripted = True
        without = f"<noscript>{_image(still, alt)}</noscript>" if still else ""
        words = f'<p class="unseen" id="{name}-words">{escape(in_words(figure))}</p>'
        self._parts.append(
            f'<figure><div class="plot" id="{name}" role="img" aria-label="{escape(alt)}"'
            f' aria-describedby="{name}-words" style="min-height: {int(figure["layout"]["height"])}px"></div>'
            f"{words}{without}{_below(caption)}</figure>" + _data(f"{name}-figure", figure)
        )

    def example(self, given: Mapping[str, str], outputs: Mapping[str, str], reference: str) -> None:
        """One translation: what was given, and each model's output by name; those equal to the reference are marked."""
        rows = [(name, text, "") for name, text in given.items()]
        rows += [(name, text, ' class="same"' if text == reference else "") for name, text in outputs.items()]
        lines = "".join(f"<dt>{escape(name)}</dt><dd{kind}>{escape(text)}</dd>" for name, text, kind in rows)
        self._parts.append(f'<div class="example"><dl>{lines}</dl></div>')

    def render(self) -> str:
        body = "\n".join(self._parts)
        again = f'<noscript><meta http-equiv="refresh" content="{self._reload_s}"></noscript>' if self._reload_s else ""
        skip = '<a class="skip" href="#rows">To the table of all rows</a>\n' if 'id="rows"' in body else ""
        return (
            f'<!doctype html>\n<html lang="{escape(self.language)}">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n{again}'
            f"<title>{escape(self.title)}</title>\n<style>{_own('style.css')}</style>\n</head>\n<body>\n{skip}"
            f'<main id="top">\n{body}\n</main>\n{_scripts(self._plots) if self._scripted else ""}</body>\n</html>\n'
        )

    def save(self, path: str | Path) -> None:
        write_atomic(path, self.render())


def _time(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


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


def _scripts(plots: int) -> str:
    """plotly.js, whole, where there are figures, and what shows this page's figures and rows."""
    from plotly.offline import get_plotlyjs

    ours = "\n".join(_own(f"{name}.js") for name in _SCRIPTS)
    library = f"<script>{get_plotlyjs()}</script>\n" if plots else ""
    return f'{library}<script>(() => {{\n"use strict";\n{ours}}})();\n</script>\n'


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs) + "</dl>"
