"""Laws of banks: the best assignment of tiny problems, what must not change it, and what must make it better."""

import itertools
import math
import random
import time
from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from solvers.banks.bank import Bank, check_banks
from solvers.banks.checks import verify_banks
from solvers.banks.solve import SEARCHES, solve_banks
from solvers.problem.buffers import Buffer, Colocation, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution, Status
from solvers.run import Options
from solvers.search import solve
from solvers.verifier import VerificationError
from tests.problems import (
    brute_force,
    buffers,
    choices,
    optional_problems,
    tied_problems,
    tiling,
)

SHORT = Options(time_limit=10, workers=1)


def named(*sizes, alignments=()):
    aligned = [*alignments, *[None] * len(sizes)]
    return [Bank(f"bank{k}", size, k + 1, a) for k, (size, a) in enumerate(zip(sizes, aligned, strict=False))]


def best_weights(problem, banks, pins=None, weights=None):
    """By trying every assignment, and every place in every bank; None if there is none."""
    pins, weights = pins or {}, weights or {b.id: b.size for b in problem.buffers}
    best = None
    for choice in itertools.product(range(len(banks)), repeat=len(problem.buffers)):
        where = {b.id: k for b, k in zip(problem.buffers, choice, strict=True)}
        if any(where[c.part] != where[c.whole] for c in problem.colocations):
            continue
        if any(where[i] != k for i, k in pins.items()):
            continue
        found = tuple(sum(weights[i] for i, k in where.items() if k == n) for n in range(len(banks)))
        if (best is None or found > best) and all(fits(problem, where, n, bank) for n, bank in enumerate(banks)):
            best = found
    return best


def fits(problem, where, n, bank):
    here = [b for b in problem.buffers if where[b.id] == n]
    ties = [c for c in problem.colocations if where[c.part] == n]
    try:
        part = [replace(b, alignment=math.lcm(b.alignment, bank.alignment or 1)) for b in here]
        return not here or brute_force(Problem(part, ties, bank.size)) is not None
    except ProblemError:  # an alignment or a pinned offset that contradicts the bank's
        return False


def judged(problem, result):
    """The result, once more by the judge."""
    if result.solution is not None:
        peaks = verify_banks(problem, result.banks, result.bank_of, result.solution)
        assert peaks == tuple(r.peak for r in result.results)
        assert sum(result.weights) >= 0
        assert result.weights <= result.bounds
    return result


@settings(max_examples=120)
@given(problem=st.one_of(tied_problems(most=5), buffers(most=5).map(Problem)), data=st.data())
def test_tiny_problems_reach_the_brute_force_optimum(problem, data):
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    banks = named(*sizes, alignments=[data.draw(st.sampled_from([None, None, 2]))])
    uses = {b.id: data.draw(st.integers(0, 3)) * b.size for b in problem.buffers}
    pins = {
        b.id: data.draw(st.integers(0, len(banks) - 1)) for b in problem.buffers if not data.draw(st.integers(0, 5))
    }
    wanted = best_weights(problem, banks, pins, uses)
    try:
        result = judged(problem, solve_banks(problem, banks, pins, uses, options=SHORT))
    except ProblemError:  # tied buffers pinned apart, or aligned as no bank allows
        assert wanted is None
        return
    if wanted is None:
        assert result.status is Status.INFEASIBLE
        assert result.excess.excess > 0
    else:
        assert (result.status, result.weights, result.bounds) == (Status.OPTIMAL, wanted, wanted)


TIE_THAT_COSTS = Problem(
    [Buffer("b0", 3, 0, 1), Buffer("b2", 5, 0, 1), Buffer("b3", 1, 0, 1, alignment=2)],
    [Colocation("b0", "b2", 0, required=False), Colocation("b3", "b0", 1, required=False)],
)
"""With both ties the large ones must be at odd places, and do not fit."""


@settings(max_examples=60)
@example(problem=TIE_THAT_COSTS, sizes=[1, 5])
@given(problem=optional_problems(most=4, ties=3), sizes=st.lists(st.integers(0, 8), min_size=2, max_size=2))
def test_what_is_proven_holds_for_every_choice_of_ties(problem, sizes):
    banks = named(*sizes)
    result = judged(problem, solve_banks(problem, banks, options=SHORT))
    every = [w for choice in choices(problem) if (w := best_weights(choice, banks)) is not None]
    if every:
        assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
        assert result.weights <= max(every) <= result.bounds
        assert result.status is not Status.OPTIMAL or result.weights == max(every)
    else:
        assert result.solution is None


@settings(max_examples=30)
@given(some=buffers(most=6), size=st.integers(0, 12), more=st.integers(1, 4))
def test_more_capacity_never_means_less_in_the_first_bank(some, size, more):
    problem = Problem(some)
    small, large = (solve_banks(problem, named(n, 60), options=SHORT) for n in (size, size + more))
    assert small.weights[0] <= large.weights[0]
    assert small.status is large.status is Status.OPTIMAL


