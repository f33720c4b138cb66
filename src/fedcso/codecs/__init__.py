"""Ways to send less than all, one idea a file; and the table of all of them.

The momentum methods share x and u, twice what FCSG shares, and u need not travel as it is.
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
"""Every codec by the name it has as `send_u`. A new one is a file and a row here."""

__all__ = ["CODECS", "BFloat16", "Full", "Inferred", "Int8", "Occasional"]
