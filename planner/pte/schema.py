"""What a ``.pte`` is made of: the tables of ExecuTorch's program schema (``ET12``), field by field, slot by slot.

The names are the schema's own. What a program may leave out is None then. A test compares all of it with the schema
that the executorch wheel ships.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

IDENTIFIER = "ET12"
"""The version of the schema."""

# Scalars as they lie in the file, by the letters of `struct`.
Byte = Annotated[int, "b"]
UByte = Annotated[int, "B"]
Int32 = Annotated[int, "i"]
UInt32 = Annotated[int, "I"]
Int64 = Annotated[int, "q"]
UInt64 = Annotated[int, "Q"]
Float64 = Annotated[float, "d"]
Flag = Annotated[bool, "?"]
Data = Annotated[bytes, 1]
AlignedData = Annotated[bytes, 16]


class ScalarType(IntEnum):
    """The type of a tensor's elements."""

    BYTE = 0
    CHAR = 1
    SHORT = 2
    INT = 3
    LONG = 4
    HALF = 5
    FLOAT = 6
    DOUBLE = 7
    COMPLEXHALF = 8
    COMPLEXFLOAT = 9
    COMPLEXDOUBLE = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    QUINT4X2 = 16
    FLOAT8E5M2 = 23
    FLOAT8E4M3FN = 24
    UINT16 = 27
    UINT32 = 28
    UINT64 = 29

    @property
    def dtype(self) -> str:
        """Its name in torch."""
        return _DTYPES[self][0]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _DTYPES[self][1]


_DTYPES = {
    ScalarType.BYTE: ("uint8", 1),
    ScalarType.CHAR: ("int8", 1),
    ScalarType.SHORT: ("int16", 2),
    ScalarType.INT: ("int32", 4),
    ScalarType.LONG: ("int64", 8),
    ScalarType.HALF: ("float16", 2),
    ScalarType.FLOAT: ("float32", 4),
    ScalarType.DOUBLE: ("float64", 8),
    ScalarType.COMPLEXHALF: ("complex32", 4),
    ScalarType.COMPLEXFLOAT: ("complex64", 8),
    ScalarType.COMPLEXDOUBLE: ("complex128", 16),
    ScalarType.BOOL: ("bool", 1),
    ScalarType.QINT8: ("qint8", 1),
    ScalarType.QUINT8: ("quint8", 1),
    ScalarType.QINT32: ("qint32", 4),
    ScalarType.BFLOAT16: ("bfloat16", 2),
    ScalarType.QUINT4X2: ("quint4x2", 1),
    ScalarType.FLOAT8E5M2: ("float8_e5m2", 1),
    ScalarType.FLOAT8E4M3FN: ("float8_e4m3fn", 1),
    ScalarType.UINT16: ("uint16", 2),
    ScalarType.UINT32: ("uint32", 4),
    ScalarType.UINT64: ("uint64", 8),
}


class TensorShapeDynamism(IntEnum):
    """Is a shape fixed, an upper bound, or known at run time only?"""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


class TensorDataLocation(IntEnum):
    """Where a constant is."""

    SEGMENT = 0
    EXTERNAL = 1


class DeviceType(IntEnum):
    """Where memory is."""

    CPU = 0
    CUDA = 1


class DataLocation(IntEnum):
    """Where a delegate's data is: in the program, or in a segment behind it."""

    INLINE = 0
    SEGMENT = 1


@dataclass
class ContainerMetadata:
    """How inputs and outputs are nested."""

    encoded_inp_str: str | None = None
    encoded_out_str: str | None = None


@dataclass
class Null:
    """No value."""


@dataclass
class AllocationDetails:
    """The place of a planned tensor."""

    memory_id: UInt32 = 0
    memory_offset_low: UInt32 = 0
    memory_offset_high: UInt32 = 0

    @property
    def memory_offset(self) -> int:
        """Bytes from the arena's start."""
        return self.memory_offset_low | self.memory_offset_high << 32


@dataclass
class ExtraTensorInfo:
    """What few tensors have."""

    mutable_data_segments_idx: UInt64 = 0
    fully_qualified_name: str | None = None
    location: Annotated[TensorDataLocation, "b"] = TensorDataLocation.SEGMENT
    device_type: Annotated[DeviceType, "b"] = DeviceType.CPU
    device_index: Byte = 0


@dataclass
class Tensor:
    """A tensor."""

    scalar_type: Annotated[ScalarType, "b"] = ScalarType.BYTE
    storage_offset: Int32 = 0
    sizes: list[Int32] = field(default_factory=list)
    dim_order: list[UByte] = field(default_factory=list)
    requires_grad: Flag = False
    data_buffer_idx: UInt32 = 0
    allocation_info: AllocationDetails | None = None
    layout: Byte = 0
    shape_dynamism: Annotated[TensorShapeDynamism, "b"] = TensorShapeDynamism.STATIC
    extra_tensor_info: ExtraTensorInfo | None = None


