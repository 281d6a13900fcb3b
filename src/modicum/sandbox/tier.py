"""What all sandboxes on this machine have in common: their test, turns and times."""

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
from modicum.sandbox.slots import HeldSlot, Slots, held_slot


class Tier(ABC):
    """A sandbox, tested once in each process, in which programs take turns.

    Args:
        uid: As root, the user that programs run as, and that nobody else is; with
            several at a time, the first of as many. Otherwise None.
        at_a_time: How many run at once; others wait. Programs that run at once share
            processors and caches, through which they can tell each other something.
    """

    #: What people call it.
    name: ClassVar[str]
    #: What programs in it are written in, and the tier for others.
    language: ClassVar[str]
    other_tier: ClassVar[str]

    def __init__(self, uid: int | None = None, at_a_time: int = 1) -> None:
        self._places = Slots(uid, at_a_time)
        self._lock = threading.Lock()
        self._checked_in: int | None = None

    @property
    def tier(self) -> str:
        """What people call it."""
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
        """Have it for as long as the block takes: others wait."""
        patience = Deadline(still)
        self._must_hold(patience)
        with held_slot(self._places, patience) as stay:
            yield Turn(self, stay)

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        """Return the score of one program in a turn of its own."""
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
        """Run a program; return what it recorded. It is gone after the block."""

    @abstractmethod
    def _needs(self) -> list[Problem]:
        """Return everything that is missing, with one remedy each."""

    @abstractmethod
    def _test(self) -> None:
        """Try in it what it must hold, while nothing else runs."""

    def _must_hold(self, patience: Deadline) -> None:
        """Return if it passed its own test in this process, now or before."""
        patience.wait(lambda seconds: self._lock.acquire(timeout=seconds))
        try:
            if self._checked_in == os.getpid():
                return
            if problems := self._needs():
                raise UnavailableError(*problems)
            with self._places.alone(patience):
                must_be_idle(self._places.uid, self._places.at_a_time)
                self._test()
            self._checked_in = os.getpid()
        finally:
            self._lock.release()


@dataclass(frozen=True, slots=True)
class Turn:
    """A sandbox, for as long as somebody has it.

    Attributes:
        tier: The sandbox.
        stay: Where its programs run.
    """

    tier: Tier
    stay: HeldSlot

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
