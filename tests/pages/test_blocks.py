"""What the blocks of pages are tested by does fail where a page is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Document

from tests.pages import blocks
from tests.pages.blocks import LANGUAGES, Block, Workshop, blocks_of
from tests.toys import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(text: str) -> list[Block]:
    return [block for _, block in blocks_of(Document(text, "page.md"))]


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_says_its_language_and_no_reason_is_empty(page: Path) -> None:
    for block in read(page.read_text(encoding="utf-8")):
        assert block.language in LANGUAGES, block.code
        assert block.language not in ("text", "console") or "$ " not in block.code, "commands stand in bash blocks"


def test_comments_above_a_block_are_read() -> None:
    text = "<!-- small: --n 100 => --n 1\n 9 => 8 -->\n<!-- fails: no -->\n```bash\nrun --n 100 9\n```\n"
    (block,) = read(f"<!-- prepare: mkdir a -->\n\nsome words\n\n{text}")
    assert (block.language, block.at_small_size, block.fails) == ("bash", "run --n 1 8\n", "no")
    assert block.prepare == ("mkdir a",)
    far = read("<!-- not run: x -->\n\nwords\n\n```python\na = 1\n```\n")[0]
    assert far.not_run == ""


@pytest.mark.parametrize("comment", ["<!-- notrun: x -->", "<!-- not run: -->", "<!-- Small: a => b -->", "<!-- x -->"])
def test_a_comment_that_says_nothing_is_an_error(comment: str) -> None:
    with pytest.raises(AssertionError, match="says nothing that is known"):
        read(f"<!-- needs: bash -->\n{comment}\n```bash\ntrue\n```\n")


def test_a_replacement_that_is_not_there_is_an_error() -> None:
    block = read("<!-- small: 5 => 1 -->\n```bash\nrun 6\n```\n")[0]
    with pytest.raises(AssertionError, match="without '5'"):
        _ = block.at_small_size


def test_shell_and_kernel_go_on_where_the_block_before_ended(workshop: Workshop) -> None:
    workshop.run(Block("bash", "mkdir inner && cd inner && echo 3 > number"))
    workshop.run(Block("yaml", "a: 1", file="deep/file.yml"))
    workshop.run(Block("bash", "test -f number && grep -q a deep/file.yml"))
    workshop.run(Block("python", "x = int(open('number').read())"))
    workshop.run(Block("python", "assert x == 3"))


@pytest.mark.parametrize("language, code", [("bash", "false\ntrue"), ("python", "1 / 0"), ("json", "{")])
def test_a_block_that_fails_fails(workshop: Workshop, language: str, code: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        workshop.run(Block(language, code))


def test_an_expected_error_must_come(workshop: Workshop) -> None:
    workshop.run(Block("bash", "echo wrong input >&2; exit 2", fails="wrong input"))
    workshop.run(Block("python", "raise ValueError('too large')", fails="too large"))
    with pytest.raises(AssertionError, match="expected to fail"):
        workshop.run(Block("bash", "true", fails="wrong input"))


def test_pytest_collects_every_block_that_runs() -> None:
    silent = ("text", "console", "mermaid")
    wanted = sum(block.language not in silent for page in PAGES for block in read(page.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "README.md", "docs"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True).stdout
    assert sum("::" in line for line in told.splitlines()) == wanted > 100


def test_a_kernel_that_does_not_begin_is_ended(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\necho $$ > {tmp_path / 'process'}\nexec sleep 600\n")
    (tmp_path / "python").chmod(0o755)
    workshop.environment["PATH"] = f"{tmp_path}{os.pathsep}{workshop.environment['PATH']}"
    monkeypatch.setattr(blocks, "BLOCK_S", 1)
    with pytest.raises(RuntimeError, match="Kernel didn't respond"):
        workshop.python("1")
    assert not Path("/proc", (tmp_path / "process").read_text().strip()).exists()
