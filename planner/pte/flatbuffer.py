"""Flatbuffers from and to dataclasses whose fields are the schema: read with every check, written by `flatbuffers`.

Generated flatbuffer readers trust what they read: a flipped bit becomes an index error, a loop over four billion
elements, or a wrong value. Here every offset, vector and string must lie inside the buffer, and no table may have a
field, no union a member and no enum a value that the schema does not know: these would be lost when the file is written
again. The layout is that of the FlatBuffers internals documentation.

A field is a scalar (``Annotated[int, letter]``, the letter of `struct`), ``Annotated[bytes, alignment]``, ``str``,
another dataclass, a list of scalars or dataclasses, or a union of dataclasses, which takes two slots.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
import types
import typing
from collections.abc import Callable
from enum import IntEnum
from typing import Any


class NotAFlatbuffer(ValueError):
    """The bytes are no flatbuffer of the schema; the message says where and why."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """One field: its kind is ``scalar``, ``bytes``, ``string``, ``table``, ``scalars``, ``tables`` or ``union``.

    ``letter`` and ``enum`` are of scalars, ``tables`` is the dataclass or the union's members, ``alignment`` that of
    bytes; ``absent`` is the value of a field that is left out.
    """

    name: str
    number: int
    kind: str
    absent: Any
    letter: str = ""
    enum: type[IntEnum] | None = None
    tables: tuple[type, ...] = ()
    alignment: int = 1


@functools.cache
def slots_of(table: type) -> tuple[Slot, ...]:
    """The fields of a dataclass as slots."""
    hints = typing.get_type_hints(table, include_extras=True)
    out: list[Slot] = []
    number = 0
    for f in dataclasses.fields(table):
        absent = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
        slot = _slot(f.name, number + 1, hints[f.name], absent)
        if slot.kind != "union":
            slot = dataclasses.replace(slot, number=number)
        out.append(slot)
        number = slot.number + 1
    return tuple(out)


def _slot(name: str, number: int, hint: Any, absent: Any) -> Slot:
    options = [h for h in _members(hint) if h is not type(None)]
    if len(options) > 1:
        return Slot(name, number, "union", absent, tables=tuple(options))
    (kind,) = options
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        if dataclasses.is_dataclass(item):
            return Slot(name, number, "tables", absent, tables=(typing.cast(type, item),))
        return Slot(name, number, "scalars", absent, letter=item.__metadata__[0])
    if kind is str:
        return Slot(name, number, "string", absent)
    if dataclasses.is_dataclass(kind):
        return Slot(name, number, "table", absent, tables=(typing.cast(type, kind),))
    base, extra = kind.__origin__, kind.__metadata__[0]
    if base is bytes:
        return Slot(name, number, "bytes", absent, alignment=extra)
    return Slot(name, number, "scalar", absent, letter=extra, enum=base if issubclass(base, IntEnum) else None)


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if is_union else (hint,)


def decode(data: bytes, root: type, identifier: str) -> Any:
    """Read a flatbuffer.

    Parameters
    ----------
    data : bytes
    root : type
        The dataclass of the root table.
    identifier : str
        Four letters: the schema's version.

    Returns
    -------
    object
        A ``root``.

    Raises
    ------
    NotAFlatbuffer
        If the bytes are anything else.
    """
    if len(data) < 8:
        raise NotAFlatbuffer(f"{len(data)} bytes are too few for a program")
    found = data[4:8]
    if found[:2] != identifier[:2].encode():
        raise NotAFlatbuffer(f"bytes 4 to 8 are {found!r}: a program has {identifier!r} there")
    if found != identifier.encode():
        raise NotAFlatbuffer(f"the file's version is {found!r}: only {identifier!r} is known")
    return _Reader(data).root(root)


def decode_known(data: bytes, root: type) -> Any:
    """Read of a flatbuffer the fields that the dataclasses have; what else is in it is passed over.

    Such an object is to be looked at, not to be written again.

    Parameters
    ----------
    data : bytes
    root : type
        The dataclass of the root table; its fields and those of its children may stop before the schema's do.

    Returns
    -------
    object
        A ``root``.

    Raises
    ------
    NotAFlatbuffer
        If the bytes are anything else.
    """
    return _Reader(data, whole=False).root(root)


class _Reader:
    def __init__(self, data: bytes, whole: bool = True) -> None:
        self.data = data
        self.whole = whole  # no fields but those that are known
        self.budget = 8 * len(data)  # tables may share vtables and strings, but a file cannot say more than so much

    def root(self, kind: type) -> Any:
        return self.table(kind, self.number("<I", 0))

    def table(self, kind: type, at: int) -> Any:
        vtable = at - self.number("<i", at)
        length, size = self.number("<H", vtable), self.number("<H", vtable + 2)
        if length < 4 or length % 2:
            raise NotAFlatbuffer(f"the table {kind.__name__} at byte {at} has a vtable of {length} bytes")
        self.inside(vtable, length, f"the vtable of {kind.__name__}")
        self.inside(at, size, f"the table {kind.__name__}")
        self.spend(length + size)
        places = struct.unpack_from(f"<{(length - 4) // 2}H", self.data, vtable + 4)
        slots = slots_of(kind)
        known = slots[-1].number + 1 if slots else 0
        if self.whole and any(places[known:]):
            raise NotAFlatbuffer(f"a {kind.__name__} has fields that this version of arena-planner does not know")
        values = []
        for slot in slots:
            place = places[slot.number] if slot.number < len(places) else 0
            if not place:
                values.append(list(slot.absent) if isinstance(slot.absent, list) else slot.absent)
            elif slot.kind == "union":
                values.append(self.union(kind, slot, at + places[slot.number - 1], at + place))
            else:
                values.append(_READ[slot.kind](self, f"{kind.__name__}.{slot.name}", slot, at + place))
        return kind(*values)

    def union(self, kind: type, slot: Slot, type_at: int, at: int) -> Any:
        self.inside(type_at, 1, f"{kind.__name__}.{slot.name}")
        which = self.data[type_at]
        if not 1 <= which <= len(slot.tables):
            raise NotAFlatbuffer(f"{kind.__name__}.{slot.name} is of kind {which}, which is not known")
        return self.table(slot.tables[which - 1], self.follow(at))

    def scalar(self, name: str, slot: Slot, at: int) -> Any:
        self.inside(at, struct.calcsize(slot.letter), name)
        value = struct.unpack_from("<" + slot.letter, self.data, at)[0]
        if slot.enum is None:
            return value
        try:
            return slot.enum(value)
        except ValueError:
            raise NotAFlatbuffer(f"{name} is {value}, which is not known") from None

    def scalars(self, name: str, slot: Slot, at: int) -> list[Any]:
        start, count = self.vector(name, at, struct.calcsize("<" + slot.letter))
        return list(struct.unpack_from(f"<{count}{slot.letter}", self.data, start))

    def raw(self, name: str, slot: Slot, at: int) -> bytes:
        start, count = self.vector(name, at, 1)
        return self.data[start : start + count]

    def string(self, name: str, slot: Slot, at: int) -> str:
        try:
            return self.raw(name, slot, at).decode()
        except UnicodeDecodeError:
            raise NotAFlatbuffer(f"{name} is no text") from None

    def child(self, name: str, slot: Slot, at: int) -> Any:
        return self.table(slot.tables[0], self.follow(at))

    def children(self, name: str, slot: Slot, at: int) -> list[Any]:
        start, count = self.vector(name, at, 4)
        return [self.table(slot.tables[0], self.follow(start + 4 * k)) for k in range(count)]

    def vector(self, name: str, at: int, size: int) -> tuple[int, int]:
        """Where the elements begin, and how many there are."""
        start = self.follow(at)
        count = self.number("<I", start)
        self.inside(start + 4, count * size, name)
        self.spend(4 + count * size)
        return start + 4, count

    def follow(self, at: int) -> int:
        return at + self.number("<I", at)

    def number(self, form: str, at: int) -> int:
        self.inside(at, struct.calcsize(form), "an offset")
        return int(struct.unpack_from(form, self.data, at)[0])

    def inside(self, at: int, size: int, what: str) -> None:
        if at < 0 or at + size > len(self.data):
            raise NotAFlatbuffer(
                f"{what} lies at bytes {at} to {at + size}, outside the {len(self.data)} of the program"
            )

    def spend(self, amount: int) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise NotAFlatbuffer("its parts refer to each other more often than a program's do")


_READ: dict[str, Callable[[_Reader, str, Slot, int], Any]] = {
    "scalar": _Reader.scalar,
    "scalars": _Reader.scalars,
    "bytes": _Reader.raw,
    "string": _Reader.string,
    "table": _Reader.child,
    "tables": _Reader.children,
}


def encode(root: Any, identifier: str) -> bytes:
    """Write a flatbuffer: what `decode` reads.

    Parameters
    ----------
    root : object
        A dataclass of the schema.
    identifier : str
        Four letters: the schema's version.
    """
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(_Writer(builder).table(root), identifier.encode())
    return bytes(builder.Output())


class _Writer:
    """Children are written before the table that refers to them."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def table(self, value: Any) -> int:
        kind: type = type(value)
        slots = slots_of(kind)
        given = [(slot, getattr(value, slot.name)) for slot in slots]
        made = [(slot, v, self.child(slot, v)) for slot, v in given]
        builder = self.builder
        builder.StartObject(slots[-1].number + 1 if slots else 0)
        for slot, v, at in made:
            if slot.kind == "scalar":
                _PREPEND[slot.letter](builder, slot.number, v, 0)
            elif at is not None:
                if slot.kind == "union":
                    builder.PrependUint8Slot(slot.number - 1, slot.tables.index(type(v)) + 1, 0)
                builder.PrependUOffsetTRelativeSlot(slot.number, at, 0)
        return int(builder.EndObject())

    def child(self, slot: Slot, value: Any) -> int | None:
        """Where a value was written; None for scalars, and what is absent."""
        if value is None or slot.kind == "scalar":
            return None
        if slot.kind in ("table", "union"):
            return self.table(value)
        if slot.kind == "string":
            return int(self.builder.CreateString(value))
        if slot.kind == "bytes":
            return self.block(value, 1, len(value), slot.alignment)
        if slot.kind == "scalars":
            size = struct.calcsize("<" + slot.letter)
            return self.block(struct.pack(f"<{len(value)}{slot.letter}", *value), size, len(value), size)
        made = [self.table(v) for v in value]
        self.builder.StartVector(4, len(made), 4)
        for at in reversed(made):
            self.builder.PrependUOffsetTRelative(at)
        return int(self.builder.EndVector())

    def block(self, data: bytes, size: int, count: int, alignment: int) -> int:
        """A vector whose elements are bytes already."""
        builder = self.builder
        builder.StartVector(size, count, alignment)
        builder.head = builder.Head() - len(data)
        builder.Bytes[builder.Head() : builder.Head() + len(data)] = data
        return int(builder.EndVector())


def _prepend(name: str) -> Callable[[Any, int, Any, Any], None]:
    return lambda builder, number, value, absent: getattr(builder, f"Prepend{name}Slot")(number, value, absent)


_PREPEND = {
    letter: _prepend(name)
    for letter, name in {
        "?": "Bool",
        "b": "Int8",
        "B": "Uint8",
        "i": "Int32",
        "I": "Uint32",
        "q": "Int64",
        "Q": "Uint64",
        "d": "Float64",
    }.items()
}
