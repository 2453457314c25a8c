"""Which arguments of an XNNPACK call are outputs: the delegate's own data tells.

The data is a header of 30 bytes with the magic ``XH00`` at 4 and the flatbuffer's offset and size at 10 and 14, then
the flatbuffer, an ``XNNGraph`` (executorch/backends/xnnpack/serialization/schema.fbs). Each of its values that comes
from outside, or goes there, has a flag that says so, and as external id the position of the argument. The tables here
are the schema's, as far as they are needed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from planner.pte.flatbuffer import NotAFlatbuffer, decode_known
from planner.pte.schema import Byte, UInt32

_EXTERNAL_INPUT, _EXTERNAL_OUTPUT = 1, 2  # XNN_VALUE_FLAG_EXTERNAL_INPUT, XNN_VALUE_FLAG_EXTERNAL_OUTPUT


@dataclass
class XNode:
    """An op: nothing of it is needed."""


@dataclass
class XNNTensorValue:
    """A value of the graph."""

    datatype: Byte = 0
    num_dims: UInt32 = 0
    dims: list[UInt32] = field(default_factory=list)
    constant_buffer_idx: UInt32 = 0
    external_id: UInt32 = 0
    flags: UInt32 = 0


@dataclass
class XNNQuantizedTensorValue:
    """A value with scales and zero points."""

    tensor_value: XNNTensorValue | None = None


@dataclass
class XValue:
    """Either."""

    xvalue_union: XNNTensorValue | XNNQuantizedTensorValue | None = None


@dataclass
class XNNGraph:
    """What a call computes."""

    version: str | None = None
    xnodes: list[XNode] = field(default_factory=list)
    xvalues: list[XValue] = field(default_factory=list)


def xnnpack_outputs(blob: bytes, count: int) -> tuple[int, ...] | None:
    """Which arguments of an XNNPACK call are outputs; None if the data is not as expected.

    Parameters
    ----------
    blob : bytes
        The delegate's data.
    count : int
        Of arguments.
    """
    try:
        start, size = struct.unpack_from("<II", blob, 10) if blob[4:8] == b"XH00" else (0, len(blob))
        graph = decode_known(blob[start : start + size], XNNGraph)
    except (struct.error, NotAFlatbuffer):
        return None
    values = [v.xvalue_union for v in graph.xvalues]
    tensors = [v.tensor_value if isinstance(v, XNNQuantizedTensorValue) else v for v in values]
    external = [t for t in tensors if t is not None and t.flags & (_EXTERNAL_INPUT | _EXTERNAL_OUTPUT)]
    places = [t.external_id for t in external]
    outputs = tuple(sorted(t.external_id for t in external if t.flags & _EXTERNAL_OUTPUT))
    if not outputs or len({*places}) < len(places) or max(places) >= count:
        return None
    return outputs
