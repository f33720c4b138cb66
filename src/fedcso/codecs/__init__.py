"""Codecs that send less, one in each file, and `CODECS`, which lists them by name.

The momentum methods share x and u, twice as much as FCSG; these codecs reduce what is sent of u.
"""

from fedcso.codecs.inferred import Inferred
from fedcso.codecs.occasional import Occasional
from fedcso.codecs.rounded import BFloat16, Int8
from fedcso.core.codec import Codec, Full

CODECS: dict[str, type[Codec]] = {
    "full": Full,
    "bfloat16": BFloat16,
    "int8": Int8,
    "every": Occasional,
    "inferred": Inferred,
}
"""Codecs by their names in the option `send_u`. To add one, write its module and a row here."""

__all__ = ["CODECS", "BFloat16", "Full", "Inferred", "Int8", "Occasional"]
