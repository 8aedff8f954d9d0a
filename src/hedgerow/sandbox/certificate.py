"""A fresh self-signed certificate for the sandbox's TLS; nothing is kept but for the moment of loading."""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from hedgerow.errors import UnsupportedError

__all__ = ["self_signed_context"]

VALID = timedelta(days=30)


def self_signed_context(host: str) -> ssl.SSLContext:
    """A server's TLS context whose certificate names the IP address `host` and "localhost".

    The certificate is its own authority: a client that trusts it (`ssl.get_server_certificate`) accepts the server.
    Raises UnsupportedError without the package `cryptography`.
    """
    with tempfile.TemporaryDirectory() as folder:
        # The ssl module loads keys from files only.
        path = Path(folder) / "sandbox.pem"
        path.touch(mode=0o600)
        path.write_bytes(_key_and_certificate(host))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
    return context


def _key_and_certificate(host: str) -> bytes:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise UnsupportedError(
            "the sandbox's TLS makes its certificate with the package cryptography: pip install cryptography"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hedgerow sandbox")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address(host)), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(pem, form, encryption) + certificate.public_bytes(pem)
