"""Is a buffer of bytes a flatbuffer of a schema? Checked before anything reads it.

Generated flatbuffer readers trust what they read: a flipped bit becomes an index error, a loop over four billion
elements, or a wrong value. Here every offset, vector and string must lie inside the buffer, and no table may have a
field, and no union a member, that the schema does not know: these would be lost when the file is written again.
The layout is that of the FlatBuffers internals documentation.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_SCALARS = {
    **dict.fromkeys(("bool", "byte", "ubyte", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("long", "ulong", "double", "int64", "uint64", "float64"), 8),
}
"""Bytes of the scalar types of the schema language."""


class NotAFlatbuffer(ValueError):
    """The bytes are no flatbuffer of the schema; the message says where and why."""


@dataclass(frozen=True)
class Schema:
    """Tables (field name and type, in order of their slots), unions (members) and enums (bytes)."""

    tables: Mapping[str, tuple[tuple[str, str], ...]]
    unions: Mapping[str, tuple[str, ...]]
    enums: Mapping[str, int]
    root: str
    identifier: str


def parse_schema(*texts: str) -> Schema:
    """Read a schema of tables, unions and enums in the FlatBuffers language; the last text has the root.

    Parameters
    ----------
    *texts : str
        The schema files, included ones first.
    """
    plain = "\n".join(re.sub(r"//[^\n]*", "", text) for text in texts)
    enums = {name: _SCALARS[kind] for name, kind in re.findall(r"enum\s+(\w+)\s*:\s*(\w+)", plain)}
    unions = {name: tuple(re.findall(r"\w+", body)) for name, body in re.findall(r"union\s+(\w+)\s*\{([^}]*)\}", plain)}
    tables = {}
    for name, body in re.findall(r"table\s+(\w+)\s*\{([^}]*)\}", plain):
        fields: list[tuple[str, str]] = []
        for field, kind in re.findall(r"(\w+)\s*:\s*(\[?\s*\w+\s*\]?)", re.sub(r"\([^)]*\)", "", body)):
            kind = re.sub(r"\s", "", kind)
            if kind in unions:
                fields.append((field + "_type", "ubyte"))
            fields.append((field, kind))
        tables[name] = tuple(fields)
    root = re.findall(r"root_type\s+(\w+)", plain)[-1]
    return Schema(tables, unions, enums, root, re.findall(r'file_identifier\s+"(\w+)"', plain)[-1])


def check(data: bytes, schema: Schema) -> None:
    """Raise `NotAFlatbuffer` unless ``data`` is a flatbuffer of the schema.

    Parameters
    ----------
    data : bytes
    schema : Schema
    """
    if len(data) < 8:
        raise NotAFlatbuffer(f"{len(data)} bytes are too few for a program")
    found, family = data[4:8], schema.identifier[:2]
    if found[:2] != family.encode():
        raise NotAFlatbuffer(f"bytes 4 to 8 are {found!r}: a program has {schema.identifier!r} there")
    if found != schema.identifier.encode():
        raise NotAFlatbuffer(f"the file's version is {found!r}: only {schema.identifier!r} is known")
    _Check(data, schema).run()


class _Check:
    def __init__(self, data: bytes, schema: Schema) -> None:
        self.data = data
        self.schema = schema
        self.budget = 8 * len(data)  # tables may share vtables and strings, but a file cannot say more than so much

    def run(self) -> None:
        todo = [(self.schema.root, self._number("<I", 0))]
        while todo:
            kind, at = todo.pop()
            todo += self._table(kind, at)

    def _table(self, kind: str, at: int) -> list[tuple[str, int]]:
        """Check one table; returns the tables that it refers to."""
        vtable = at - self._number("<i", at)
        length, size = self._number("<H", vtable), self._number("<H", vtable + 2)
        fields = self.schema.tables[kind]
        if length < 4 or length % 2:
            raise NotAFlatbuffer(f"the table {kind} at byte {at} has a vtable of {length} bytes")
        self._inside(vtable, length, f"the vtable of {kind}")
        self._inside(at, size, f"the table {kind}")
        places = [self._number("<H", vtable + 4 + 2 * k) for k in range((length - 4) // 2)]
        if any(places[len(fields) :]):
            raise NotAFlatbuffer(f"a {kind} has fields that this version of executorch does not know")
        self._spend(length + size)
        out = []
        for k, ((name, what), place) in enumerate(zip(fields, places, strict=False)):
            if place:
                here = at + place
                self._inside(here, 1, f"{kind}.{name}")
                if what in self.schema.unions:
                    which = self.data[at + places[k - 1]] if places[k - 1] else 0
                    members = self.schema.unions[what]
                    if not 1 <= which <= len(members):
                        raise NotAFlatbuffer(f"{kind}.{name} is of kind {which}, which is not known")
                    out.append((members[which - 1], self._follow(here)))
                else:
                    out += self._field(f"{kind}.{name}", what, here)
        return out

    def _field(self, name: str, what: str, here: int) -> list[tuple[str, int]]:
        if what in self.schema.tables:
            return [(what, self._follow(here))]
        if what == "string":
            self._vector(name, self._follow(here), 1)
        elif what.startswith("["):
            inner = what[1:-1]
            start = self._follow(here)
            size = _SCALARS.get(inner) or self.schema.enums.get(inner) or 4
            count = self._vector(name, start, size)
            if inner in self.schema.tables:
                return [(inner, self._follow(start + 4 + 4 * k)) for k in range(count)]
        else:
            self._inside(here, _SCALARS.get(what) or self.schema.enums[what], name)
        return []

    def _vector(self, name: str, at: int, size: int) -> int:
        count = self._number("<I", at)
        self._inside(at + 4, count * size, name)
        self._spend(4 + count * size)
        return count

    def _follow(self, at: int) -> int:
        return at + self._number("<I", at)

    def _number(self, form: str, at: int) -> int:
        self._inside(at, struct.calcsize(form), "an offset")
        return int(struct.unpack_from(form, self.data, at)[0])

    def _inside(self, at: int, size: int, what: str) -> None:
        if at < 0 or at + size > len(self.data):
            raise NotAFlatbuffer(
                f"{what} lies at bytes {at} to {at + size}, outside the {len(self.data)} of the program"
            )

    def _spend(self, amount: int) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise NotAFlatbuffer("its parts refer to each other more often than a program's do")
