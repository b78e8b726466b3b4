"""One JSON file for each approval, validated when read and replaced atomically when written."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Annotated, Literal, TypeVar

import msgspec

from rcr_probes import files
from rcr_probes.model import Json
from rcr_probes.reference.errors import ApprovalError

Status = Literal[
    "pending_approval",
    "approved",
    "rejected",
    "cancelled",
    "expired",
    "executing",
    "succeeded",
    "failed",
    "partial_failed",
    "stale",
    "verification_required",
]
ExecutionStatus = Literal["not_started", "executing", "succeeded", "failed", "partial_failed"]
Requester = Literal["user", "agent"]

Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Digest = Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
Pid = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]  # 0 and below would address process groups


class Execution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the record knows of the action.

    Attributes:
        status: where the attempt stands.
        pid: the process that executes; present exactly while ``executing``.
        evidence: what the executor returned, one mapping for the attempt that returned.
        error_code: the code, errno name or class name of what made the attempt fail.
    """

    status: ExecutionStatus
    pid: Pid | None
    evidence: tuple[dict[str, Json], ...]
    error_code: str | None

    def __post_init__(self) -> None:
        if (self.status == "executing") != (self.pid is not None):
            raise ValueError("a pid belongs to an execution that is executing, and to no other")


NOT_STARTED = Execution(status="not_started", pid=None, evidence=(), error_code=None)


class Held(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why recovery stopped.

    Attributes:
        reasons: what was known, and what was not, as stable codes.
        attempt: the number of the attempt that stopped.
        at: seconds since the epoch.
    """

    reasons: tuple[str, ...]
    attempt: int
    at: float


class Ruling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person decided on an operation that was stopped.

    Attributes:
        approval_id: of that operation.
        attempt: which stop it answers: the number of the attempt that stopped.
        effect: what the person found: the approved effect is there, or it is not.
        by: who.
        on: on what evidence.
        until: seconds since the epoch; it may be carried out up to then.
        at: when it was entered.
    """

    approval_id: Id
    attempt: int
    effect: Literal["present", "absent"]
    by: str
    on: str
    until: float
    at: float


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One approval and what became of it.

    Attributes:
        id: random; names the file.
        status: the runtime's word for the whole operation.
        execution: the execution block.
        request: what is to be approved, without its session id: an approver has to see it.
        digest: of that request; the approval is bound to it.
        executor: name of the executor that the request asks for.
        requester: who asked: ``user`` or ``agent``.
        token_sha256: of the one-use token, while one is valid. The token itself is never stored.
        consumed: an execution was begun under this approval.
        created_at: seconds since the epoch.
        review_by: seconds since the epoch; a pending approval expires then, an approved one not.
        decided_by: who approved or rejected.
        reason: why.
        held: why recovery by evidence stopped last, where it did.
        ruling: what a person decided then.
    """

    id: Id
    status: Status
    execution: Execution
    request: dict[str, Json]
    digest: Digest
    executor: str
    requester: Requester
    token_sha256: Sha256 | None
    consumed: bool
    created_at: float
    review_by: float
    decided_by: str | None
    reason: str | None
    held: Held | None
    ruling: Ruling | None


SUFFIX = ".json"
BESIDE = ".tmp"  # what is added to the name of a file while its replacement is written
_HEX = frozenset("0123456789abcdef")
_records = msgspec.json.Decoder(Record)


class Records:
    """The records of one store, in one folder."""

    def __init__(self, folder: str, durable: bool = False) -> None:
        """Make nothing; the folder is the service's to make.

        Args:
            folder: where they lie.
            durable: whether what is written is flushed to the device, and its name in the folder.
        """
        self.folder = folder
        self.durable = durable

    def path(self, approval_id: str, suffix: str = SUFFIX) -> str:
        """Where a file of this approval lies.

        Raises:
            ApprovalError: APPROVAL_NOT_FOUND, for what is no id: it must not lead elsewhere.
        """
        if not _is_id(approval_id):
            raise _not_found(approval_id)
        return os.path.join(self.folder, approval_id + suffix)

    def read(self, approval_id: str) -> Record:
        """The record as it is stored.

        Raises:
            ApprovalError: APPROVAL_NOT_FOUND, or APPROVAL_STORE_CORRUPT where the file holds no
                valid record of this id; it is left as it is.
        """
        path = self.path(approval_id)
        try:
            data = files.read(path)
        except FileNotFoundError:
            raise _not_found(approval_id) from None
        record = decode(_records, data, path)
        if record.id != approval_id:
            raise _corrupt(path, f"it holds the record {record.id}")
        return record

    def write(self, record: Record) -> Record:
        """Replace the stored record. Only the holder of its lock may."""
        replace_file(self.path(record.id), msgspec.json.encode(record), self.durable)
        return record

    def all(self) -> tuple[Record, ...]:
        """Every record, the oldest first.

        Raises:
            ApprovalError: APPROVAL_STORE_CORRUPT; one that cannot be read is not left out.
        """
        stems = [name[: -len(SUFFIX)] for name in os.listdir(self.folder) if name.endswith(SUFFIX)]
        found = [self.read(stem) for stem in stems if _is_id(stem)]
        return tuple(sorted(found, key=lambda record: (record.created_at, record.id)))


Stored = TypeVar("Stored")


def decode(decoder: msgspec.json.Decoder[Stored], data: bytes, path: str) -> Stored:
    """What the file at ``path`` holds.

    Raises:
        ApprovalError: APPROVAL_STORE_CORRUPT, naming the file and what is wrong with it.
    """
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _corrupt(path, str(error)) from error


def replace_file(path: str, data: bytes, durable: bool = False) -> None:
    """Replace the file at ``path`` atomically: a temporary file beside it, then a rename.

    A reader sees the old bytes or the new ones, also when this process is killed in between. That
    it does so after a power loss too, ``durable`` buys: the bytes are flushed to the device before
    the rename, and the rename is, before this returns.

    Raises:
        OSError: the bytes could not be written; what stood at ``path`` still stands.
    """
    beside = path + BESIDE  # one name is enough: writers of one file hold its lock
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.EIO, "a file was written in part", beside)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    if durable:
        sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Flush the names in a folder to the device: what was made, renamed or removed there stays so.

    Raises:
        OSError: it could not be; what was done is done all the same.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_id(text: str) -> bool:
    return len(text) == 32 and _HEX.issuperset(text)


def _not_found(approval_id: str) -> ApprovalError:
    return ApprovalError("APPROVAL_NOT_FOUND", f"There is no approval {approval_id!r}.")


def _corrupt(path: str, cause: str) -> ApprovalError:
    return ApprovalError(
        "APPROVAL_STORE_CORRUPT",
        f"{os.path.basename(path)} is not valid ({cause}); it was left as it is.",
    )
