"""The schema of a ``.pte`` as the executorch wheel has it, in the FlatBuffers language."""

from __future__ import annotations

import importlib.resources
import re
from dataclasses import dataclass, field


@dataclass
class WheelSchema:
    """Tables (name, type and attributes of each field), unions (members), enums (type and values)."""

    identifier: str
    tables: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    unions: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)


def wheel_schema() -> WheelSchema:
    folder = importlib.resources.files("executorch.exir._serialize")
    text = "\n".join((folder / name).read_text() for name in ("scalar_type.fbs", "program.fbs"))
    text = re.sub(r"//[^\n]*", "", text)
    schema = WheelSchema(re.findall(r'file_identifier\s+"(\w+)"', text)[0])
    for name, body in re.findall(r"table\s+(\w+)\s*\{([^}]*)\}", text):
        fields = re.findall(r"(\w+)\s*:\s*(\[?\w+\]?)([^;]*);", body)
        schema.tables[name] = [(f, kind, rest.strip()) for f, kind, rest in fields]
    for name, body in re.findall(r"union\s+(\w+)\s*\{([^}]*)\}", text):
        schema.unions[name] = re.findall(r"\w+", body)
    for name, kind, body in re.findall(r"enum\s+(\w+)\s*:\s*(\w+)\s*\{([^}]*)\}", text):
        schema.enums[name] = (kind, {k: int(v) for k, v in re.findall(r"(\w+)\s*=\s*(\d+)", body)})
    return schema
