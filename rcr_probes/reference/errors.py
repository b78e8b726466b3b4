"""What the approval service refuses, each refusal under a stable code."""

from __future__ import annotations

from typing import Literal, get_args

Code = Literal[
    "APPROVAL_ALREADY_CONSUMED",
    "PRE_APPROVAL_REQUIRED",
    "APPROVAL_TOKEN_INVALID",
    "APPROVAL_STALE",
    "APPROVAL_STATE_CONFLICT",
    "APPROVAL_BUSY",
    "APPROVER_NOT_AUTHORIZED",
    "APPROVAL_REASON_REQUIRED",
    "APPROVAL_NOT_FOUND",
    "APPROVAL_NOT_PENDING",
    "APPROVAL_STORE_CORRUPT",
    "DECISION_EXPIRED",
    "DECISION_FOREIGN",
]
CODES: tuple[Code, ...] = get_args(Code)


class ApprovalError(Exception):
    """A refusal of the approval service: the system under probe speaking, not the harness.

    Attributes:
        code: one of ``CODES``; what a caller branches on.
        cause: one sentence that says what was refused, and why.
    """

    def __init__(self, code: Code, cause: str) -> None:
        super().__init__(code, cause)
        self.code: Code = code
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}"
