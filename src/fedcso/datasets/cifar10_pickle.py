"""CIFAR-10's Python batches: pickles, read without running anything that is in them.

A pickle is a little program, and whoever wrote it decides what it calls. Here nothing can be called: the names that
these files use (an array of numpy's and its type, and the encoding of its bytes) stand for classes that only write
down what they were given, any other name is refused, and the array is then made from its bytes.
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
"""All that these files refer to, as Python 2 wrote them or Python 3 would."""

MOST_OBJECTS = 1_000_000
"""A pickle that numbers its objects beyond this is not a batch; the numbers alone can cost any amount of memory."""

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
"""How reading something else ends."""


def records(name: str, data: bytes, pixels: int) -> bytes:
    """A batch in the binary format: for each picture a byte with its label, then its pixels."""
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
            raise pickle.UnpicklingError(f"it numbers an object {argument}")
    return _Unpickler(io.BytesIO(data), encoding="bytes").load()


def _array(written: "_Written", shape: tuple[int, int]) -> np.ndarray:
    """The array that numpy would have made of what was written down."""
    _, found, kind, by_columns, content = written.state
    if found != shape or by_columns or kind.arguments[0] not in ("u1", b"u1"):
        raise ValueError(f"its pictures have the form {found}, not {shape}")
    if isinstance(content, _Written):  # bytes as Python 3 writes them for Python 2
        content = content.arguments[0].encode("latin1")
    return np.frombuffer(content, np.uint8).reshape(shape)


class _Written:
    """What was to be made from these arguments and put into this state."""

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
        return type(name, (_Written,), {})  # a new one each time, so that no pickle leaves a trace in it
