"""Rows: a round trip, and what is no row is named with its line."""

import json
from dataclasses import replace

import pytest

from planner.bench.row import Row, RowStatus, read_rows, rows_to_jsonl
from planner.bench.summary import Known, geometric_mean, known_of, record_of, with_excess
from solvers.files.text import FileError

ROW = Row("p", "00", 3, "auto", "none", 1.0, 2, 0, 1, 1, RowStatus.OPTIMAL, 100, 100, 0.0, times=(0.5,), seconds=0.5)
FAILED = replace(ROW, planner="slow", status=RowStatus.OVERRUN, peak=None, lower_bound=None, gap=None, error="späť\n")


def test_round_trip(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [ROW, FAILED, replace(ROW, versions={"a": "1"}, machine={"cpu": "x"}, times=(1.0, 2.0), excess=0.25)]
    path.write_text(rows_to_jsonl(rows))
    assert read_rows(str(path)) == rows


def changed(**fields):
    data = json.loads(rows_to_jsonl([ROW]))
    return json.dumps({k: v for k, v in (data | fields).items() if v != "gone"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no row of a benchmark"),
        ("{}", 'must be an object with "format": "arena-bench"'),
        (changed(version=2), "version is 2: it must be 1"),
        (changed(peak="gone", planner="gone"), "'planner' is missing"),
        (changed(colour="red"), "'colour' is no field of a row"),
        (changed(peak=1.5), r"peak is 1.5: it must be int \| None"),
        (changed(seed=True), "seed is True: it must be int"),
        (changed(times="often"), "times is 'often'"),
        (changed(status="fine"), "status is 'fine': it must be one of optimal, feasible, wrong"),
    ],
)
def test_what_is_no_row(tmp_path, line, said):
    path = tmp_path / "rows.jsonl"
    path.write_text(rows_to_jsonl([ROW]) + line + "\n")
    with pytest.raises(FileError, match=rf"rows\.jsonl:2: .*{said}"):
        read_rows(str(path))


def peaks(*values, bound=100, sharing="none"):
    return [
        replace(
            ROW,
            planner=f"p{k}",
            sharing=sharing,
            peak=v,
            lower_bound=bound,
            status=RowStatus.OPTIMAL if v == bound else RowStatus.FEASIBLE,
        )
        for k, v in enumerate(values)
    ]


def test_excess_is_over_the_optimum_where_it_is_proven():
    rows = with_excess(peaks(100, 150))
    assert [(r.excess, r.against) for r in rows] == [(0.0, "optimum"), (0.5, "optimum")]
    rows = with_excess(peaks(125, 150))
    assert [(r.excess, r.against) for r in rows] == [(0.25, "bound"), (0.5, "bound")]


def test_a_proof_by_one_planner_counts_for_all():
    rows = with_excess([*peaks(120, 150), *peaks(120, bound=120)])
    assert [r.against for r in rows] == ["optimum"] * 3
    assert rows[1].excess == pytest.approx(0.25)


def test_each_kind_of_sharing_has_its_optimum():
    rows = with_excess([*peaks(100, 110), *peaks(60, 66, bound=60, sharing="all")])
    assert [round(r.excess, 9) for r in rows] == [0, 0.1, 0, 0.1]


def test_nothing_is_said_over_a_floor_of_nothing():
    (row,) = with_excess(peaks(16, bound=0))
    assert (row.excess, row.against) == (None, "")


def test_a_bound_that_a_plan_refutes_is_wrong():
    rows = with_excess([*peaks(120, bound=100), *peaks(150, bound=150)])
    assert [r.status for r in rows] == [RowStatus.FEASIBLE, RowStatus.WRONG]
    assert "claims a bound of 150, but p0 has a verified plan with peak 120" in rows[1].error
    assert known_of(rows) == Known(120, 100)


def test_what_failed_has_no_excess_and_changes_none():
    rows = with_excess([*peaks(100, 150), FAILED])
    assert rows[:2] == with_excess(peaks(100, 150))
    assert (rows[2].excess, rows[2].against) == (None, "")
    assert known_of([FAILED]) == Known(None, None)
    assert known_of([FAILED]).status is None


def test_a_worse_planner_changes_no_record():
    rows = with_excess(peaks(100, 150))
    more = with_excess([*peaks(100, 150), replace(peaks(400)[0], planner="bad")])
    for planner in ("p0", "p1"):
        mine = [[r for r in some if r.planner == planner] for some in (rows, more)]
        assert record_of(planner, mine[0], rows) == record_of(planner, mine[1], more)


def test_the_record_of_a_planner():
    rows = [*with_excess(peaks(100, 121)), replace(FAILED, planner="p1", problem="q")]
    record = record_of("p1", [r for r in rows if r.planner == "p1"], rows)
    assert (record.problems, record.solved, record.proven, record.best) == (2, 1, 0, 0)
    assert record.failures == {"overrun": 1}
    assert (record.worst_excess, record.worst_problem) == (pytest.approx(0.21), "p")


def test_geometric_mean():
    assert geometric_mean([]) is None
    assert geometric_mean([0.5, 0.5]) == pytest.approx(0.5)
    assert geometric_mean([1.0, -0.5]) == pytest.approx(0.0)
