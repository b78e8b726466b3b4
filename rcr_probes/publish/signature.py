"""Sign a package's manifest with an Ed25519 key, and verify that a key which is trusted did.

A signature proves that the holder of the key stands for exactly these bytes. It does not prove that
what they tell was measured, nor when, nor whose the key is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rcr_probes.errors import EvidenceError, NotInstalled, RcrError
from rcr_probes.evidence import strict
from rcr_probes.publish import statement
from rcr_probes.publish.layout import MANIFEST, SIGNATURE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_MAKE = (
    "Make a key pair with: openssl genpkey -algorithm ed25519 -out key.pem, and then: "
    "openssl pkey -in key.pem -pubout -out key.pub"
)
_DO_NOT = "Do not trust this package; ask its publisher."
_LARGEST = 1 << 16  # bytes of a key file


def signed(
    manifest: bytes,
    key: Path,
    configuration: Sequence[tuple[str, str]],
    passed: Sequence[str],
) -> bytes:
    """The envelope over a manifest; the same bytes whenever it is signed.

    Args:
        manifest: the bytes of the package's manifest.
        key: a file with an Ed25519 private key in PEM, without a password.
        configuration: what the package was tested with: name and SHA-256 of each file.
        passed: the names of the tests that passed.

    Raises:
        RcrError: the file holds no such key, or ``cryptography`` is not installed.
        OSError: it cannot be read.
    """
    _require()
    private = _private(key)
    digest = hashlib.sha256(manifest).hexdigest()
    payload = statement.statement(digest, configuration, passed)
    keyid = _keyid(private.public_key())
    return statement.closed(payload, keyid, private.sign(statement.authenticated(payload)))


def require(key: Path) -> None:
    """Refuse a key that cannot sign, before there is anything to sign.

    Raises:
        As ``signed``.
    """
    _require()
    _private(key)


def verified(folder: Path, key: Path) -> str:
    """The id of the key that signed the manifest as it lies there.

    Args:
        folder: the package.
        key: a file with the Ed25519 public key that is trusted, in PEM.

    Raises:
        EvidenceError: there is no signature, another key made it, or it is about other bytes.
        RcrError: the file holds no such key, or ``cryptography`` is not installed.
        OSError: it cannot be read.
    """
    _require()
    from cryptography.exceptions import InvalidSignature

    public = _public(key)
    if not (folder / SIGNATURE).is_file():
        raise EvidenceError(
            SIGNATURE,
            "is missing: the package is not signed.",
            "Ask the publisher for one that is.",
        )
    try:
        envelope = statement.read(folder)
    except strict.Unreadable as error:
        raise EvidenceError(SIGNATURE, f"cannot be read ({error}).", _DO_NOT) from error
    authenticated = statement.authenticated(envelope.payload)
    for _, signature in envelope.signatures:
        try:
            public.verify(signature, authenticated)
            break
        except InvalidSignature:
            continue
    else:
        raise EvidenceError(SIGNATURE, "was not made by the key that is trusted.", _DO_NOT)
    if hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() != envelope.manifest_sha256:
        raise EvidenceError(MANIFEST, "is not the one that was signed.", _DO_NOT)
    return _keyid(public)


def _require() -> None:
    try:
        import cryptography  # noqa: F401 (whether it is there)
    except ImportError as error:
        raise NotInstalled(
            "A signature needs cryptography, which is not installed.", "publish"
        ) from error


def _private(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _key(path, lambda data: load_pem_private_key(data, password=None))
    if not isinstance(found, Ed25519PrivateKey):
        raise RcrError(f"{path} holds no Ed25519 private key.", _MAKE)
    return found


def _public(path: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found = _key(path, load_pem_public_key)
    if not isinstance(found, Ed25519PublicKey):
        raise RcrError(f"{path} holds no Ed25519 public key.", _MAKE)
    return found


def _key(path: Path, load: Callable[[bytes], Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST)
    except FileNotFoundError:
        raise RcrError(f"There is no key {path}.", _MAKE) from None
    try:
        return load(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it has a password
        raise RcrError(f"{path} holds no key in PEM that can be read ({error}).", _MAKE) from error


def _keyid(public: Ed25519PublicKey) -> str:
    """SHA-256, in hex, of the key as DER: what ``openssl pkey -pubin -outform DER`` gives."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()
