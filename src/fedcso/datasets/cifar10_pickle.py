"""Read CIFAR-10's Python batches, which are pickles, without executing any code in them.

A pickle is a program that can call any function. Here it can't call anything: the names that these files use (numpy's
array and dtype, and the encoding of bytes) are replaced by placeholder classes that only record their arguments, any
other name is refused, and the array is then built from its bytes.
"""

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from fedcso.core.errors import FedcsoError

NEEDED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
}
"""All names that these files refer to, whether written by Python 2 or Python 3."""

MOST_OBJECTS = 1_000_000
"""The largest index of an object in a pickle; larger ones alone can take any amount of memory."""

NOT_A_BATCH = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that reading something else can raise."""


def to_records(name: str, data: bytes, pixels: int) -> bytes:
    """Convert a batch to the binary format: for each picture a byte with its label, then its pixels."""
    try:
        batch = _load(data)
        images, labels = (batch.get(field.encode(), batch.get(field)) for field in ("data", "labels"))
        numbers = np.frombuffer(bytes(labels), np.uint8)
        return np.column_stack([numbers, _array(images, (len(labels), pixels))]).tobytes()
    except NOT_A_BATCH as error:
        raise FedcsoError(f"{name} is not a batch of CIFAR-10 ({type(error).__name__}: {error})") from error


def _load(data: bytes) -> Any:
    for operation, argument, _ in pickletools.genops(data):
        if operation.name.endswith("PUT") and int(argument or 0) > MOST_OBJECTS:
            raise pickle.UnpicklingError(f"an object has the index {argument}")
    return _Unpickler(io.BytesIO(data), encoding="bytes").load()


def _array(recorded: "_Placeholder", shape: tuple[int, int]) -> np.ndarray:
    """Build the array that numpy would have made from the recorded arguments."""
    _, found, kind, by_columns, content = recorded.state
    if found != shape or by_columns or kind.arguments[0] not in ("u1", b"u1"):
        raise ValueError(f"its pictures have the shape {found}, not {shape}")
    if isinstance(content, _Placeholder):  # bytes as Python 3 writes them for Python 2
        content = content.arguments[0].encode("latin1")
    return np.frombuffer(content, np.uint8).reshape(shape)


class _Placeholder:
    """Records the arguments and the state of an object instead of creating it."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any):
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NEEDED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return type(name, (_Placeholder,), {})  # a new class each time, so that pickles can't change it for others
