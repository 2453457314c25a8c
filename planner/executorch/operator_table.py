"""The table of operators by which a ``.pte`` is read without torch: from the schemas that torch and executorch have.

``python -m planner.executorch.operator_table`` writes it again; a test holds that it is up to date.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.resources
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from planner.pte.operators import MUTATED, OTHER, OUT, TABLE, TENSOR
from solvers.files.text import write_atomically

LIBRARIES = (
    "torch.ao.quantization.fx._decomposed",
    "executorch.exir.passes._quant_patterns_and_replacements",
    "executorch.kernels.quantized",
    "executorch.exir.passes.dim_order_ops_registry",
    "executorch.extension.llm.custom_ops.custom_ops",
)
"""Where the schemas of operators that are not torch's own are registered."""

CORTEX_M = "executorch.backends.cortex_m.ops.operators"
"""The same for Cortex-M: read from the source, as it can be imported only with packages that few have."""

NAMESPACES = ("aten", "cortex_m", "dim_order_ops", "llama", "quantized_decomposed")


def operator_table() -> str:
    """The table, a line per operator that a program can call: with an out argument, one that is written in place, or
    with results that are no tensors."""
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):  # what does not load here has no kernels here
            importlib.import_module(library)
    schemas = [s for s in torch._C._jit_get_all_schemas() if s.name.split("::")[0] in NAMESPACES]
    schemas += map(torch._C.parse_schema, _defined_by_cortex_m())
    lines = {f"{_name(s)} {_signature(s)}" for s in schemas if _is_called(s)}
    return "".join(f"{line}\n" for line in sorted(lines))


def _defined_by_cortex_m() -> Iterator[str]:
    spec = importlib.util.find_spec(CORTEX_M.rsplit(".", 1)[0])
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        tree = ast.parse((Path(folder) / "operators.py").read_text())
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
            if ast.unparse(call.func) == "lib.define" and isinstance(call.args[0], ast.Constant):
                yield f"cortex_m::{call.args[0].value!s}"


def _name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def _signature(schema: Any) -> str:
    return "".join(map(_letter, schema.arguments))


def _letter(argument: Any) -> str:
    if argument.alias_info is not None and argument.alias_info.is_write:
        return OUT if argument.is_out else MUTATED
    return TENSOR if str(argument.type) in ("Tensor", "Optional[Tensor]") else OTHER


def _is_called(schema: Any) -> bool:
    written = {OUT, MUTATED} & set(_signature(schema))
    return bool(schema.arguments) and (bool(written) or not any("Tensor" in str(r.type) for r in schema.returns))


def main() -> None:
    """Write the table."""
    write_atomically(str(importlib.resources.files("planner.pte") / TABLE), operator_table())


if __name__ == "__main__":
    main()
