"""The report: made from rows alone, the same bytes every time, and honest about who wins."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.tables import known, markdown, row_of, where_others_win
from planner.bench.row import RowStatus, read_rows, rows_to_jsonl
from solvers.files.by_name import read_problem
from solvers.files.json_format import problem_hash
from solvers.files.text import FileError
from solvers.place.stock import stock_greedy

PLANS = report.RESULTS / "plans.jsonl"


@pytest.fixture(scope="module")
def measured():
    return report.rows_of(PLANS), *(report.objects_of(report.RESULTS / f) for f in report.FACTS)


def test_committed_texts_are_what_the_rows_say(monkeypatch):
    monkeypatch.setattr("sys.argv", ["report", "--check"])
    assert report.main() == 0


def test_the_same_rows_give_the_same_bytes(measured, tmp_path):
    rows, exports, runs = measured
    shuffled = tmp_path / "plans.jsonl"
    shuffled.write_text(rows_to_jsonl(reversed(read_rows(str(PLANS)))))
    again = report.rows_of(shuffled)
    assert report.texts_of(again, exports, runs) == report.texts_of(rows, exports, runs)
    assert report.pictures_of(again, exports) == report.pictures_of(rows, exports)


def test_rows_are_of_the_committed_problems(measured):
    files = {p.stem: problem_hash(read_problem(str(p))) for p in (report.HERE / "problems").glob("*.json")}
    rows, exports, _ = measured
    assert {r.problem: r.sha256 for r in rows} == files
    assert {name for e in exports for name in e["problems"]} == files.keys()
    assert len({e["model"] for e in exports}) >= 40


def test_problems_are_what_stock_planned(measured):
    """Stock's greedy on a problem file gives the arena of stock's export, but for XNNPACK's 64 bytes of padding.

    In programs with state stock also places what the write-backs return, which nothing reads: it may need more.
    """
    checked = 0
    for e in measured[1]:
        names = [n for n in e["problems"] if not n.endswith(".moved")]
        if len(names) == 1:
            problem = read_problem(str(report.HERE / "problems" / f"{names[0]}.json"))
            offsets = stock_greedy(problem)
            arena = max(offsets[b.id] + -(-b.size // 16) * 16 for b in problem.buffers)
            more = e["stock"]["arena"] - arena - (64 if "xnnpack" in e["variant"] else 0)
            assert more == 0 or (more > 0 and len(e["problems"]) > 1), names
            checked += 1
    assert checked > 100


def test_no_bound_is_above_a_peak(measured):
    for rows in report.by_problem(measured[0]).values():
        for sharing in {r.sharing for r in rows}:
            solved = [r for r in rows if r.sharing == sharing and r.solved]
            assert max(r.lower_bound for r in solved) <= min(r.peak for r in solved), rows[0].problem


def test_sharing_is_never_a_larger_arena(measured):
    for rows in report.by_problem(measured[0]).values():
        assert known(rows, "all").peak <= known(rows, "none").peak


def test_the_share_that_is_proven(measured):
    """What the project promises of its corpus: 98 % of whole tensors, 90 % with all sharing."""
    problems = report.by_problem(measured[0])
    for planner, share in (("auto", 0.98), ("auto+all", 0.9)):
        proven = [row_of(rows, planner).status is RowStatus.OPTIMAL for rows in problems.values()]
        assert sum(proven) >= share * len(proven)


def rows_of_two(peak, seconds):
    """Ours, and a peer with another peak and time, on one problem."""
    row = next(r for r in read_rows(str(PLANS)) if r.planner == "auto")
    peer = replace(row, planner="peer", peak=int(row.peak * peak), seconds=row.seconds * seconds)
    return [row, peer]


def test_a_peer_that_wins_is_named():
    for peak, seconds, said in ((0.5, 9, "smaller peak on 1"), (1, 0.25, "its time is 0.25 of ours")):
        rows = rows_of_two(peak, seconds)
        (line,) = where_others_win({"p": rows}, ["peer"])
        assert said in line
    for peak, seconds in ((2, 0.1), (1, 3)):
        (line,) = where_others_win({"p": rows_of_two(peak, seconds)}, ["peer"])
        assert line.startswith("Nowhere")


def test_a_plan_that_is_refused_wins_nothing():
    mine, peer = rows_of_two(0.5, 0.1)
    (line,) = where_others_win({"p": [mine, replace(peer, status=RowStatus.WRONG)]}, ["peer"])
    assert line.startswith("Nowhere")


OTHERS = [{"time_limit": 7}, {"workers": 7}, {"seed": 7}, {"runs": 7}, {"jobs": 7}, {"machine": {"cpu": "another"}},
          {"sha256": "another"}, {"versions": {"arena-planner": "0"}}]  # fmt: skip


@pytest.mark.parametrize("change", OTHERS, ids=lambda c: next(iter(c)))
def test_rows_that_do_not_compare_are_refused(tmp_path, change):
    ours = [r for r in read_rows(str(PLANS)) if r.planner in ("auto", "native")][:2]
    mixed = tmp_path / "plans.jsonl"
    mixed.write_text(rows_to_jsonl([ours[0], replace(ours[1], **change)]))
    with pytest.raises(FileError, match="do not compare"):
        report.rows_of(mixed)


def test_rows_must_be_whole(tmp_path):
    rows = read_rows(str(PLANS))
    for some, said in ((rows[1:], "is missing"), ([*rows, rows[0]], "occurs twice"), ([], "every row is missing")):
        path = tmp_path / "plans.jsonl"
        path.write_text(rows_to_jsonl(some))
        with pytest.raises(FileError, match=said):
            report.rows_of(path)


def test_a_peer_that_has_a_plan_where_ours_has_none_is_named():
    mine, peer = rows_of_two(1, 1)
    (line,) = where_others_win({"p": [replace(mine, status=RowStatus.OVERRUN, peak=None), peer]}, ["peer"])
    assert "has a plan where ours has none: p" in line


def test_cells_keep_to_their_columns():
    assert markdown(("a", "b"), [("x | y", "1\n2")])[2] == "| x \\| y | 1 2 |"


def test_the_readme_without_marks_is_kept():
    with pytest.raises(FileError, match="the marks"):
        report.with_section("# no marks", "text")
    text = f"a\n{report.BEGIN}\nold\n{report.END}\nb"
    assert report.with_section(text, "new") == f"a\n{report.BEGIN}\nnew\n{report.END}\nb"


def test_facts_are_whole():
    for name in report.FACTS:
        for line in Path(report.RESULTS / name).read_text().splitlines():
            assert {"stock", "arena"} <= json.loads(line).keys()
