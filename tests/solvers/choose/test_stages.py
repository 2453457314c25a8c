"""Optional colocations: the choice is the best of all, whatever "best" was asked for."""

import dataclasses
import itertools
import time

import pytest
from hypothesis import given, settings

from solvers.choose.contradictions import contradictions
from solvers.choose.load_model import Aim, Choices, choose, copied
from solvers.deadline import Deadline
from solvers.place.cp_run import CpRun
from solvers.problem.buffers import Buffer, Colocation, Kind, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution, Status
from solvers.run import Objective, Options
from solvers.search import solve
from solvers.verifier import verify
from tests.problems import brute_force, choices, optional_problems

SHORT = Options(time_limit=10, workers=2)


def saved(problem: Problem, active) -> int:
    """Bytes of copying that the active colocations avoid."""
    some = [problem.colocations[k] for k in active]
    return sum(problem.by_id[c.part].size if c.saves is None else c.saves for c in some)


def every_choice(problem: Problem) -> list[tuple[int, int]]:
    """Smallest peak and bytes copied of every choice, by brute force."""
    total = saved(problem, range(len(problem.colocations)))
    return [
        (peak, total - saved(some, range(len(some.colocations))))
        for some in choices(problem)
        if (peak := brute_force(some)) is not None
    ]


def reached(problem: Problem, result) -> tuple[int, int]:
    assert verify(problem, result.solution) == result.peak
    return result.peak, saved(problem, range(len(problem.colocations))) - saved(problem, result.solution.active)


@settings(max_examples=80)
@given(problem=optional_problems())
def test_the_choice_is_the_best_of_all(problem):
    """By peak, then copies; by copies, then peak; by a weighted sum."""
    every = every_choice(problem)
    for solver in ("auto", "cp-sat"):
        result = solve(problem, solver, SHORT)
        assert reached(problem, result) == min(every)
        assert (result.status, result.copies_optimal, result.lower_bound) == (Status.OPTIMAL, True, result.peak)
    result = solve(problem, "auto", dataclasses.replace(SHORT, objective=Objective.COPIES))
    assert reached(problem, result) == min(every, key=lambda x: x[::-1])
    assert (result.status, result.copies_optimal) == (Status.OPTIMAL, True)
    assert result.lower_bound <= min(every)[0]
    result = solve(problem, "auto", dataclasses.replace(SHORT, objective=Objective.WEIGHTED, copy_weight=0.5))
    peak, copying = reached(problem, result)
    assert peak + 0.5 * copying == min(a + 0.5 * b for a, b in every)
    assert result.status is Status.OPTIMAL
    assert result.lower_bound <= min(every)[0]


@settings(max_examples=20)
@given(problem=optional_problems())
def test_a_capacity_holds_for_every_objective(problem):
    every = every_choice(problem)
    capacity = min(every)[0]
    tight = Problem(problem.buffers, problem.colocations, capacity)
    for objective in Objective:
        options = dataclasses.replace(SHORT, objective=objective)
        assert reached(tight, solve(tight, "auto", options)) == min(every)
        if capacity:
            below = Problem(problem.buffers, problem.colocations, capacity - 1)
            assert solve(below, "auto", options).solution is None
    if capacity:
        assert solve(below, "auto", SHORT).status is Status.INFEASIBLE


@settings(max_examples=60)
@given(problem=optional_problems(most=8, ties=7))
def test_greedy_is_legal_repeatable_and_no_worse_than_without(problem):
    result = solve(problem, "greedy")
    assert result.lower_bound <= result.peak
    assert reached(problem, solve(problem, "greedy", Options(time_limit=0))) == reached(problem, result)
    assert solve(problem, "greedy").solution == result.solution
    needed = [problem.colocations[k] for k in problem.required]
    assert result.peak <= solve(Problem(problem.buffers, needed), "greedy").peak
    for solver in ("auto", "cp-sat"):
        assert solve(problem, solver, Options(time_limit=0)).peak <= result.peak


@settings(max_examples=60)
@given(problem=optional_problems(most=6, ties=6))
def test_clauses_spare_every_legal_choice(problem):
    """What is known at once, and what is learnt from contradictions."""
    known = Choices(problem)
    optional = [k for k, c in enumerate(problem.colocations) if not c.required]
    everything = {*problem.required, *optional}
    known.found += contradictions(known, sorted(everything - known.atoms.impossible), Deadline(60))
    for some in itertools.product((True, False), repeat=len(optional)):
        on = {*problem.required, *itertools.compress(optional, some)}
        try:
            problem.groups(sorted(on))
        except ProblemError:
            continue
        assert not on & known.atoms.impossible
        for c in [*known.known, *known.found]:
            assert not set(c.off) <= on or set(c.unless) & on
        for few in known.exclusive:
            assert sum(bool(set(ties) & on) for ties in few) <= 1


