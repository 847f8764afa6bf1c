"""Run the code blocks of Markdown pages, each page's in order in a folder of its own.

``bash`` and ``sh`` blocks run in bash and stop at the first error; where one ends, the next begins. ``python`` blocks
run one after the other in one kernel. ``yaml`` and ``json`` blocks must be readable. ``text`` and ``console`` are what
programs print. Comments directly above a block, which readers do not see, say what else is to be done with it:

- ``<!-- file: NAME -->``: the block is that file; Python that is a file is only compiled here;
- ``<!-- small: A => B -->``: in the test B replaces A, which must be in the block; several are separated by lines;
- ``<!-- fails: TEXT -->``: the block must fail and say this;
- ``<!-- needs: NAME -->``: a program or a Python module without which the block is skipped;
- ``<!-- not run: REASON -->``: the block is skipped for this reason.

``<!-- prepare: CODE -->`` anywhere is bash that runs before the block that follows, such as what makes a small file.
``$PREPARE`` is the folder ``prepare`` next to this module, with scripts for several pages or of many lines.

Replacements may be in ``small/PAGE.txt`` instead of the page: lines ``A => B`` for every block that contains A, in the
order of the file. A line that changes no block is an error.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from tests.warm import warm

__all__ = ["LANGUAGES", "Block", "Workshop", "blocks_of", "collector"]

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("bash", "sh", "python", "yaml", "json", "toml", "text", "console", "mermaid")
LINKED = (".venv", "Makefile", "benchmarks", "docs", "examples", "pyproject.toml", "tools")
"""Files of a clone that are linked into the folder of a page."""
STARTED_ANEW = "submitit"
"""Blocks that need it start new processes: its jobs are known by their process, which a fork is not."""
BLOCK_S = 280
"""Time limit of a block in seconds."""
PREPARE = Path(__file__).parent / "prepare"
SMALL = Path(__file__).parent / "small"
"""Files of replacements, named as the pages."""
_COMMENT = re.compile(r"<!-- *(?P<name>file|small|fails|needs|not run|prepare): *(?P<value>.*?) *-->", re.DOTALL)
_ABOVE = re.compile(r"(?:^[ \t]*<!--(?:(?!-->).)*-->[ \t]*\n)+[ \t]*\Z", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    file: str = ""
    small: tuple[tuple[str, str], ...] = ()
    fails: str = ""
    needs: tuple[str, ...] = ()
    not_run: str = ""
    prepare: tuple[str, ...] = field(default=())

    @property
    def at_small_size(self) -> str:
        """The code with its replacements."""
        code = self.code
        for large, small in self.small:
            assert large in code, f"'small: {large} => ..' is above a block without {large!r}"
            code = code.replace(large, small)
        return code


class Workshop:
    """The folder, the shell and the kernel of one page."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="page-"))
        self.here = self.folder
        self._kernel: Any = None
        for name in LINKED:
            if (ROOT / name).exists():
                (self.folder / name).symlink_to(ROOT / name)
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        paths = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
        self.cold = {**os.environ, "PATH": programs, "PYTHONPATH": paths, "PREPARE": str(PREPARE)}
        self.environment = warm(self.cold)

    def close(self) -> None:
        if self._kernel is not None:
            self._kernel[0].shutdown_kernel(now=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, block: Block) -> None:
        """Run a block or write its file."""
        environment = self.cold if STARTED_ANEW in block.needs else self.environment
        for code in block.prepare:
            self.shell(code)
        if block.not_run:
            pytest.skip(block.not_run)
        for name in block.needs:
            if shutil.which(name, path=self.environment["PATH"]) is None and importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed here")
        code = block.at_small_size
        if block.language in ("yaml", "json"):
            (yaml.safe_load if block.language == "yaml" else json.loads)(code)
        if block.file:
            if block.language == "python":
                ast.parse(code)
            path = self.here / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        elif block.language in ("bash", "sh"):
            self.shell(code, block.fails, environment)
        elif block.language == "python":
            self.python(code, block.fails)

    def shell(self, code: str, fails: str = "", environment: Mapping[str, str] | None = None) -> None:
        """Run bash, by default with warm programs, and remember the folder in which it ends."""
        end = self.folder / ".here"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{code}\npwd > {end}"], cwd=self.here,
            env=self.environment if environment is None else environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=BLOCK_S, check=False,
        )  # fmt: skip
        _judge(done.returncode != 0, f"{done.stdout}\n{done.stderr}", code, fails)
        if end.exists():
            self.here = Path(end.read_text(encoding="utf-8").strip())

    def python(self, code: str, fails: str = "") -> None:
        """Run Python in the page's kernel, which is started with its first block."""
        if self._kernel is None:
            self._kernel = start_kernel(self.here, self.environment)
        output: list[str] = []

        def listen(message: dict[str, Any]) -> None:
            content = message["content"]
            output.append(str(content.get("text", "")) + "\n".join(content.get("traceback", [])))

        reply = self._kernel[1].execute_interactive(code, timeout=BLOCK_S, output_hook=listen)
        _judge(reply["content"]["status"] != "ok", "".join(output), code, fails)


