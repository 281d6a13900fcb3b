"""Common parts of all sandboxes: self-test, turns and deadlines."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from modicum.api.ports.escrow import Limits, Still, go_on
from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.escrow.programs import Program, Table
from modicum.sandbox.deadline import Deadline
from modicum.sandbox.fixed_time import at_fixed_time
from modicum.sandbox.job import job_of
from modicum.sandbox.requirements import must_be_idle
from modicum.sandbox.scores import score_of
from modicum.sandbox.slots import SlotLease, Slots, slot_lease


class Tier(ABC):
    """A sandbox, tested once per process, in which programs take turns.

    Args:
        uid: As root, the user that runs programs, used for nothing else; with
            concurrent runs, the first of as many. Otherwise None.
        at_a_time: The number of concurrent runs; others wait. Concurrent programs share
            processors and caches, through which they can signal to each other.
    """

    #: Its name.
    name: ClassVar[str]
    #: The language of its programs, and the tiers of others.
    language: ClassVar[str]
    other_tier: ClassVar[str]

    def __init__(self, uid: int | None = None, at_a_time: int = 1) -> None:
        self._places = Slots(uid, at_a_time)
        self._lock = threading.Lock()
        self._checked_in: int | None = None

    @property
    def tier(self) -> str:
        """Return its tier."""
        return self.name

    @property
    def uid(self) -> int | None:
        """The first of the users that programs run as; None if they are this one."""
        return self._places.uid

    def check(self) -> None:
        """Return if it is there, and held all that its own test tried in it."""
        self._must_hold(Deadline())

    @contextmanager
    def turn(self, still: Still = go_on) -> Iterator[Turn]:
        """Take an exclusive turn for the length of the block."""
        deadline = Deadline(still)
        self._must_hold(deadline)
        with slot_lease(self._places, deadline) as stay:
            yield Turn(self, stay)

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        """Return the score of one program in a separate turn."""
        self.refuse_foreign(program)
        with self.turn() as turn:
            return turn.score(program, tables, reference, limits)

    def refuse_foreign(self, program: Program) -> None:
        """Refuse a program that it does not hold."""
        if program.language != self.language:
            raise InputError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"{self.name} runs programs in {self.language}, not in"
                    f" {program.language}",
                    help=f"use the tier {self.other_tier}",
                )
            )

    @abstractmethod
    def running(
        self,
        program: Program,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
    ) -> AbstractContextManager[bytes]:
        """Run a program; return its record. It is gone after the block."""

    @abstractmethod
    def _needs(self) -> list[Problem]:
        """Return everything that is missing, with one remedy each."""

    @abstractmethod
    def _test(self) -> None:
        """Run the self-test, while nothing else runs."""

    def _must_hold(self, deadline: Deadline) -> None:
        """Return if it passed its own test in this process, now or before."""
        deadline.wait(lambda seconds: self._lock.acquire(timeout=seconds))
        try:
            if self._checked_in == os.getpid():
                return
            if problems := self._needs():
                raise UnavailableError(*problems)
            with self._places.alone(deadline):
                must_be_idle(self._places.uid, self._places.at_a_time)
                self._test()
            self._checked_in = os.getpid()
        finally:
            self._lock.release()


@dataclass(frozen=True, slots=True)
class Turn:
    """An exclusive turn on a sandbox.

    Attributes:
        tier: The sandbox.
        stay: The slot of its programs.
    """

    tier: Tier
    stay: SlotLease

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        """Return the score of one program, in its range; None if it has none."""
        return self.score_job(program, job_of(program, tables, reference), limits)

    def score_job(
        self, program: Program, job: BinaryIO | None, limits: Limits
    ) -> float | None:
        """Return the score of one program, as `score` does."""
        self.tier.refuse_foreign(program)

        @contextmanager
        def run(end_at: float, uid: int | None) -> Iterator[float | None]:
            if job is None:
                yield None
                return
            with (
                job,
                self.tier.running(program, job.fileno(), limits, end_at, uid) as record,
            ):
                yield score_of(record, program.range)

        return at_fixed_time(self.stay, limits, run)