@settings(max_examples=30)
@given(problem=tied_problems(most=6))
def test_one_bank_with_room_has_the_plain_peak(problem):
    plain = solve(problem, "auto", SHORT)
    for banks in (named(plain.peak), named(plain.peak + 5, 3)):
        result = judged(problem, solve_banks(problem, banks, options=SHORT))
        assert (result.status, result.results[0].peak) == (Status.OPTIMAL, plain.peak)
        assert set(result.bank_of.values()) == {0}


@settings(max_examples=30)
@given(problem=tied_problems(most=6), sizes=st.tuples(st.integers(0, 9), st.integers(5, 20)), data=st.data())
def test_order_and_names_do_not_matter(problem, sizes, data):
    new = {b.id: f"x{k}" for k, b in enumerate(data.draw(st.permutations(problem.buffers)))}
    shuffled = data.draw(st.permutations([replace(b, id=new[b.id]) for b in problem.buffers]))
    ties = [replace(c, part=new[c.part], whole=new[c.whole]) for c in problem.colocations]
    one, other = (solve_banks(p, named(*sizes), options=SHORT) for p in (problem, Problem(shuffled, ties)))
    assert (one.status, one.weights, one.bounds) == (other.status, other.weights, other.bounds)


@settings(max_examples=40)
@given(some=buffers(most=6), sizes=st.lists(st.integers(0, 6), min_size=1, max_size=2))
def test_what_is_missing_is_no_more_than_needed(some, sizes):
    """The banks that are blamed are not enough with one byte less than what is said to be required."""
    banks = named(*sizes)
    result = solve_banks(Problem(some), banks, options=SHORT)
    assume(result.status is Status.INFEASIBLE and result.excess.proven and len(result.excess.banks) == 1)
    larger = [replace(b, size=result.excess.required - 1) if b.name in result.excess.banks else b for b in banks]
    assert solve_banks(Problem(some), larger, options=SHORT).status is Status.INFEASIBLE
    known = {b.id: b for b in some}
    parts = result.excess.parts
    assert sorted(parts, key=lambda p: -p[1]) == list(parts)
    step = result.excess.step
    assert all(known[i].size == size and (step is None or known[i].start <= step < known[i].end) for i, size in parts)


PINNED = Problem([Buffer("a", 1, 0, 9, offset=3), Buffer("b", 4, 0, 9)])
"""Bank for 5 bytes by their load; but one byte is pinned so that they need 8."""


def test_where_loads_allow_what_places_do_not():
    result = judged(PINNED, solve_banks(PINNED, named(7, 4), options=SHORT))
    assert (result.status, result.weights, result.bank_of) == (Status.OPTIMAL, (4, 1), {"b": 0, "a": 1})
    assert solve_banks(PINNED, named(7, 3), options=SHORT).status is Status.INFEASIBLE
    assert solve_banks(PINNED, named(8, 3), options=SHORT).weights == (5, 0)
    assert solve_banks(PINNED, named(7), options=SHORT).status is Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(4))
def test_a_tiling_with_half_its_height_fills_it(seed):
    """Many buffers: every byte of the first bank can be full, and all of the rest is in the second."""
    problem = tiling(seed, 60)
    result = judged(problem, solve_banks(problem, named(32, 64), options=SHORT))
    assert result.best_assignment
    assert result.weights[0] == result.bounds[0] > 0
    greedy = judged(problem, solve_banks(problem, named(32, 64), solver="greedy", options=SHORT))
    assert greedy.weights <= result.weights


@pytest.mark.parametrize("solver", list(SEARCHES))
def test_every_solver_gives_a_verified_plan(solver):
    problem = tiling(5, 40)
    result = judged(problem, solve_banks(problem, named(30, 64), solver=solver, options=SHORT))
    assert result.solution is not None
    assert set(result.bank_of) == set(result.solution.offsets) == {b.id for b in problem.buffers}


