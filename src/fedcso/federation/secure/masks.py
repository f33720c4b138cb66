"""Masks: vectors modulo 2^64 that look random to whoever does not have their key.

A mask is the key stream of AES-256 in counter mode. Every key is used once: it belongs to the terms of one sum.
"""

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key

KEY_BYTES = 32


def mask(key: bytes, length: int) -> np.ndarray:
    """Return the mask of a key."""
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * length)) + stream.finalize(), np.dtype("<u8")).astype(np.uint64)


def pair_key(own: ec.EllipticCurvePrivateKey, other: ec.EllipticCurvePublicKey, terms: str) -> bytes:
    """Return the key that two sites have in common for the terms with this digest."""
    agreed = generate_shared_key(own, other)
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=f"fedcso mask {terms}".encode()).derive(agreed)


def pair_mask(key: bytes, length: int, first: bool) -> np.ndarray:
    """Return what one of two sites adds; the other adds the opposite."""
    vector = mask(key, length)
    return vector if first else np.uint64(0) - vector
