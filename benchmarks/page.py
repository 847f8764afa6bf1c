"""``python -m benchmarks.page``: write the page of results, its plots, and the figures on other pages.

``sections.toml`` declares sections; numbers come from the files in ``results``. ``--check`` only lists outdated files
and exits with 1 if there are any.

Keys of a table: ``rows``, patterns for keys of a result, whose named groups become fields; ``where``, patterns for
fields; ``by``, fields to group by, with means of numbers; ``columns``, ``[header, field, digits]``, with ``std:field``
for the standard deviation; ``across``, a column of ``value`` for each value of a field; ``plot_only``, show only the
``plot``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import sys
import tomllib
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.errors import DataError, NasExtError
from nas_core.files.reading import read_json
from nas_core.files.writing import atomic_output, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
MARKER = re.compile(r"(<!-- figure: ([^|>]+?) \| ([^|>]+?)(?: \| (\d))? -->).*?<!-- /figure -->", re.DOTALL)
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e9ec",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "nas-ext",
}


def field(node: Any, path: str) -> Any:
    """Return the value at a dotted path, None if there is none; ``A=x&B=y`` selects the list item with these fields."""
    if not path:
        return node
    key, _, rest = path.partition(".")
    if isinstance(node, Mapping):
        keys = [name for name in node if path == name or path.startswith(f"{name}.")]  # keys may contain dots
        return field(node[keys[0]], path[len(keys[0]) + 1 :]) if keys else None
    if isinstance(node, list) and "=" in key:
        conditions = dict(pair.split("=", 1) for pair in key.split("&"))
        items = (item for item in node if all(str(item.get(name)) == value for name, value in conditions.items()))
        return field(next(items, None), rest)
    return field(node[int(key)], rest) if isinstance(node, list) and int(key) < len(node) else None


def matching_nodes(node: Any, patterns: list[str], fields: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the nodes whose keys match the patterns, each with the patterns' named groups as fields."""
    if not patterns:
        yield {**(node if isinstance(node, Mapping) else {"value": node}), **fields}
        return
    for key, child in node.items() if isinstance(node, Mapping) else enumerate(node):
        if match := re.fullmatch(patterns[0], str(key)):
            yield from matching_nodes(child, patterns[1:], {**fields, **match.groupdict()})