@settings(max_examples=40)
@given(problem=optional_problems())
def test_the_choice_model_is_a_relaxation(problem):
    every = every_choice(problem)
    known = Choices(problem)
    for aim in (Aim(1, 0, 99, 99), Aim(0, 1, 99, 99), Aim(2, 1, 99, 99)):
        found = choose(known, aim, known.steps.floor, CpRun(Deadline(5), 2, 0), Deadline(5))
        assert all(found.bound <= aim.score(*x) for x in every)
        assert all(known.steps.floor <= peak for peak, _ in every)


def toy(name: str) -> Problem:
    """Nets whose concats are all optional: dense blocks, branches side by side, skips from down to up."""
    some, ties = [Buffer("x", 64, 0, 2, 16)], []
    if name == "densenet":
        for k in range(1, 12):
            some.append(Buffer(f"new{k}", 16, 3 * k, 40, 16))
            some.append(Buffer(f"cat{k}", 64 + 16 * k, 3 * k + 1, 3 * k + 3, 16))
            ties += [Colocation(f"new{j}", f"cat{k}", 48 + 16 * j, required=False) for j in range(1, k + 1)]
        some[0] = Buffer("x", 64, 0, 40, 16)
        ties += [Colocation("x", f"cat{k}", 0, required=False) for k in range(1, 12)]
    elif name == "inception":
        for k in range(4):
            t, source = 10 * k, f"cat{k - 1}" if k else "x"
            at = 0
            for j, size in enumerate((16, 32, 48, 32)):
                some += [Buffer(f"mid{k}{j}", 48, t + 2 * j + 1, t + 2 * j + 3, 16)]
                some += [Buffer(f"out{k}{j}", size, t + 2 * j + 2, t + 11, 16)]
                ties.append(Colocation(f"out{k}{j}", f"cat{k}", at, required=False))
                at += size
            some.append(Buffer(f"cat{k}", at, t + 10, t + 20, 16))
            some = [dataclasses.replace(b, end=t + 8) if b.id == source else b for b in some]
    else:
        for k in range(4):
            some.append(Buffer(f"down{k}", 128 >> k, 2 * k + 2, 20 - 2 * k, 16))
            some.append(Buffer(f"up{k}", 128 >> k, 18 - 2 * k, 20 - 2 * k, 16))
            some.append(Buffer(f"cat{k}", 256 >> k, 19 - 2 * k, 21 - 2 * k, 16))
            ties += [Colocation(f"down{k}", f"cat{k}", 128 >> k, required=False)]
            ties += [Colocation(f"up{k}", f"cat{k}", 0, required=False)]
    return Problem(some, ties)


@pytest.mark.parametrize("name", ["densenet", "inception", "unet"])
def test_toy_nets_are_proven(name):
    problem = toy(name)
    result = solve(problem, "auto", SHORT)
    assert (result.status, result.copies_optimal) == (Status.OPTIMAL, True)
    for some in (problem.colocations, ()):
        forced = Problem(problem.buffers, [dataclasses.replace(c, required=True) for c in some])
        assert result.peak <= solve(forced, "auto", SHORT).peak


def test_optional_colocations_are_taken_where_they_help_and_left_where_they_hurt():
    parts = [Buffer("p", 8, 0, 3), Buffer("q", 8, 1, 3), Buffer("w", 16, 2, 4)]
    ties = [Colocation("p", "w", 0, required=False), Colocation("q", "w", 8, required=False)]
    result = solve(Problem(parts, ties))
    assert (result.peak, result.solution.active, result.copies_optimal) == (16, (0, 1), True)
    base = [Buffer("x", 8, 0, 2), Buffer("s", 1, 1, 9), *(Buffer(f"f{k}", 10, 2 + k, 3 + k) for k in range(6))]
    best = solve(Problem(base)).peak
    assert solve(Problem(base, [Colocation("s", "x", 4, required=False)])).peak <= best


def test_a_choice_that_cannot_be_proves_nothing_for_the_others():
    """Pins collide in one choice of optional colocations: others are still possible, or at least not excluded."""
    some = [Buffer("X", 4, 2, 4, 1, 0), Buffer("A", 4, 0, 2, 1, 0), Buffer("W", 4, 2, 4), Buffer("V", 4, 10, 14)]
    some += [Buffer("Q", 1, 10, 14, 16), Buffer("P", 8, 20, 22), Buffer("C", 8, 21, 23)]
    ties = [("A", "W", 0), ("Q", "V", 1), ("P", "C", 0)]
    optional = [Colocation(*t, required=False) for t in ties]
    result = solve(Problem(some, optional))
    assert result.lower_bound <= 8
    assert solve(Problem(some, optional, 9)).status is not Status.INFEASIBLE
    some = [Buffer("A", 4, 0, 2, 1, 0), Buffer("W", 4, 1, 3, 1, 0), Buffer("D", 4, 0, 2)]
    optional = [Colocation("D", "W", 0, required=False, saves=100), Colocation("A", "W", 0, required=False, saves=1)]
    assert solve(Problem(some, optional)).status is not Status.INFEASIBLE


