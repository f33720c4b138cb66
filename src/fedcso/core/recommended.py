"""What a problem recommends, declared at the function that makes its task: a plan, methods and hyper-parameters.

The command line uses it for everything that is not given, and shows it in its help. What a run was started with stands
in its folder, so recommendations can change without changing old runs.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from fedcso.core.task import Task

Maker = TypeVar("Maker", bound="Callable[..., Task]")


class Recommended(NamedTuple):
    """What a problem recommends; empty where it leaves the choice to others."""

    plan: Mapping[str, Any] = MappingProxyType({})
    """Sizes of the plan by name."""
    methods: Sequence[str] = ()
    """The methods to run unless others are named."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Hyper-parameters, for those of the chosen methods that have them."""


def with_plan(**sizes: Any) -> Callable[[Maker], Maker]:
    """Decorate a task function with the sizes of the plan for its problem."""
    return _marker(lambda before: before._replace(plan=sizes))


def with_methods(*methods: str, **settings: Any) -> Callable[[Maker], Maker]:
    """Decorate a task function with methods for its problem and with hyper-parameters for any method."""
    return _marker(lambda before: before._replace(methods=methods, settings=settings))


def recommended(maker: "Callable[..., Task]") -> Recommended:
    """Return what a task function was decorated with."""
    found: Recommended = getattr(maker, "recommended", Recommended())
    return found


def _marker(change: Callable[[Recommended], Recommended]) -> Callable[[Maker], Maker]:
    def mark(maker: Maker) -> Maker:
        vars(maker)["recommended"] = change(recommended(maker))
        return maker

    return mark