def format_value(value: Any, digits: int | None = None) -> str:
    """Return a value as text; numbers are rounded to ``digits`` decimals if given."""
    if isinstance(value, list):
        return ", ".join(format_value(item, digits) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {None: "", True: "yes", False: "no"}.get(value, str(value))
    number = Decimal(str(value))
    return f"{number if digits is None else number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


class Table:
    """Table declared in ``sections.toml``, with numbers from the results."""

    def __init__(self, declared: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        names, conditions = declared.get("names", {}), declared.get("where", {})
        selected = [
            row
            for name, content in results.items()
            for row in matching_nodes(content, declared["rows"], {"file": Path(name).name})
            if all(re.fullmatch(pattern, str(field(row, path))) for path, pattern in conditions.items())
        ]
        by: Mapping[str, str] = declared.get("by", {})
        groups: dict[Any, list[dict[str, Any]]] = {}
        for index, row in enumerate(selected):
            groups.setdefault(tuple(str(field(row, path)) for path in by.values()) or index, []).append(row)
        columns = [(*column, None)[:3] for column in declared.get("columns", ())]
        across_values: list[str] = []
        across = declared.get("across", "")
        if across:
            across_values = list(dict.fromkeys(str(field(row, across)) for row in selected))
            if all(re.fullmatch(r"\d+", value) for value in across_values):
                across_values.sort(key=int)
        self.x, self.rows = across_values, list[list[Any]]()
        self.header = [
            *by,
            *(header for header, _, _ in columns),
            *(names.get(value, value) for value in across_values),
        ]
        self.digits = (
            [None] * len(by) + [digits for *_, digits in columns] + [declared.get("digits")] * len(across_values)
        )
        for key, rows in groups.items():
            labels = [names.get(label, label) for label in key] if by else []
            cells = [_mean(rows, path, names) for _, path, _ in columns]
            for x in across_values:
                cells.append(_mean([row for row in rows if str(field(row, across)) == x], declared["value"], names))
            self.rows.append([*labels, *cells])
        if not selected:
            raise DataError(f"{declared['rows']}: no row of {', '.join(results)} matches; correct sections.toml")

    def markdown(self) -> str:
        texts = [
            [format_value(cell, digits) for cell, digits in zip(row, self.digits, strict=True)] for row in self.rows
        ]
        numbers = [any(isinstance(row[column], int | float) for row in self.rows) for column in range(len(self.header))]
        lines = [self.header, ["---:" if number else "---" for number in numbers], *texts]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def draw(self, axes: Axes, plot: Mapping[str, Any]) -> None:
        """Draw the table as ``lines``, ``points`` or ``bars``."""
        columns = [self.header.index(header) for header in plot.get("columns", ())]
        if plot["kind"] == "lines":
            for row in self.rows:
                points = [(float(x), y) for x, y in zip(self.x, row[-len(self.x) :], strict=True) if y is not None]
                axes.plot(*zip(*points, strict=True), "o-", label=row[0])
            axes.legend()
        elif plot["kind"] == "points":
            x, y = columns
            for index, row in enumerate(sorted(self.rows, key=lambda row: row[x])):
                axes.plot([row[x]], [row[y]], "o", color="#1f6fb4")
                axes.annotate(row[0], (row[x], row[y]), xytext=(5, -12 if index % 2 else 5), textcoords="offset points")
        else:
            axes.barh([row[0] for row in self.rows], [row[columns[0]] for row in self.rows], color="#1f6fb4")
            axes.invert_yaxis()
        for axis in plot.get("log", ""):
            getattr(axes, f"set_{axis}scale")("log")
        axes.set_xlabel(plot["x"])
        axes.set_ylabel(plot.get("y", ""))


def _mean(rows: list[dict[str, Any]], path: str, names: Mapping[str, str]) -> Any:
    deviation, path = path.startswith("std:"), path.removeprefix("std:")
    values = [value for row in rows if (value := field(row, path)) is not None]
    if deviation:
        return statistics.stdev(values) if len(values) > 1 else None
    if values and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return values[0] if len(values) == 1 else sum(values) / len(values)
    return names.get(str(values[0]), values[0]) if values else None


class Page:
    """Page of results."""

    def __init__(self, results: Path = FOLDER / "results", declared: Path = FOLDER / "sections.toml") -> None:
        content = tomllib.loads(declared.read_text(encoding="utf-8"))
        files = sorted(results.rglob("*.json"))
        self.results = {file.relative_to(results).with_suffix("").as_posix(): read_json(file) for file in files}
        self.introduction, self.sections = content["introduction"], content["sections"]
        section_results = {name for section in self.sections for name in self._select_results(section)}
        if unplaced := self.results.keys() - section_results - set(content["not_shown"]):
            raise DataError(f"{', '.join(sorted(unplaced))}: no section shows this result; add one to sections.toml")

    def _select_results(self, section: Mapping[str, Any]) -> dict[str, Any]:
        patterns = "|".join(section["results"])
        return {name: content for name, content in self.results.items() if re.fullmatch(patterns, name)}

    def markdown(self) -> str:
        shown: set[str] = set()
        sections = [self._section(section, shown) for section in self.sections]
        return "\n\n".join([self.introduction.strip(), *sections]) + "\n"

    def _section(self, section: Mapping[str, Any], shown: set[str]) -> str:
        parts = [f"## {section['title']}", section["summary"]]
        parts += [f"**{key.title()}**: {section[key]}" for key in ("baseline", "caveat") if key in section]
        results = self._select_results(section)
        parts += [measurement_line(name, content) for name, content in results.items() if name not in shown]
        shown.update(results)
        for declared in section.get("tables", ()):
            parts += [declared["caption"]] if "caption" in declared else []
            if not declared.get("plot_only"):
                parts.append(Table(declared, self._select_results({**section, **declared})).markdown())
            if plot := declared.get("plot"):
                parts.append(f"![{plot['alt']}](results/{plot['name']}.svg)")
        return "\n\n".join(parts)

    def plots(self) -> dict[str, tuple[Table, Mapping[str, Any], str]]:
        """Return file name -> table, declaration and data hash of a plot."""
        plots: dict[str, tuple[Table, Mapping[str, Any], str]] = {}
        declared = [{**section, **table} for section in self.sections for table in section.get("tables", ())]
        for table, plot in [(Table(d, self._select_results(d)), d["plot"]) for d in declared if "plot" in d]:
            data = json.dumps([table.header, table.rows, plot], sort_keys=True)
            stamp = hashlib.sha256(data.encode()).hexdigest()[:16]
            plots |= {f"{plot['name']}.{kind}": (table, plot, stamp) for kind in plot.get("files", ["svg"])}
        return plots

    def fill_figures(self, content: str) -> str:
        """Return a page with all markers ``<!-- figure: RESULT | PATH | DIGITS -->...<!-- /figure -->`` filled in."""

        def figure(match: re.Match[str]) -> str:
            value = field(self.results.get(match[2], {}), match[3])
            if value is None:
                raise DataError(f"figure {match[2]} | {match[3]}: the results have no such value; correct the marker")
            return f"{match[1]}{format_value(value, int(match[4]) if match[4] else None)}<!-- /figure -->"

        return MARKER.sub(figure, content)

    def texts(self, root: Path) -> dict[Path, str]:
        """Return path -> current text of every page with figures."""
        pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
        texts = {page: self.fill_figures(page.read_text(encoding="utf-8")) for page in pages if page.exists()}
        return {**texts, root / "docs" / "results.md": self.markdown()}


def measurement_line(name: str, content: Mapping[str, Any]) -> str:
    """Return name, date and device of a result."""
    machine = content.get("machine") or next(part["machine"] for part in content.values() if "machine" in part)
    device = machine.get("device_name", machine["cpu"]).replace("(R)", "")
    threads = f", {machine['threads']} cores" if machine.get("threads", 1) > 1 else ""
    return f"**Measured**: `{name}`, {content['measured']['date']}, {device}{threads}."


def save_plot(path: Path, table: Table, plot: Mapping[str, Any], stamp: str) -> None:
    """Draw a plot into a file that contains the hash of its data."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure((8, 4.5), layout="constrained")
        table.draw(figure.add_subplot(), plot)
        metadata = {"Title": plot["name"], "Source": f"benchmarks/results {stamp}"}
        unset = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with atomic_output(path) as draft:
            figure.savefig(draft, format=path.suffix[1:], dpi=160, metadata={**metadata, **unset})


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is stale")
    parser.add_argument("--root", type=Path, default=FOLDER.parent, help="folder of README.md and docs")
    parser.add_argument("--results", type=Path, default=FOLDER / "results", help="folder of the JSON files")
    options = parser.parse_args(argv)
    plot_folder = options.root / "docs" / "results"
    try:
        page = Page(options.results)
        texts = page.texts(options.root)
        plots = {plot_folder / name: plot for name, plot in page.plots().items()}
    except NasExtError as error:
        print(f"benchmarks.page: error: {error}", file=sys.stderr)
        return 2
    current = {path: path.read_bytes() if path.exists() else b"" for path in [*texts, *plots]}
    stale_pages = [path for path in texts if current[path] != texts[path].encode()]
    stale_plots = [path for path, (_, _, stamp) in plots.items() if stamp.encode() not in current[path]]
    obsolete = sorted(set(plot_folder.glob("*")) - set(plots))
    for path in [*stale_pages, *stale_plots, *obsolete]:
        print(f"{path.relative_to(options.root)} {'is stale' if options.check else 'written or removed'}")
        if options.check:
            continue
        if path in plots:
            save_plot(path, *plots[path])
        elif path in texts:
            write_atomic(path, texts[path])
        else:
            path.unlink()
    return int(options.check and bool([*stale_pages, *stale_plots, *obsolete]))


if __name__ == "__main__":
    sys.exit(main())