def test_many_optional_colocations_keep_the_limit():
    some, ties = [], []
    for k in range(400):
        some += [Buffer(f"p{k}", 8, k, k + 3), Buffer(f"q{k}", 8, k, k + 3), Buffer(f"w{k}", 16, k + 2, k + 5)]
        ties += [Colocation(f"{i}{k}", f"w{k}", at, required=False) for i, at in (("p", 0), ("q", 8))]
    started = time.monotonic()
    result = solve(Problem(some, ties), "auto", Options(time_limit=1))
    assert result.solution.active == tuple(range(800))
    assert time.monotonic() - started < 10


def test_a_handoff_and_another_who_shows_the_bytes_do_not_go_together():
    some = [Buffer("a", 8, 0, 3), Buffer("b", 8, 2, 5), Buffer("s", 2, 1, 5)]
    ties = [Colocation("b", "a", 0, Kind.HANDOFF, False), Colocation("s", "a", 0, required=False)]
    result = solve(Problem(some, ties))
    assert (result.peak, result.solution.active, result.status) == (10, (0,), Status.OPTIMAL)


def test_in_place_all_along_a_chain():
    some = [Buffer(f"b{k}", 8, k, k + 2) for k in range(20)]
    ties = [Colocation(f"b{k + 1}", f"b{k}", 0, Kind.HANDOFF, False) for k in range(19)]
    result = solve(Problem(some, ties))
    assert (result.peak, result.solution.active, result.status) == (8, tuple(range(19)), Status.OPTIMAL)


def test_two_places_for_one_part():
    """A part cannot be in two concats at once unless one of them holds the other."""
    some = [Buffer("p", 8, 0, 3), *(Buffer(i, 4, 0, 3) for i in "qr"), *(Buffer(i, 12, 2, 5) for i in "vw")]
    ties = [Colocation(*t, required=False) for t in (("p", "v", 0), ("q", "v", 8), ("p", "w", 0), ("r", "w", 8))]
    result = solve(Problem(some, ties))
    assert (result.status, result.copies_optimal) == (Status.OPTIMAL, True)
    assert result.peak == min(solve(forced).peak for forced in choices(Problem(some, ties)))


def test_ties_that_form_a_circle_are_decided_exactly():
    """p is in v, v in w, p in w: three ties, one place."""
    some = [Buffer("p", 4, 0, 6), Buffer("v", 8, 2, 6), Buffer("w", 12, 4, 6), Buffer("z", 5, 5, 6)]
    ties = [Colocation(*t, required=False) for t in (("p", "v", 4), ("v", "w", 0), ("p", "w", 4))]
    result = solve(Problem(some, ties))
    assert (result.peak, len(result.solution.active), result.status) == (17, 3, Status.OPTIMAL)
    shifted = [*ties[:2], dataclasses.replace(ties[2], at=0)]
    result = solve(Problem(some, shifted))
    assert (result.peak, copied(Problem(some, shifted), result.solution.active)) == (17, 4)
    assert result.status is Status.OPTIMAL


def test_a_part_that_would_cut_its_whole_into_too_many_atoms():
    """At 0 or at 1 of its whole: carried on, the borders would cut both into single bytes."""
    size = 50_000
    some = [Buffer("p", size, 0, 3), Buffer("w", size + 1, 2, 5), Buffer("z", 7, 2, 3)]
    ties = [Colocation("p", "w", at, required=False) for at in (0, 1)]
    assert not Choices(Problem(some, ties)).atoms.complete
    result = solve(Problem(some, ties))
    assert (result.peak, len(result.solution.active)) == (size + 8, 1)
    assert result.lower_bound <= result.peak


def test_sizes_too_large_for_a_model():
    some = [Buffer("p", 2**58, 0, 3), Buffer("q", 2**58 + 5, 1, 4), Buffer("w", 2**59 + 5, 2, 5, 4)]
    ties = [Colocation("p", "w", 0, required=False), Colocation("q", "w", 2**58, required=False)]
    result = solve(Problem(some, ties))
    assert (result.peak, result.solution.active, result.status) == (2**59 + 5, (0, 1), Status.OPTIMAL)
    for objective in Objective:
        other = solve(
            Problem(some, [*ties, Colocation("q", "w", 0, required=False)]), "auto", Options(2, objective=objective)
        )
        assert other.peak == 2**59 + 5


def test_pins_that_collide_in_every_choice_are_infeasible():
    some = [Buffer("a", 8, 0, 3, 1, 0), Buffer("b", 8, 1, 3, 1, 4), Buffer("c", 4, 0, 3)]
    assert solve(Problem(some, [Colocation("c", "a", 0, required=False)])).status is Status.INFEASIBLE


def test_sharing_by_hand_is_refused_without_the_tie():
    some = [Buffer("a", 8, 0, 3), Buffer("b", 8, 2, 5)]
    problem = Problem(some, [Colocation("b", "a", 0, Kind.HANDOFF, False)])
    assert verify(problem, Solution({"a": 0, "b": 0}, (0,))) == 8
    assert solve(problem, "greedy").peak == 8


@pytest.mark.parametrize("weight", [-1.0, float("inf"), float("nan")])
def test_a_bad_weight_is_refused(weight):
    with pytest.raises(ValueError, match="copy_weight is"):
        Options(copy_weight=weight)
