"""Which arguments of an XNNPACK call are outputs: the delegate's own data tells.

The data is a header of 30 bytes with the magic ``XH00`` at 4 and the flatbuffer's offset at 10, then a flatbuffer
``XNNGraph`` (executorch/backends/xnnpack/serialization/schema.fbs). Each of its values that comes from outside, or goes
there, has a flag that says so, and as external id the position of the argument.
"""

from __future__ import annotations

import struct

_EXTERNAL_INPUT, _EXTERNAL_OUTPUT = 1, 2  # XNN_VALUE_FLAG_EXTERNAL_INPUT, XNN_VALUE_FLAG_EXTERNAL_OUTPUT
_VALUES = 2  # the slot of XNNGraph.xvalues
_KIND, _VALUE = 0, 1  # those of XValue, a union: a tensor (kind 1), or a quantised one (kind 2), which wraps a tensor
_WRAPPED = 0  # XNNQuantizedTensorValue.tensor_value
_EXTERNAL_ID, _FLAGS = 4, 5  # of XNNTensorValue


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
        external = _external(blob)
    except struct.error:
        return None
    places = [place for place, _ in external]
    outputs = tuple(sorted(place for place, flags in external if flags & _EXTERNAL_OUTPUT))
    if not outputs or len({*places}) < len(places) or max(places) >= count:
        return None
    return outputs


def _external(blob: bytes) -> list[tuple[int, int]]:
    """The position and the flags of each value that is an argument."""
    start = _number(blob, 10) if blob[4:8] == b"XH00" else 0
    values = _field(blob, _follow(blob, start), _VALUES)
    if not values:
        return []
    vector, found = _follow(blob, values), []
    if 4 * _number(blob, vector) > len(blob):
        raise struct.error
    for k in range(_number(blob, vector)):
        value = _follow(blob, vector + 4 + 4 * k)
        kind, at = _field(blob, value, _KIND), _field(blob, value, _VALUE)
        tensor = _follow(blob, at)
        if struct.unpack_from("<B", blob, kind)[0] == 2:
            tensor = _follow(blob, _field(blob, tensor, _WRAPPED))
        flags, place = _field(blob, tensor, _FLAGS), _field(blob, tensor, _EXTERNAL_ID)
        if flags and _number(blob, flags) & (_EXTERNAL_INPUT | _EXTERNAL_OUTPUT):
            found.append((_number(blob, place) if place else 0, _number(blob, flags)))
    return found


def _field(blob: bytes, table: int, slot: int) -> int:
    """Where a field of a table lies; 0 if it is left out."""
    vtable = table - struct.unpack_from("<i", blob, table)[0]
    if vtable < 0:
        raise struct.error
    if 4 + 2 * slot >= struct.unpack_from("<H", blob, vtable)[0]:
        return 0
    place = struct.unpack_from("<H", blob, vtable + 4 + 2 * slot)[0]
    return table + place if place else 0


def _follow(blob: bytes, at: int) -> int:
    return at + _number(blob, at)


def _number(blob: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", blob, at)[0])
