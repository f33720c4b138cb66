"""Certificates and keys for a federation: a certificate authority, the coordinator's certificate, a key for each site.

For a trial they are all created in one place. In production every site creates its own key
(`ssh-keygen -t ecdsa -b 384`) and hands over only the public key.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError

DAYS = 365
"""How long certificates are valid."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def make_authority(folder: Path) -> None:
    """Write ca.crt, which everyone gets, and ca.key, which signs certificates and must be kept safe."""
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedcso federation")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _certificate(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    _write_private(folder / "ca.key", key)
    atomic.write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM))


def make_server_certificate(folder: Path, hosts: Sequence[str]) -> None:
    """Write server.pem and server.key for loopback and the names and addresses at which sites reach the coordinator."""
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP384R1())
    names = [_alternative(host) for host in dict.fromkeys([*LOOPBACK, *hosts])]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedcso coordinator")])
    certificate = (
        _certificate(subject, authority.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA384())
    )
    _write_private(folder / "server.key", key)
    atomic.write(folder / "server.pem", certificate.public_bytes(serialization.Encoding.PEM))


def hosts_of(certificate: Path) -> list[str]:
    """Return the names and addresses of a certificate."""
    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
    except OSError as error:
        raise FedcsoError(f"{certificate} does not exist; create it with: fedcso flower keys FOLDER") from error
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in names]


def make_site_key(path: Path) -> None:
    """Write a site's private key, and next to it the public key, which the coordinator registers."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_private(path, key, serialization.PrivateFormat.OpenSSH)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    atomic.write(path.with_name(path.name + ".pub"), public + b"\n")


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_private(
    path: Path,
    key: ec.EllipticCurvePrivateKey,
    form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
) -> None:
    """Write a private key to a file that only its owner can read, from the moment it exists."""
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    atomic.write(path, content, mode=0o600)
