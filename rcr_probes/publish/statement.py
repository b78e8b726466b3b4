"""What is signed of a package: an in-toto statement about its manifest, in a DSSE envelope.

Nothing is signed or verified here. Standard library alone: the package's own checker embeds this
module as it is. Sources: in-toto attestation framework, Statement v1 and predicate test-result
v0.1; DSSE v1.0.2.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rcr_probes.evidence import strict
from rcr_probes.model import Json
from rcr_probes.publish.layout import MANIFEST, SIGNATURE

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
LARGEST = 1 << 20  # bytes of an envelope; one over a thousand claims has a tenth of that
SIGNATURES = 16  # in one envelope; each costs whoever verifies it


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope that was opened, and not verified.

    Attributes:
        payload: the bytes of the statement.
        manifest_sha256: the digest of the manifest that the statement is about.
        signatures: of each signature, the id of the key and its bytes.
    """

    payload: bytes
    manifest_sha256: str
    signatures: tuple[tuple[str, bytes], ...]


def statement(
    manifest_sha256: str, configuration: Sequence[tuple[str, str]], passed: Sequence[str]
) -> bytes:
    """The statement that the tests of a package passed.

    Args:
        manifest_sha256: of the package's manifest.
        configuration: what was tested with: name and SHA-256 of each file.
        passed: the names of the tests.
    """
    return strict.encoded(
        {
            "_type": STATEMENT_TYPE,
            "subject": [_resource(MANIFEST, manifest_sha256)],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "result": "PASSED",
                "configuration": [_resource(*one) for one in configuration],
                "passedTests": list(passed),
                "warnedTests": [],
                "failedTests": [],
            },
        }
    )


def authenticated(payload: bytes) -> bytes:
    """What is signed: the payload with its type and both lengths (DSSE's pre-authentication)."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def closed(payload: bytes, keyid: str, signature: bytes) -> bytes:
    """The envelope of a payload, as the bytes of its file."""
    return strict.encoded(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
        },
        indented=True,
    )


@dataclass(frozen=True, slots=True)
class _Signature:
    keyid: str
    sig: str


@dataclass(frozen=True, slots=True)
class _Envelope:
    payloadType: str  # noqa: N815 (named by DSSE)
    payload: str
    signatures: tuple[_Signature, ...]


@dataclass(frozen=True, slots=True)
class _Resource:
    name: str
    digest: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Predicate:
    result: str
    failedTests: tuple[str, ...]  # noqa: N815 (named by in-toto)


@dataclass(frozen=True, slots=True)
class _Statement:
    _type: str
    subject: tuple[_Resource, ...]
    predicateType: str  # noqa: N815 (named by in-toto)
    predicate: _Predicate


def read(folder: Path) -> Envelope:
    """The envelope beside the manifest of a package.

    Raises:
        Unreadable: as ``opened``; or it is far larger than any that is signed here.
        OSError: it cannot be read.
    """
    with open(folder / SIGNATURE, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise strict.Unreadable(f"it has more than {LARGEST} bytes")
    return opened(data)


def opened(data: bytes) -> Envelope:
    """The envelope that a file holds.

    Raises:
        Unreadable: it is none, is not about one manifest, or says that a test of it failed; or it
            carries more signatures than anybody needs.
    """
    envelope = strict.decoded(data, _Envelope)
    if envelope.payloadType != PAYLOAD_TYPE or not envelope.signatures:
        raise strict.Unreadable(f"it is no signed envelope of {PAYLOAD_TYPE}")
    if len(envelope.signatures) > SIGNATURES:
        raise strict.Unreadable(f"it carries more than {SIGNATURES} signatures")
    payload = _bytes(envelope.payload)
    said = strict.decoded(payload, _Statement)
    if said._type != STATEMENT_TYPE or said.predicateType != PREDICATE_TYPE:
        raise strict.Unreadable("it holds no statement about the result of a test")
    if [one.name for one in said.subject] != [MANIFEST]:
        raise strict.Unreadable(f"it is not about one {MANIFEST}")
    if said.predicate.result != "PASSED" or said.predicate.failedTests:
        raise strict.Unreadable("it says that the package did not pass its test")
    return Envelope(
        payload,
        said.subject[0].digest.get("sha256", ""),
        tuple((one.keyid, _bytes(one.sig)) for one in envelope.signatures),
    )


def _resource(name: str, sha256: str) -> dict[str, Json]:
    return {"name": name, "digest": {"sha256": sha256}}


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise strict.Unreadable(f"it holds no base64 ({error})") from None