def test_the_deadline_is_kept():
    draw = random.Random(1)
    spans = [(s := draw.randrange(3000), s + draw.randint(1, 60)) for _ in range(3000)]
    problem = Problem([Buffer(f"b{k}", draw.randint(1, 9999), *x) for k, x in enumerate(spans)])
    peak = solve(problem, "greedy").peak
    started = time.monotonic()
    result = judged(problem, solve_banks(problem, named(peak // 2, peak), options=Options(time_limit=1)))
    assert time.monotonic() - started < 4
    assert result.solution is not None


def test_a_stop_ends_it_with_a_plan():
    import threading

    stop = threading.Event()
    stop.set()
    problem = tiling(1, 100)
    result = judged(problem, solve_banks(problem, named(32, 99), options=Options(60, stop=stop)))
    assert result.struck
    assert result.solution is not None


def test_reproducible_plans_do_not_depend_on_workers():
    problem = tiling(3, 80)
    one, other = (
        solve_banks(problem, named(30, 70), options=Options(60, workers=w, reproducible=True)) for w in (1, 2)
    )
    assert (one.bank_of, one.solution) == (other.bank_of, other.solution)


def test_uses_decide_who_is_in_the_fast_bank():
    problem = Problem([Buffer("large", 8, 0, 4), Buffer("small", 6, 0, 4)])
    assert solve_banks(problem, named(8, 20), options=SHORT).bank_of["large"] == 0
    busy = solve_banks(problem, named(8, 20), weights={"small": 60}, options=SHORT)
    assert busy.bank_of == {"large": 1, "small": 0}
    assert busy.weights == (60, 8)


def test_ties_that_do_not_fit_the_fast_bank_are_given_up_for_more_in_it():
    """A concat of 8 is too large for a bank of 4; one of its parts of 4 is not. The tie of another concat stays."""
    some = [Buffer("a", 4, 0, 3), Buffer("b", 4, 1, 3), Buffer("ab", 8, 2, 4)]
    some += [Buffer("c", 2, 5, 7), Buffer("d", 2, 5, 7), Buffer("cd", 4, 6, 8)]
    ties = [("a", "ab", 0), ("b", "ab", 4), ("c", "cd", 0), ("d", "cd", 2)]
    problem = Problem(some, [Colocation(*t, required=False) for t in ties])
    result = judged(problem, solve_banks(problem, named(4, 16), options=SHORT))
    assert result.weights[0] == 4 + 2 + 2 + 4
    assert {2, 3} <= set(result.solution.active)
    roomy = judged(problem, solve_banks(problem, named(8, 16), options=SHORT))
    assert (roomy.status, roomy.solution.active) == (Status.OPTIMAL, (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bank_of": {"a": 0, "b": 2}}, "has bank 2: the plan has 2 banks"),
        ({"bank_of": {"a": 0}}, "'b' has bank None"),
        ({"bank_of": {"a": 1, "b": 1}}, "bank 'bank1': buffer 'a' ends at 4: beyond the capacity, 2"),
        ({"bank_of": {"a": 0, "b": 0}}, "are in different banks"),
        ({"offsets": {"a": 0, "b": 1, "c": 4}}, "bank 'bank1': buffer 'b' is at 1: not a multiple of its alignment, 2"),
        ({"offsets": {"a": 0, "b": 0, "c": 4, "d": 0}}, "'d', which is no buffer"),
        ({"offsets": {"a": 0, "b": 0, "c": 5}}, "'c' is at 5: it is pinned at 4"),
        ({"active": ()}, "required but not active"),
        ({"active": (0, 7)}, "active colocation 7 does not exist"),
    ],
)
def test_the_judge_names_what_is_wrong(change, complaint):
    some = [Buffer("a", 4, 0, 2), Buffer("b", 2, 0, 2), Buffer("c", 1, 0, 2, offset=4), Buffer("in b", 1, 1, 2)]
    problem = Problem(some, [Colocation("in b", "b", 0)])
    banks = named(8, 2, alignments=(None, 2))
    good = {"bank_of": {"a": 0, "b": 1}, "offsets": {"a": 0, "b": 0, "c": 4}, "active": (0,)}

    def judge(bank_of, offsets, active):
        solution = Solution({"in b": offsets["b"], **offsets}, active)
        return verify_banks(problem, banks, {"c": 0, "in b": 1, **bank_of}, solution)

    assert judge(**good) == (5, 2)
    with pytest.raises(VerificationError, match=complaint):
        judge(**{**good, **change})


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (("", 1, 1), "bank name is ''"),
        (("a", -1, 1), "size is -1"),
        (("a", 1, 0), "mem_id is 0"),
        (("a", 1.5, 1), r"size is 1\.5: it must be an integer"),
        (("a", 1, 1, 0), "alignment is 0"),
    ],
)
def test_banks_are_checked(values, complaint):
    with pytest.raises(ProblemError, match=complaint):
        Bank(*values)


@pytest.mark.parametrize("banks", [[], [Bank("a", 1, 1), Bank("a", 1, 2)], [Bank("a", 1, 1), Bank("b", 1, 1)]])
def test_lists_of_banks_are_checked(banks):
    with pytest.raises(ProblemError, match=r"at least one|must differ"):
        check_banks(banks)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"solver": "best"}, "solver is 'best'"),
        ({"pins": {"a": 2}}, "pinned to bank 2: there are 2"),
        ({"pins": {"z": 0}}, "'z' is pinned to a bank, but no buffer"),
        ({"weights": {"a": -1}}, "weight of buffer 'a' is -1"),
        ({"problem": Problem([Buffer("a", 1, 0, 1)], capacity=3)}, "has a capacity, 3"),
        (
            {"problem": Problem([Buffer("a", 1, 0, 1, offset=3)]), "banks": named(8, alignments=[2])},
            "can be in no bank",
        ),
    ],
)
def test_bad_requests_are_refused(arguments, complaint):
    given_ = {"problem": Problem([Buffer("a", 1, 0, 1)]), "banks": named(1, 2), **arguments}
    with pytest.raises(ValueError, match=complaint):
        solve_banks(**given_)
