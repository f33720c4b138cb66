"""Codecs that send less, one in each file, and `CODECS`, which lists them by name.

The momentum methods share x and u, twice as much as FCSG; these codecs reduce what is sent of u.
"""

from typing import TYPE_CHECKING, Any

from fedcso.core.registry import Registry

if TYPE_CHECKING:  # importing a codec imports torch; the classes of the table are imported when they are first used
    from fedcso.codecs.inferred import Inferred as Inferred
    from fedcso.codecs.occasional import Occasional as Occasional
    from fedcso.codecs.rounded import BFloat16 as BFloat16
    from fedcso.codecs.rounded import Int8 as Int8
    from fedcso.core.codec import Codec

CODECS: "Registry[type[Codec]]" = Registry(
    "codec",
    "fedcso",
    {
        "full": "core.codec:Full",
        "bfloat16": "codecs.rounded:BFloat16",
        "int8": "codecs.rounded:Int8",
        "every": "codecs.occasional:Occasional",
        "inferred": "codecs.inferred:Inferred",
    },
)
"""Codecs by their names in the option `send_u`. To add one, write its module and a row here."""

SEND_U = "send_u"
"""The setting that selects a codec for u."""


def spellings() -> str:
    """Return how codecs are written as settings: `full, bfloat16, …, every(k)`."""
    return ", ".join(f"{name}(k)" if CODECS.definition(name).fields else name for name in CODECS)


def __getattr__(name: str) -> Any:
    return CODECS.package_attribute(name)
