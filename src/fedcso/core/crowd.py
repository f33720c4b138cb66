"""Many clients, each of them made when it is asked for, so that a million cost no more than those that take part."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from fedcso.core.errors import require, require_count
from fedcso.core.streams import DATA, MOST_NUMBERS, draw_distinct, stream

T = TypeVar("T")

SAMPLE = 1000
"""The clients of a crowd that stand for all of them."""


class Crowd(Sequence[T]):
    """`number` clients, where `make(n)` returns the data of client n, the same whenever it is called.

        Task(problem, Crowd(1_000_000, lambda n: share(pictures, rows_of(n))))

    Rounds make their participants and no other clients. What concerns all clients, such as F, the fingerprint of the
    data, a method's requirements and tables of clients, is found out from a random `sample` of them; runs say so in
    their notes. All clients of a crowd have training data.
    """

    def __init__(self, number: int, make: Callable[[int], T], sample: int = SAMPLE):
        require_count("clients", number)
        require("clients", number, lambda n: n <= MOST_NUMBERS, f"at most {MOST_NUMBERS:,}")
        require_count("sample", sample)
        self.number, self.make = number, make
        self.sample = sorted(draw_distinct(min(sample, number), number, stream(0, DATA, 0)))
        """The numbers of the clients that stand for all."""

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        numbers = range(self.number)[place]
        return self.make(numbers) if isinstance(numbers, int) else [self.make(n) for n in numbers]


def sample_numbers(clients: Sequence[Any]) -> Sequence[int]:
    """Return the numbers of the clients that stand for all: the sample of a crowd, otherwise all clients."""
    return clients.sample if isinstance(clients, Crowd) else range(len(clients))


def sample_of(clients: Sequence[T]) -> Sequence[T]:
    """Return the clients that stand for all: the sample of a crowd, otherwise all clients."""
    return [clients[n] for n in clients.sample] if isinstance(clients, Crowd) else clients
