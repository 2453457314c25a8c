"""What the tests of lock files ask for: small dataflows, and an export that is no more than its plans."""

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

from planner.api import Planner, Request
from planner.judge.memory import ReplayError
from planner.lock.lock_file import Lock
from planner.lock.lock_format import request_hash
from planner.program.banking import ANYWHERE
from planner.program.dataflow import Dataflow, Role
from planner.program.sharing import Policy
from solvers.banks.bank import Bank
from solvers.run import Options
from tests.planner.flows import cat, elementwise, tensor, two_parts

REPRODUCIBLE = Request(options=Options(reproducible=True))
BANKS = (Bank("fast", 64, 1), Bank("slow", 4096, 2, 32))


def chain(length=4, extent=8):
    """x -> v0 -> v1 ... elementwise, and all of them are joined at the end."""
    names = [f"v{k}" for k in range(length)]
    ops = [elementwise(f"f{k}", ["x" if k == 0 else names[k - 1]], n) for k, n in enumerate(names)]
    tensors = [tensor("x", extent, role=Role.INPUT), *(tensor(n, extent) for n in names), tensor("y", 2 * extent)]
    return Dataflow([*ops, cat("join", names[-2:], "y")], tensors, ["y"])


def wide():
    """A chain of which more is returned: more than the fast bank holds."""
    return replace(chain(6), outputs=("y", "v0", "v2"))


def anywhere(flow):
    return replace(flow, tensors=tuple(replace(t, arena=ANYWHERE) for t in flow.tensors))


def pinned(flow, name, mem_id):
    return replace(flow, tensors=tuple(replace(t, arena=mem_id) if t.id == name else t for t in flow.tensors))


ASKED = {
    "two parts": (two_parts(), REPRODUCIBLE),
    "a chain": (chain(), REPRODUCIBLE),
    "no sharing": (chain(), replace(REPRODUCIBLE, policy=Policy(frozenset()))),
    "two arenas": (pinned(chain(), "v1", 2), REPRODUCIBLE),
    "reserved": (chain(), replace(REPRODUCIBLE, reserved={1: 48})),
    "banks": (anywhere(wide()), replace(REPRODUCIBLE, banks=BANKS)),
    "pinned in banks": (pinned(anywhere(wide()), "v1", 2), replace(REPRODUCIBLE, banks=BANKS)),
    "nothing": (Dataflow([], []), REPRODUCIBLE),
}


def accept(plan):
    """A judge."""


def refuse(plan):
    raise ReplayError("never")


def export(path, *asked, frozen=False, judge=accept, names=None):
    """One export: a graph for each of the pairs (flow, request)."""
    lock = Lock(path, frozen)
    out = []
    for k, (flow, request) in enumerate(asked):
        out.append(lock.plan(names[k] if names else f"method {k}", Planner(flow, request), judge))
    lock.close()
    return out


def key(flow=None, request=REPRODUCIBLE, **changes):
    return request_hash(Planner(flow or chain(), replace(request, **changes)))


@functools.cache
def text_of(*names):
    """The lock file of an export."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lock"
        export(path, *(ASKED[name] for name in names))
        return path.read_text()
