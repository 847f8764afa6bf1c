"""One subject of the page of results: a template, the values for its placeholders, perhaps a picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page.results import Results
from benchmarks.page.words import joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TEXTS", "Picture", "Section", "anchor", "provenance", "wrapped"]

TEXTS = Path(__file__).with_name("text")
"""The templates: Markdown with ``{placeholders}`` and no figure of its own."""
WIDTH = 118
_AS_IT_IS = ("|", "#", "![", "<!--")
"""How paragraphs begin that are not wrapped."""

Values = Callable[[Results], Mapping[str, str]]


@dataclass(frozen=True)
class Picture:
    """A figure in ``docs/results``, drawn on an empty one of this size."""

    name: str
    alt: str
    """What it shows, for those who do not see it."""
    draw: Callable[[Results, Figure], None]
    inches: tuple[float, float] = (6.8, 3.8)


@dataclass(frozen=True)
class Section:
    """What the page says of one subject.

    Its template is ``ANCHOR.md`` in ``text`` or a folder of it, which ends with what the figures are compared with.
    """

    title: str
    """Its heading, of which links are made."""
    names: tuple[str, ...]
    """The results it shows, without ``.json``."""
    values: Values
    """What stands for the template's placeholders; ``{picture}`` is where the picture goes."""
    picture: Picture | None = None
    optional: bool = False
    """Whether it is left out until all its results are there."""
    part: str = ""
    """What the first result of an optional one must also hold."""

    def shown(self, results: Results) -> bool:
        """Whether the page has it."""
        there = set(self.names) <= set(results.names)
        return not self.optional or (there and (not self.part or self.part in results[self.names[0]]))

    @property
    def template(self) -> str:
        (file,) = TEXTS.rglob(f"{anchor(self.title)}.md")
        return file.read_text(encoding="utf-8")

    def markdown(self, results: Results) -> str:
        """The whole section."""
        values = dict(self.values(results))
        if self.picture:
            values["picture"] = f"![{self.picture.alt}](results/{self.picture.name}.svg)"
        text, _, reference = self.template.format(**values).strip().partition("Compared with:")
        heading, _, body = text.strip().partition("\n")
        if heading != f"# {self.title}":
            raise ValueError(f"the template of {self.title!r} begins with {heading!r}")
        told = [*provenance(results, self.names), f"Compared with {' '.join(reference.split())}"]
        quoted = "\n>\n".join(_fill(line, "> ", "> ") for line in told)
        return f"## {self.title}\n\n{wrapped(body)}\n\n{quoted}"


def provenance(results: Results, names: tuple[str, ...]) -> list[str]:
    """Command, date, machine and file of each of these results."""
    return [
        f"Measured with {joined(f'`{command}`' for command in results.commands(name))}, {results.date(name)},"
        f" {_machine(results, name)}; figures in `benchmarks/results/{name}.json`."
        for name in names
    ]


def anchor(title: str) -> str:
    """The part of a link behind ``#`` that leads to a heading."""
    return re.sub(r"[^\w-]+", "-", title.lower()).strip("-")


def wrapped(text: str) -> str:
    """Markdown with its paragraphs and items filled to the width of a line; tables and pictures stay."""
    return "\n\n".join(
        paragraph
        if paragraph.startswith(_AS_IT_IS)
        else "\n".join(_fill(item) for item in re.split(r"\n(?=- )", paragraph))
        for paragraph in re.split(r"\n{2,}", text.strip())
    )


def _fill(item: str, first: str = "", further: str = "") -> str:
    """One paragraph or item; what stands in backquotes stays in one line."""
    kept = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", "\0"), " ".join(item.split()))
    further = further or ("  " if item.startswith("- ") else "")
    lines = textwrap.fill(
        kept, WIDTH, initial_indent=first, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def _machine(results: Results, name: str) -> str:
    machines = results.machines(name)
    threads = joined(sorted({str(machine["threads"]) for machine in machines}))
    first: Mapping[str, Any] = machines[0]
    cpu = first["cpu"].replace("(R)", "")
    plural = "" if threads == "1" else "s"
    return f"on {cpu}, {threads} thread{plural} of {first['cores']} cores, torch {first['torch']}"
