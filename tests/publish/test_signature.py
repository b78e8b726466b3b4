"""A signature is an in-toto statement in a DSSE envelope, and only the trusted key verifies it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from rcr_probes.cli import main
from rcr_probes.errors import EvidenceError, RcrError
from rcr_probes.evidence.strict import Unreadable
from rcr_probes.publish import layout, signature, statement
from rcr_probes.publish.build import publish
from rcr_probes.publish.verify import verify
from tests.publish import packaged


def envelope(package: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((package / layout.SIGNATURE).read_text())
    return found


def test_what_is_signed_is_a_test_result_about_the_manifest(published: Path) -> None:
    """By the letter of in-toto's Statement v1: subject, predicate, and what was tested with."""
    payload = base64.b64decode(str(envelope(published)["payload"]), validate=True)
    said = json.loads(payload)
    digest = hashlib.sha256((published / layout.MANIFEST).read_bytes()).hexdigest()
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["subject"] == [{"name": "manifest.json", "digest": {"sha256": digest}}]
    assert said["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert said["predicate"]["result"] == "PASSED"
    assert said["predicate"]["failedTests"] == []
    assert "claim P3" in said["predicate"]["passedTests"]
    assert [one["name"] for one in said["predicate"]["configuration"]] == [
        "check.py",
        "provenance.json",
    ]


def test_the_payload_is_authenticated_with_its_type() -> None:
    """The form of the DSSE specification: both lengths in decimal, blanks between."""
    assert statement.authenticated(b"hello world") == (
        b"DSSEv1 28 application/vnd.in-toto+json 11 hello world"
    )


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not on this machine")
def test_another_program_verifies_it(published: Path, keys: packaged.Keys, tmp_path: Path) -> None:
    """Such as openssl, which knows neither of us, nor the envelope."""
    found = envelope(published)
    [one] = json.loads((published / layout.SIGNATURE).read_text())["signatures"]
    payload = base64.b64decode(str(found["payload"]))
    (tmp_path / "signed").write_bytes(statement.authenticated(payload))
    (tmp_path / "signature").write_bytes(base64.b64decode(one["sig"]))
    words = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", str(keys.public)]
    words += ["-in", str(tmp_path / "signed"), "-sigfile", str(tmp_path / "signature")]
    subprocess.run(words, check=True, capture_output=True)
    der = ["openssl", "pkey", "-pubin", "-in", str(keys.public), "-outform", "DER"]
    key = subprocess.run(der, check=True, capture_output=True).stdout
    assert one["keyid"] == hashlib.sha256(key).hexdigest()


def test_signing_twice_gives_the_same_bytes(published: Path, keys: packaged.Keys) -> None:
    """Ed25519 takes no chance."""
    made = [signature.signed(b"manifest", keys.private, [], []) for _ in range(2)]
    assert made[0] == made[1]
    assert signature.verified(published, keys.public)


@pytest.mark.parametrize("key", ["payload", "sig", "nothing", "unsigned", "extra"])
def test_an_envelope_that_was_changed_is_refused(
    package: Path, keys: packaged.Keys, key: str
) -> None:
    """Whatever of it: the trusted key signed nothing of the kind."""
    path = package / layout.SIGNATURE
    found = json.loads(path.read_text())
    match key:
        case "payload":
            said = base64.b64decode(found["payload"]).replace(b"PASSED", b"FAILED")
            found["payload"] = base64.b64encode(said).decode()
        case "sig":
            found["signatures"][0]["sig"] = base64.b64encode(b"\0" * 64).decode()
        case "unsigned":
            found["signatures"] = []
        case "extra":
            found["payloadType"] = "text/plain"
        case _:
            found = None
    path.write_text(json.dumps(found))
    with pytest.raises(EvidenceError):
        signature.verified(package, keys.public)


def test_very_many_signatures_are_refused_in_no_time(package: Path, keys: packaged.Keys) -> None:
    """Before any is verified: by their number, and the whole by its size."""
    path = package / layout.SIGNATURE
    found = json.loads(path.read_text())
    false = {"keyid": "", "sig": base64.b64encode(b"\0" * 64).decode()}
    for many in (statement.SIGNATURES, 200_000):
        path.write_text(json.dumps({**found, "signatures": [false] * many + found["signatures"]}))
        begun = time.process_time()
        with pytest.raises(EvidenceError, match="more than"):
            signature.verified(package, keys.public)
        assert {finding.place for finding in verify(package).findings} >= {layout.SIGNATURE}
        assert time.process_time() - begun < 3
    others = [false] * (statement.SIGNATURES - 1)
    path.write_text(json.dumps({**found, "signatures": others + found["signatures"]}))
    assert signature.verified(package, keys.public)


def test_a_manifest_that_was_changed_after_signing_is_refused(
    package: Path, keys: packaged.Keys
) -> None:
    """The signature is about bytes."""
    packaged.replace(package / layout.MANIFEST, "schema_version", "schema_Version")
    with pytest.raises(EvidenceError, match="not the one that was signed"):
        signature.verified(package, keys.public)


def unfit(folder: Path, keys: packaged.Keys) -> dict[str, Path]:
    """Files that hold no Ed25519 private key in PEM, without a password."""
    other = rsa.generate_private_key(65537, 2048)
    own = load_pem_private_key(keys.private.read_bytes(), None)
    found = {
        "another kind": other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "locked": own.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        ),
        "public": keys.public.read_bytes(),
        "nothing": b"",
        "bytes": bytes(range(256)),
    }
    for name, data in found.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in found}


