"""What the documents say is so: examples run, their output is what is printed, links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from planner.executorch.compare import lower
from planner.executorch.example_models import SinCosCat
from planner.lock.lock_format import lock_from_json
from solvers.files.by_name import problem_from_csv, problem_from_json
from solvers.files.json_format import plan_from_json
from tests.planner.pte.programs import exported

ROOT = Path(__file__).parents[1]
PAGES = {str(p.relative_to(ROOT)): p.read_text() for p in sorted([*ROOT.glob("*.md"), *ROOT.glob("*/*.md")])}
EXAMPLES = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SET_UP = {"pip install '.[executorch]' && arena demo", "pip install -e '.[dev]' && pytest"}


def blocks(page, language):
    return [text for kind, text in EXAMPLES.findall(PAGES[page]) if kind == language]


def with_blocks(language):
    return [page for page in PAGES if blocks(page, language)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the examples run: issue 3210 as a program and as a problem, and two buffers as CSV."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pte").write_bytes(exported(SinCosCat(), (torch.linspace(0, 1, 64),)))
    (problem,) = (text for text in blocks("docs/formats.md", "json") if "arena-problem" in text)
    (tmp_path / "model.json").write_text(problem)
    (trace,) = blocks("docs/formats.md", "csv")
    (tmp_path / "trace.csv").write_text(trace)
    return tmp_path


def test_every_block_is_of_a_kind_that_is_tested():
    kinds = {kind for text in PAGES.values() for kind, _ in EXAMPLES.findall(text)}
    assert kinds == {"python", "console", "json", "csv", "sh", "text"}
    for page in PAGES:
        assert {text.strip() for text in blocks(page, "sh")} <= SET_UP, page


@pytest.mark.parametrize("page", with_blocks("python"))
def test_examples_in_python_run(page, folder):
    names = {"__name__": "example"}
    if page == "README.md":  # it begins with an export that the reader has
        names["edge"] = lower(SinCosCat(), (torch.randn(64),))
    for text in blocks(page, "python"):
        exec(compile(text, page, "exec"), names)  # the examples are ours


@pytest.mark.parametrize("page", with_blocks("console"))
def test_commands_print_what_is_said(page, folder):
    for text in blocks(page, "console"):
        for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            program, *arguments = shlex.split(command)
            assert program == "arena"
            run = subprocess.run(
                [sys.executable, "-m", "planner.cli", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if arguments == ["demo"] else subprocess.STDOUT,  # torch talks
                text=True,
                env=os.environ | {"COLUMNS": "120", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
                check=False,
            )
            code = re.search(r"^\[exit (\d)\]\n", said, re.M)
            assert run.returncode == (int(code[1]) if code else 0), run.stdout
            wanted = said.replace(code[0], "") if code else said
            assert re.fullmatch(pattern_of(wanted), run.stdout), f"{command}\n{run.stdout}\nis not\n{wanted}"


def pattern_of(said):
    """Three dots stand for the rest of a line, or, alone on one, for any lines."""
    lines = [re.escape(line).replace(re.escape("..."), "[^\n]*") + "\n" for line in said.splitlines()]
    return "".join("(?:[^\n]*\n)*" if line == "[^\n]*\n" else line for line in lines)


def test_examples_of_formats_are_read():
    readers = {
        "arena-problem": problem_from_json,
        "arena-plan": plan_from_json,
        "arena-lock": lock_from_json,
    }
    seen = set()
    for text in blocks("docs/formats.md", "json"):
        (kind,) = (k for k in readers if f'"{k}"' in text)
        readers[kind](text, "formats.md")
        seen.add(kind)
    assert seen == readers.keys()
    for text in blocks("docs/formats.md", "csv"):
        assert problem_from_csv(text, "formats.md").buffers


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)?(?:#([\w-]+))?\)", PAGES[page]):
        path, anchor = target
        if path.startswith(("http", "mailto")):
            continue
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page}: {path}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            assert anchor in slugs, f"{page}: #{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    if page in ("CHANGELOG.md", "benchmarks/RESULTS.md"):
        pytest.skip("it tells of what was, or of data")
    named = re.findall(r"`((?:planner|solvers|tests|benchmarks|docs)/[\w./-]+)`", PAGES[page])
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_the_readme_is_short_and_has_two_set_up_commands():
    assert len(PAGES["README.md"].splitlines()) <= 200
    assert {text.strip() for text in blocks("README.md", "sh")} == SET_UP
