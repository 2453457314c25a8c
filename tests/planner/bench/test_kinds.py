"""The kinds that are told from lifetimes are those that the front end meant, and problems say what stock plans."""

import torch

from benchmarks.corpus.entry import Entry, Variant
from benchmarks.corpus.export import FEWEST, export, problems_of
from planner.api import Planner, Request
from planner.bench.kinds import ShareKind, kind_of
from planner.program.share_rules import Share
from solvers.place.stock import stock_greedy
from tests.planner.executorch.models import Detector

MEANT = {Share.CONCAT: ShareKind.CONCATS, Share.VIEW: ShareKind.VIEWS, Share.IN_PLACE: ShareKind.IN_PLACE}

_exported = {}


def detector():
    return Detector(), (torch.randn(1, 3, 64, 64),)


def exported():
    if not _exported:
        _exported["detector"] = export(Entry("detector", "tests", detector), Variant.PORTABLE)
    return _exported["detector"]


def exported_problem():
    (problem,) = exported().problems
    return problem


def test_kinds_are_those_of_the_front_end():
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from executorch.exir.passes import MemoryPlanningPass

    from planner.executorch.compare import lower
    from planner.executorch.graph_flow import read_graph

    flows = []

    def algorithm(alignment, specs, module, signature, padding):
        flows.append(read_graph(module, specs, signature, alignment).flow)
        return MemoryPlanningAlgorithmSuite()(alignment, specs, module, signature, padding)

    algorithm.__name__ = "greedy"
    lower(*detector()).to_executorch(
        ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(memory_planning_algo=algorithm))
    )
    (flow,) = flows
    planner = Planner(flow, Request())
    (problem,) = problems_of("detector", flow)
    met = set()
    for candidate in planner.sharing.candidates:
        for tie in candidate.ties:
            assert kind_of(problem, tie.colocation) is MEANT[candidate.share], tie
            met.add(candidate.share)
    assert met == set(Share)


def test_the_problem_is_what_stock_plans():
    problem, row = exported_problem(), exported().row
    offsets = stock_greedy(problem)
    assert max(offsets[b.id] + -(-b.size // 16) * 16 for b in problem.buffers) == row["stock"]["arena"]
    assert row["arena"]["arena"] < row["stock"]["arena"]
    assert row["status"] == "optimal"
    assert len(problem.buffers) >= FEWEST
    assert {b.label for b in problem.buffers} >= {"aten.cat.out", "aten.convolution.out", "input"}
    assert not any(c.required for c in problem.colocations)