def test_a_file_that_holds_no_such_key_is_refused_with_how_to_make_one(
    source: Path, published: Path, keys: packaged.Keys, tmp_path: Path
) -> None:
    """Misuse, with the two commands; and nothing is published."""
    for path in unfit(tmp_path, keys).values():
        with pytest.raises(RcrError, match="openssl genpkey") as raised:
            publish(source, tmp_path / "package", key=path, **packaged.ORIGIN)
        assert raised.value.exit_code == 2
    assert not (tmp_path / "package").exists()
    public = rsa.generate_private_key(65537, 2048).public_key()
    (tmp_path / "rsa.pub").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    for path in (keys.private, tmp_path / "rsa.pub"):
        with pytest.raises(RcrError, match="openssl genpkey"):
            signature.verified(published, path)


def test_trust_asks_for_a_signature(
    package: Path, source: Path, keys: packaged.Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package without one is not to be trusted; of evidence, which has none, it is misuse."""
    (package / layout.SIGNATURE).unlink()
    packaged.reseal(package)
    for place, code in ((package, 1), (source, 2)):
        assert main(["check", str(place), "--trust", str(keys.public)]) == code
        assert "signed" in capsys.readouterr().err


def test_what_is_not_there_is_not_said_to_be_unsigned(
    tmp_path: Path, keys: packaged.Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is missing, which is another mistake: its name was mistyped."""
    assert main(["check", str(tmp_path / "gone.zip"), "--trust", str(keys.public)]) == 2
    said = capsys.readouterr().err
    assert "There is no" in said
    assert "signed" not in said


@pytest.mark.parametrize(
    "predicate",
    [
        {"result": "FAILED", "failedTests": []},
        {"result": "PASSED", "failedTests": ["evidence"]},
        {"result": "PASSED"},
    ],
)
def test_a_statement_that_does_not_say_passed_vouches_for_nothing(
    published: Path, predicate: dict[str, object]
) -> None:
    """However well it is signed: a key may sign that a test failed."""
    found = envelope(published)
    said = json.loads(base64.b64decode(str(found["payload"])))
    changed = json.dumps({**said, "predicate": predicate}).encode()
    found["payload"] = base64.b64encode(changed).decode()
    with pytest.raises(Unreadable):
        statement.opened(json.dumps(found).encode())