def start_kernel(folder: Path, environment: dict[str, str]) -> tuple[Any, Any]:
    """Start a kernel of the ``python`` on the path; return it and its client."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = shutil.which("python", path=environment["PATH"]) or sys.executable
    manager.start_kernel(cwd=str(folder), env=environment)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=BLOCK_S)
    except BaseException:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        raise
    return manager, client


def blocks_of(document: Document) -> Iterator[tuple[Region, Block]]:
    """Yield every fenced block of a page with the directives above it."""
    lexer = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\n]*)\n"))
    end = 0
    file = (SMALL / Path(document.path).relative_to(ROOT)).with_suffix(".txt")
    lines = dict.fromkeys(file.read_text(encoding="utf-8").splitlines() if file.exists() else (), False)
    for region in lexer(document):
        before = document.text[end : region.start]
        end = region.end
        above = _ABOVE.search(before)
        comments = re.findall(r"<!--.*?-->", above.group() if above else "", re.DOTALL)
        matches = [_COMMENT.fullmatch(comment) for comment in comments]
        for comment, match in zip(comments, matches, strict=True):
            assert match is not None and match["value"], f"{comment} above a block is no directive"
        directives = [(match["name"], match["value"]) for match in matches if match is not None]
        prepare = tuple(m["value"] for m in _COMMENT.finditer(before) if m["name"] == "prepare")
        values = {name: [value for key, value in directives if key == name] for name, _ in directives}
        small = [line for value in values.get("small", ()) for line in value.splitlines()]
        code = region.lexemes["source"]
        for line in lines:
            large, replacement = (part.strip() for part in line.split("=>", 1))
            if large in code:
                code, lines[line] = code.replace(large, replacement), True
                small.append(line)
        yield (
            region,
            Block(
                region.lexemes["language"].strip(),
                region.lexemes["source"],
                file=values.get("file", [""])[0],
                small=tuple((a.strip(), b.strip()) for a, b in (line.split("=>", 1) for line in small if line.strip())),
                fails=values.get("fails", [""])[0],
                needs=tuple(name for value in values.get("needs", ()) for name in re.split(r"[ ,]+", value)),
                not_run=values.get("not run", [""])[0],
                prepare=prepare,
            ),
        )
    unused = [line for line, used in lines.items() if not used]
    assert not unused, f"{file}: no block contains the left side of {unused[0]!r}"


def collector(*patterns: str) -> Any:
    """Return the hook ``pytest_collect_file`` for pages."""
    return Sybil([_parse], patterns=patterns, path=str(ROOT), setup=_open, teardown=_close).pytest()


def _parse(document: Document) -> Iterator[Region]:
    for region, block in blocks_of(document):
        assert block.language in LANGUAGES, f"a block's language is {block.language!r}; expected one of {LANGUAGES}"
        if block.language in ("text", "console", "mermaid"):
            continue
        yield Region(region.start, region.end, block, _evaluate)


def _evaluate(example: Example) -> None:
    example.namespace["workshop"].run(example.parsed)


def _open(namespace: dict[str, Any]) -> None:
    namespace["workshop"] = Workshop()


def _close(namespace: dict[str, Any]) -> None:
    namespace["workshop"].close()


def _judge(failed: bool, output: str, code: str, fails: str) -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    if fails:
        assert failed and fails in plain, f"expected to fail with {fails!r}:\n{code}\n{plain[-3000:]}"
    else:
        assert not failed, f"{code}\n{plain[-3000:]}"
