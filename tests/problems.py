"""Random problems, problems with a known optimum, and oracles that share no code with the project."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st

from solvers.problem.buffers import Buffer, Colocation, Kind, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution

Tokens = list[tuple[str, int]]


@st.composite
def buffers(
    draw: st.DrawFn, most: int = 5, alignments: tuple[int, ...] = (1, 1, 1, 2, 3, 4), size: int = 5
) -> list[Buffer]:
    """A few small buffers with short lifetimes."""
    out = []
    for k in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, 5))
        end = start + draw(st.integers(1, 4))
        out.append(Buffer(f"b{k}", draw(st.integers(0, size)), start, end, draw(st.sampled_from(alignments))))
    return out


@st.composite
def tied_problems(draw: st.DrawFn, most: int = 5) -> Problem:
    """A problem with concats and slices, some nested, whose colocations do not contradict each other."""
    made = draw(buffers(most=2, alignments=(1, 1, 2)))
    ties: list[Colocation] = []
    while len(made) < most:
        k, slice_of = len(made), [b for b in made if b.size > 1]
        if slice_of and draw(st.booleans()):
            whole = draw(st.sampled_from(slice_of))
            start = draw(st.integers(whole.start, whole.end))
            size = draw(st.integers(1, whole.size))
            part = Buffer(f"b{k}", size, start, start + draw(st.integers(1, 3)))
            ties.append(Colocation(part.id, whole.id, draw(st.integers(0, whole.size - size))))
            made.append(part)
        else:
            parts = draw(st.lists(st.sampled_from(made), min_size=1, max_size=2, unique=True))
            first = max(p.start for p in parts)
            start = draw(st.integers(first, max(first, min(p.end for p in parts)) + 1))
            gap = draw(st.integers(0, 1))
            whole = Buffer(f"b{k}", sum(p.size for p in parts) + gap, start, start + draw(st.integers(1, 3)))
            at = 0
            for p in parts:
                ties.append(Colocation(p.id, whole.id, at))
                at += p.size
            made.append(whole)
    kept: list[Colocation] = []  # the others contradict these, or their lifetimes are apart
    for c in ties:
        try:
            Problem(made, [*kept, c])
        except ProblemError:
            continue
        kept.append(c)
    return Problem(made, kept)


@st.composite
def optional_problems(draw: st.DrawFn, most: int = 4, ties: int = 4) -> Problem:
    """Buffers with concats, slices and hand-offs among them that may contradict each other, most of them optional."""
    made = draw(buffers(most=2, alignments=(1, 1, 1, 2), size=3))
    wanted: list[tuple[str, str, int, Kind]] = []
    while len(made) < most:
        name, other, life = f"b{len(made)}", draw(st.sampled_from(made)), draw(st.integers(1, 3))
        how = draw(st.sampled_from(["loose", "part", "whole", "heir"]))
        size, kind = draw(st.integers(0, 3)), Kind.SAME
        start = draw(st.integers(other.start, other.end))
        if how == "whole":
            size = other.size + draw(st.integers(0, 2))
            wanted.append((other.id, name, draw(st.integers(0, size - other.size)), kind))
        elif how != "loose":
            size = min(size, other.size)
            if how == "heir" and other.duration > 1:
                start, kind = other.end - 1, Kind.HANDOFF
            wanted.append((name, other.id, draw(st.integers(0, other.size - size)), kind))
        made.append(Buffer(name, size, start, start + life, draw(st.sampled_from([1, 1, 1, 2]))))
    for part, whole in draw(st.permutations(list(itertools.permutations(made, 2)))):
        if part.size <= whole.size and len(wanted) < ties:
            kind = draw(st.sampled_from(Kind))
            wanted.append((part.id, whole.id, draw(st.integers(0, whole.size - part.size)), kind))
    kept: list[Colocation] = []
    for tie in wanted:
        for required in (draw(st.integers(0, 7)) == 0, False):  # a required one may not fit those before
            c = Colocation(*tie, required, draw(st.sampled_from([None, None, 0, 1, 7])))
            try:
                Problem(made, [*kept, c])
            except ProblemError:
                continue
            kept.append(c)
            break
    return Problem(made, kept)


def choices(problem: Problem) -> Iterator[Problem]:
    """The problem once for every set of optional colocations that does not contradict itself, these made required."""
    optional = [k for k, c in enumerate(problem.colocations) if not c.required]
    for some in itertools.product((True, False), repeat=len(optional)):
        on = {*problem.required, *(k for k, x in zip(optional, some, strict=True) if x)}
        try:
            ties = [replace(c, required=True) for k, c in enumerate(problem.colocations) if k in on]
            yield Problem(problem.buffers, ties, problem.capacity)
        except ProblemError:
            continue


def tiling(seed: int, cuts: int, height: int = 64, width: int = 40) -> Problem:
    """Cut a full rectangle of ``height`` bytes times ``width`` steps: the optimum is ``height``, by the load."""
    rng = random.Random(seed)
    tiles = [(0, height, 0, width)]
    for _ in range(cuts):
        low, high, start, end = tiles.pop(rng.randrange(len(tiles)))
        if rng.random() < 0.5 and high - low > 1:
            at = rng.randrange(low + 1, high)
            tiles += [(low, at, start, end), (at, high, start, end)]
        elif end - start > 1:
            at = rng.randrange(start + 1, end)
            tiles += [(low, high, start, at), (low, high, at, end)]
        else:
            tiles.append((low, high, start, end))
    rng.shuffle(tiles)
    return Problem([Buffer(f"t{k}", h - lo, s, e) for k, (lo, h, s, e) in enumerate(tiles)])


def paint(problem: Problem, solution: Solution) -> bool:
    """Is the plan right? Run it byte by byte: every buffer writes its own bytes when it is born, shows those of its
    ties, and must find all of them unharmed in every step of its life; but what a successor wrote in the last step of
    its predecessor does not harm that one."""
    order = _birth_order(problem, solution)
    active = [problem.colocations[k] for k in solution.active]
    handoffs = {(c.part, c.whole) for c in active if c.kind is Kind.HANDOFF}
    holds: dict[str, Tokens] = {}
    memory: dict[int, tuple[str, int]] = {}
    for step in sorted({t for b in problem.buffers for t in range(b.start, b.end)}):
        for b, sources in order:
            if b.start != step:
                continue
            tokens: Tokens = [(b.id, k) for k in range(b.size)]
            for source in sources:
                at = solution.offsets[source] - solution.offsets[b.id]
                for k, token in enumerate(holds[source]):
                    if 0 <= at + k < b.size:
                        if tokens[at + k][0] not in (b.id, token[0]):
                            return False
                        tokens[at + k] = token
            holds[b.id] = tokens
            for k, token in enumerate(tokens):
                if token[0] == b.id:
                    memory[solution.offsets[b.id] + k] = token
        for b in problem.buffers:
            if b.start <= step < b.end:
                at = solution.offsets[b.id]
                heirs = {i for i, whole in handoffs if whole == b.id and problem.by_id[i].start == step}
                for k, token in enumerate(holds[b.id]):
                    if (found := memory.get(at + k)) != token and (found is None or found[0] not in heirs):
                        return False
    return True


def _birth_order(problem: Problem, solution: Solution) -> list[tuple[Buffer, list[str]]]:
    """Buffers by birth, sources before those that show them."""
    sources: dict[str, list[str]] = {b.id: [] for b in problem.buffers}
    for k in solution.active:
        c = problem.colocations[k]
        part, whole = problem.by_id[c.part], problem.by_id[c.whole]
        if c.kind is Kind.HANDOFF:
            continue
        if whole.start < part.start:
            sources[part.id].append(whole.id)
        else:
            sources[whole.id].append(part.id)
    out: list[tuple[Buffer, list[str]]] = []
    todo = sorted(problem.buffers, key=lambda b: b.start)
    done: set[str] = set()
    while todo:
        b = next(b for b in todo if set(sources[b.id]) <= done)
        todo.remove(b)
        done.add(b.id)
        out.append((b, sources[b.id]))
    return out


def brute_force(problem: Problem) -> int | None:
    """The smallest peak within the capacity, by trying every offset of every loose buffer; None if there is none."""
    most = sum(b.size + b.alignment for b in problem.buffers) + max((b.offset or 0) for b in problem.buffers)
    if problem.capacity is not None:
        most = min(most, problem.capacity)
    for peak in range(max(b.size for b in problem.buffers), most + 1):
        if _fits(problem, peak):
            return peak
    return None


def _fits(problem: Problem, peak: int) -> bool:
    fixed: dict[str, tuple[str, int]] = {}  # id -> (leader, offset from it), through the colocations
    for b in problem.buffers:
        fixed[b.id] = (b.id, 0)
    for _ in problem.buffers:
        for k in problem.required:
            c = problem.colocations[k]
            (a, x), (p, y) = fixed[c.whole], fixed[c.part]
            if a != p:
                for i, (leader, at) in list(fixed.items()):
                    if leader == p:
                        fixed[i] = (a, at - y + x + c.at)
    leaders = sorted({leader for leader, _ in fixed.values()})
    ranges = []
    for leader in leaders:
        members = [(problem.by_id[i], at) for i, (who, at) in fixed.items() if who == leader]
        ranges.append(
            [
                x
                for x in range(-max(at for _, at in members), peak + 1)
                if all(
                    0 <= x + at <= peak - b.size
                    and (x + at) % b.alignment == 0
                    and (b.offset is None or x + at == b.offset)
                    for b, at in members
                )
            ]
        )
    for choice in itertools.product(*ranges):
        base = dict(zip(leaders, choice, strict=True))
        offsets = {i: base[leader] + at for i, (leader, at) in fixed.items()}
        if paint(problem, Solution(offsets, problem.required)):
            return True
    return False


def spirals(seed: int, pieces: int, side: int = 10**6) -> Problem:
    """A square full to the last byte, cut into spirals of five again and again: the optimum is ``side``, and hard to
    find above a few hundred pieces."""
    draw = random.Random(seed)
    boxes = [(0, side, 0, side)]
    while len(boxes) < pieces:
        boxes.sort(key=lambda b: (b[1] - b[0]) * (b[3] - b[2]))
        left, right, low, high = boxes.pop()
        a, b = sorted(draw.sample(range(left + 1, right), 2))
        c, d = sorted(draw.sample(range(low + 1, high), 2))
        boxes += [(left, b, low, c), (b, right, low, d), (a, right, d, high), (left, a, c, high), (a, b, c, d)]
    draw.shuffle(boxes)
    return Problem(Buffer(f"b{k}", d - c, a, b) for k, (a, b, c, d) in enumerate(boxes))