@dataclass
class Int:
    """An integer."""

    int_val: Int64 = 0


@dataclass
class Bool:
    """A truth value."""

    bool_val: Flag = False


@dataclass
class Double:
    """A float."""

    double_val: Float64 = 0.0


@dataclass
class String:
    """A text."""

    string_val: str | None = None


@dataclass
class IntList:
    """Values that are integers, by index."""

    items: list[Int64] = field(default_factory=list)


@dataclass
class DoubleList:
    """Floats."""

    items: list[Float64] = field(default_factory=list)


@dataclass
class BoolList:
    """Truth values."""

    items: list[Flag] = field(default_factory=list)


@dataclass
class TensorList:
    """Values that are tensors, by index."""

    items: list[Int32] = field(default_factory=list)


@dataclass
class OptionalTensorList:
    """The same; -1 for none."""

    items: list[Int32] = field(default_factory=list)


KernelTypes = (
    Null | Int | Bool | Double | Tensor | String | IntList | DoubleList | BoolList | TensorList | OptionalTensorList
)


@dataclass
class EValue:
    """A value."""

    val: KernelTypes | None = None


@dataclass
class Operator:
    """A kernel's name."""

    name: str = ""
    overload: str = ""


@dataclass
class KernelCall:
    """Run an operator."""

    op_index: Int32 = 0
    args: list[Int32] = field(default_factory=list)


@dataclass
class DelegateCall:
    """Run a delegate."""

    delegate_index: Int32 = 0
    args: list[Int32] = field(default_factory=list)


@dataclass
class MoveCall:
    """Let a value be another."""

    move_from: Int32 = 0
    move_to: Int32 = 0


@dataclass
class JumpFalseCall:
    """Go on elsewhere if a value is false."""

    cond_value_index: Int32 = 0
    destination_instruction: Int32 = 0


@dataclass
class FreeCall:
    """Give a tensor's memory back."""

    value_index: Int32 = 0


InstructionArguments = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass
class Instruction:
    """One step of a method."""

    instr_args: InstructionArguments | None = None


@dataclass
class Frame:
    """A line of the model's source."""

    filename: str | None = None
    lineno: Int32 = 0
    name: str | None = None
    context: str | None = None


@dataclass
class FrameList:
    """Where an instruction came from."""

    items: list[Frame] = field(default_factory=list)


@dataclass
class BackendDelegateDataReference:
    """Where a delegate's data is."""

    location: Annotated[DataLocation, "b"] = DataLocation.INLINE
    index: UInt32 = 0


@dataclass
class CompileSpec:
    """An option that a delegate was compiled with."""

    key: str | None = None
    value: Data | None = None


@dataclass
class BackendDelegate:
    """A delegate."""

    id: str = ""
    processed: BackendDelegateDataReference | None = None
    compile_specs: list[CompileSpec] | None = None


@dataclass
class Chain:
    """Instructions in order."""

    inputs: list[Int32] = field(default_factory=list)
    outputs: list[Int32] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    stacktrace: list[FrameList] | None = None


@dataclass
class NonConstBufferDevice:
    """Where an arena is."""

    buffer_idx: Int32 = 0
    device_type: Annotated[DeviceType, "b"] = DeviceType.CPU
    device_index: Byte = 0


@dataclass
class ExecutionPlan:
    """A method."""

    name: str = ""
    container_meta_type: ContainerMetadata | None = None
    values: list[EValue] = field(default_factory=list)
    inputs: list[Int32] = field(default_factory=list)
    outputs: list[Int32] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    delegates: list[BackendDelegate] = field(default_factory=list)
    non_const_buffer_sizes: list[Int64] = field(default_factory=list)
    non_const_buffer_device: list[NonConstBufferDevice] | None = None


@dataclass
class Buffer:
    """A constant inside the program."""

    storage: AlignedData | None = None


@dataclass
class BackendDelegateInlineData:
    """A delegate's data inside the program."""

    data: AlignedData | None = None


@dataclass
class DataSegment:
    """Bytes behind the program; ``offset`` counts from the first segment."""

    offset: UInt64 = 0
    size: UInt64 = 0


@dataclass
class SubsegmentOffsets:
    """Where the tensors in a segment begin."""

    segment_index: UInt32 = 0
    offsets: list[UInt64] = field(default_factory=list)


@dataclass
class NamedData:
    """A segment by name."""

    key: str | None = None
    segment_index: UInt32 = 0


@dataclass
class Program:
    """The whole."""

    version: UInt32 = 0
    execution_plan: list[ExecutionPlan] = field(default_factory=list)
    constant_buffer: list[Buffer] | None = None
    backend_delegate_data: list[BackendDelegateInlineData] | None = None
    segments: list[DataSegment] | None = None
    constant_segment: SubsegmentOffsets | None = None
    mutable_data_segments: list[SubsegmentOffsets] | None = None
    named_data: list[NamedData] | None = None
