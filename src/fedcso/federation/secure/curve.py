"""Keys on the elliptic curve P-384 as text."""

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP384R1()
"""The curve of Flower's keys."""

SECRET_BYTES = 48


def write_point(point: ec.EllipticCurvePublicKey) -> str:
    """Return a public key as text."""
    return point.public_bytes(Encoding.X962, PublicFormat.CompressedPoint).hex()


def read_point(text: str) -> ec.EllipticCurvePublicKey:
    """Return the public key; raise `ValueError` if the text is not a point of the curve."""
    return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, bytes.fromhex(text))


def write_secret(secret: ec.EllipticCurvePrivateKey) -> str:
    """Return a private key as text."""
    return secret.private_numbers().private_value.to_bytes(SECRET_BYTES, "big").hex()


def read_secret(text: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key; raise `ValueError` if there is none with this number."""
    return ec.derive_private_key(int.from_bytes(bytes.fromhex(text), "big"), CURVE)
