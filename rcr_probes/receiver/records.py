"""The nouns of the receiver, as its two sides exchange them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from rcr_probes.errors import RcrError

DATABASE = "receiver.sqlite"
CONTROL = "control.sock"
LOG = "receiver.log"

Keys = Literal["honoured", "ignored"]
# Their requests make no effect unless the settings say so: the safe ones of RFC 9110 §9.2.1.
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

# The first four strike before the request is handled, the others after.
Fault = Literal[
    "reset_before",
    "error_before_effect",
    "hold_before",
    "delayed_effect",
    "hold_after",
    "response_lost",
    "error_after_effect",
    "timeout",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
HOLDS: tuple[Fault, ...] = ("hold_before", "hold_after")

Release = Literal["answer", "drop"]

# What became of a request. None: it may still act.
Outcome = Literal[
    "effect",  # made one effect
    "no_effect",  # its method makes none
    "replayed",  # 200 again: the first result of its key
    "mismatch",  # 422: its key is taken by another payload
    "conflict",  # 409: the first request with its key is still in flight
    "refused",  # 4xx or 5xx: no HTTP that can be handled, or a key that cannot be read
    "incomplete",  # its sender left before the request was whole
    "reset",  # struck by reset_before
    "dropped",  # held before it was handled, then dropped; or struck by error_before_effect
    "abandoned",  # the receiver ended before it was handled
]
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # of a field's name: RFC 9110 §5.6.2
TookEffect = Literal["yes", "no", "expired", "unknown"]


class ReceiverError(RcrError):
    """The receiver did not start, cannot be reached, or cannot be used so."""


class NotReached(ReceiverError):
    """A state that was waited for did not come about in time."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a receiver behaves; it keeps them in its database, so a copy behaves alike.

    Attributes:
        keys: whether an Idempotency-Key is honoured, or means nothing.
        retention: seconds on the receiver's own clock for which a key is remembered once its
            request was handled. (24 hours is what Stripe documents for its own.)
        effects_of: the methods whose requests make an effect; None: all but ``SAFE``.
        answer: path of a file whose bytes every request is answered with, as JSON; None: a small
            JSON object that names the effect.
        status: the HTTP status of that answer.
        bound: seconds of real time after which a withheld answer is given up and a held request
            is dropped.
        read_within: seconds of real time in which a request must be whole once it began.
        key_header: the field that carries the key; not every API calls it as the draft does.
    """

    keys: Keys = "honoured"
    retention: int = 86_400
    effects_of: tuple[str, ...] | None = None
    answer: str | None = None
    status: int = 200
    bound: float = 30.0
    read_within: float = 10.0
    key_header: str = "Idempotency-Key"

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ReceiverError(f"These settings make no receiver: {problem}.", "Change them.")

    def _problem(self) -> str:
        if self.keys not in get_args(Keys):
            return f"keys is {self.keys!r}, not honoured or ignored"
        if type(self.retention) is not int or self.retention < 0:
            return f"retention is {self.retention!r}, not seconds in whole numbers from 0"
        if type(self.status) is not int or not 200 <= self.status <= 599:
            return f"status is {self.status!r}, not a final HTTP status, which is 200 to 599"
        if not (0 < self.bound <= 3600 and 0 < self.read_within <= 3600):
            return "bound and read_within are seconds above 0, an hour at most"
        methods = self.effects_of
        if methods is not None and not (methods and all(map(str.isupper, methods))):
            return f"effects_of is {methods!r}, not one method or more, in capitals"
        if not _TOKEN.fullmatch(self.key_header):
            return f"key_header is {self.key_header!r}, not a field's name such as X-Request-Id"
        return ""

    def acts(self, method: str) -> bool:
        """Whether a request with this method makes an effect."""
        if self.effects_of is None:
            return method not in SAFE
        return method in self.effects_of


@dataclass(frozen=True, slots=True)
class Request:
    """One request, recorded before it was handled.

    Attributes:
        id: order of arrival, from 1.
        nth: order among the requests that could make an effect, from 1; None for the others.
        method: as sent; None where no request line could be read.
        path: the target in origin form, query included, each byte one character (latin-1).
        key: the Idempotency-Key without its quotes, or the field's text where it is no valid key.
        body_sha256: of the payload, in hex; None where it was not read whole.
        size: bytes of the payload.
        at: the receiver's clock on arrival.
        fault: the strike that this request drew.
        outcome: what became of it; None while it may still act.
        status: the HTTP status that was decided for it; None where none was.
        answered: whether the whole answer was handed to the kernel. It may be lost after that.
        closed: whether nothing will be done any more for it.
    """

    id: int
    nth: int | None
    method: str | None
    path: str | None
    key: str | None
    body_sha256: str | None
    size: int
    at: int
    fault: Fault | None
    outcome: Outcome | None
    status: int | None
    answered: bool
    closed: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect, named in order of making: E1, E2, …; all but ``at`` is its request's."""

    id: str
    request: int
    method: str
    path: str
    key: str | None
    body_sha256: str
    at: int


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault armed for the ``nth`` request that can make an effect.

    Attributes:
        delay: seconds on the receiver's clock from arrival to the effect of a ``delayed_effect``.
        request: the id of the request that drew it; None while it is armed.
        proof: ``seq`` of the event that was written before it struck; None until then.
    """

    nth: int
    fault: Fault
    delay: int
    request: int | None
    proof: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of what happened, in the order in which it was written.

    ``what`` is arrived, struck (``detail``: the fault), released (how, or ``bound``), gave_up (who
    did on a withheld answer: ``caller``, ``bound``; ``ended``: the receiver itself did), effect
    (its name), handled (the outcome), unanswered, or advanced (the clock; no request).
    """

    seq: int
    request: int | None
    what: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """What the receiver says of a key.

    Attributes:
        took_effect: ``expired`` where it did, and the key is no longer honoured; ``unknown`` where
            keys mean nothing to this receiver.
        in_flight: whether something that was sent may still act under this key: a request that is
            not handled, or bytes that are not read yet and may be one.
    """

    took_effect: TookEffect
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A request that is held: ``hold_before`` it is handled, or ``hold_after`` it was."""

    request: int
    nth: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Record:
    """All that a receiver recorded."""

    requests: tuple[Request, ...]
    effects: tuple[Effect, ...]
    strikes: tuple[Strike, ...]
    events: tuple[Event, ...]
    clock: int
