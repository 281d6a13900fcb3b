"""Using a reservation: started before the first row is read, published at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, SupportsIndex

from modicum.accounting import Loss
from modicum.accounting.losses import total_of
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import Noise
from modicum.api.ports.engine import Engines, Sampler
from modicum.api.ports.reservation import InUse, Reserved, ReservedLoss, loss_of_unit
from modicum.core.canonical import Plain
from modicum.core.diagnostics import fail, nearest
from modicum.core.errors import Code, ConflictError, InputError, Problem, UsageError
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.log.events import ReleaseStarted
from modicum.ledger.state.lifecycle import ReleaseStatus, next_status
from modicum.policy.past_units import Known, units_of

if TYPE_CHECKING:
    from modicum.api.local.decision import Decision
    from modicum.core.document import Node
    from modicum.query.query_file import QueryFile
    from modicum.query.results import Answers

#: Batch size of draws, where the noise is a sum of several.
_AT_A_TIME: Final = 1024
#: Far above any noise that is drawn, and within floats.
_FLOATS_MAX: Final = 10**300


def with_noise(
    use: InUse, mechanism: Reserved, sampler: Sampler, values: Iterable[SupportsIndex]
) -> list[int]:
    """Return integers with the noise reserved for them.

    The scale is the reserved one, or the next float above it: more noise costs less.

    Args:
        use: The reservation in use.
        mechanism: The mechanism.
        sampler: The source of noise.
        values: The numbers.

    Raises:
        InputError: If the mechanism adds no discrete noise, runs on a sample, or
            something is no whole number.
        ConflictError: If it ran already, or rows may not be read now.
        UnavailableError: If the sampler fails.
    """
    use.must_run()  # The inputs of the numbers may be read only now.
    noise = _noise_of(mechanism.kind)
    if noise is None:
        drawn = sorted(name for name in RELEASE_KINDS if _noise_of(name))
        raise fail(
            Code.DOES_NOT_FIT,
            f"`{mechanism.name}` is `{mechanism.kind}`: modicum draws discrete noise"
            " only",
            notes=("the noise must be the noise that is priced",),
            help=f"reserve  {'  or  '.join(drawn)},  with a step size that you choose",
        )
    if mechanism.sampled:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{mechanism.name}` runs on a secret sample, which modicum does not draw",
            help="use a private query: it draws the sample itself",
        )
    known = mechanism.parameters
    if noise.scale not in known:
        raise fail(
            Code.MISSING_KEY,
            f"`{mechanism.name}` is reserved without `{noise.scale}`",
            help=f"reserve it with `{noise.scale}` and `sensitivity`, not with its"
            " cost",
        )
    exact = known[noise.scale]
    scale = _float_above(exact) if noise.made is None else exact
    numbers = _whole(values)
    for moved in mechanism.sensitivities.values():
        sampler.check(noise.law, scale, moved)
    use.claim(mechanism.name)
    if noise.made is None:
        return sampler.add(noise.law, scale, numbers)
    draws = _draws(sampler, noise.law, scale)
    return [number + noise.made(draws, known) for number in numbers]


def _noise_of(kind: str) -> Noise | None:
    return RELEASE_KINDS[kind].noise if kind in RELEASE_KINDS else None


def _draws(sampler: Sampler, law: str, scale: Fraction) -> Iterator[int]:
    """Yield noise around 0, without end."""
    while True:
        yield from sampler.add(law, scale, [0] * _AT_A_TIME)


def _float_above(scale: Fraction) -> Fraction:
    """Return the least float that is not below a scale."""
    if scale > _FLOATS_MAX:
        return scale  # The sampler refuses it.
    near = float(scale)
    return Fraction(near if Fraction(near) >= scale else math.nextafter(near, math.inf))


def _whole(values: Iterable[SupportsIndex]) -> list[int]:
    try:
        return [one.__index__() for one in values]
    except (AttributeError, TypeError):
        pass
    # Outside of the handler: else the value would stay attached to the error.
    raise InputError(
        Problem(
            Code.DATA_NOT_AS_DECLARED,
            "noise is added to a list of integers, and the list contains something"
            " else",
            help="round to multiples of a step, and count in steps; the sensitivity"
            " is that of the rounded numbers",
        )
    )


class Ledger(Protocol):
    """The ledger operations that using a reservation needs."""

    def check(self, release: Node) -> Decision:
        """Return the decision that `submit` would make now."""
        ...

    def standing(self, release: str) -> Standing:
        """Return the status of a release."""
        ...

    def release_of(self, standing: Standing) -> RecordedRelease:
        """Return the contents and loss of a release, as stored."""
        ...

    def policy_text_at(self, seq: int) -> str:
        """Return the text of the policy that held at an entry; empty for none."""
        ...

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read."""
        ...

    def publish(self, release: str) -> Standing:
        """Mark a started release as published."""
        ...


class Adapters(Engines, Protocol):
    """Engines and other libraries, limited to what is reserved."""

    def process(self) -> object:
        """Return an object that distinguishes this process from its forks."""
        ...

    def opendp(self, use: InUse, mechanism: Reserved) -> Any:
        """Return a runner of OpenDP for one mechanism of a reservation."""
        ...

    def opacus(self, use: InUse, mechanism: Reserved) -> Any:
        """Return a trainer with Opacus for one mechanism of a reservation."""
        ...

    def tumult(
        self,
        use: InUse,
        mechanism: Reserved,
        python: str,
        settings: Mapping[str, str] | None,
    ) -> Any:
        """Return a runner of Tumult scripts for one mechanism of a reservation."""
        ...


class Reservation:
    """The reservation of a release. Reading it changes nothing.

    Args:
        ledger: The ledger.
        standing: The status of the release.
    """

    def __init__(self, ledger: Ledger, standing: Standing) -> None:
        recorded = ledger.release_of(standing)
        self._ledger = ledger
        self._mechanisms = {one.name: one for one in map(Reserved, recorded.mechanisms)}
        self._charged = [one.losses for one in recorded.mechanisms]
        self._seq = standing.seq
        #: The id of the release.
        self.release: Final = standing.id

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the reserved mechanisms; each may run once."""
        return tuple(self._mechanisms)

    def mechanism(self, name: str) -> Reserved:
        """Return a mechanism of the reservation.

        Args:
            name: Its name.

        Raises:
            InputError: If the release has no such mechanism.
        """
        found = self._mechanisms.get(name)
        if found is None:
            raise fail(
                Code.UNKNOWN_NAME,
                f"release `{self.release}` has no mechanism `{name[:200]}`",
                notes=(f"it has {', '.join(f'`{one}`' for one in self._mechanisms)}",),
                help=nearest(name, self._mechanisms),
            )
        return found

    def loss(self, unit: str) -> ReservedLoss:
        """Return the reserved loss of all mechanisms together for a unit.

        Args:
            unit: The unit.

        Raises:
            InputError: If the policy has no such unit.
        """
        total = total_of(loss_of_unit(losses, unit) for losses in self._charged)
        units = tuple(total.units(index) for index in range(len(total.finite)))
        return ReservedLoss(Loss(units))

    def unit(self, name: str) -> Known:
        """Return the policy's declaration of a unit at the time of reservation.

        Args:
            name: The unit.

        Raises:
            InputError: If it had no such unit.
        """
        text = self._ledger.policy_text_at(self._seq)
        known = units_of(text) if text else None
        if known is None or name not in known:
            raise fail(
                Code.UNKNOWN_UNIT,
                f"the policy of `{self.release}` has no privacy unit `{name[:200]}`",
                help=nearest(name, known or ()),
            )
        return known[name]

    @property
    def costs(self) -> dict[str, dict[str, Plain]]:
        """By mechanism and unit, the declared guarantees, with exact numbers as text.

        They are plain data, for programs that cannot import this package.
        """
        return {name: one.costs for name, one in self._mechanisms.items()}


#: The use that this process is in. `setdefault` is one step, also among threads.
_NOW: Final[dict[str, object]] = {}


class Use(Reservation):
    """A reservation in use: a `with` block that starts it and publishes it.

    Entering starts the release, durably, before anything runs: from then on its loss
    is spent. Leaving publishes it. If the block ends with an exception, the release
    stays started, and spent. Outside of the block nothing runs.

    Args:
        ledger: The ledger.
        release: The id of a reserved release.
        adapters: Other libraries; None for none.
        within: Set if another process has started the release and will publish it, as
            `modicum release run` does; then the block does neither. It marks a
            mechanism as run, for all processes, and returns whether that is the first
            time.

    Raises:
        InputError: If the ledger knows no such release.
        ConflictError: If it is not reserved; or, with `within`, not started.
    """

    def __init__(
        self,
        ledger: Ledger,
        release: str,
        adapters: Adapters | None = None,
        *,
        within: Callable[[str], bool] | None = None,
    ) -> None:
        standing = ledger.standing(release)
        _refuse_other_states(standing, within=within is not None)
        super().__init__(ledger, standing)
        self._within = within
        self._adapters = adapters
        self._process = self._here()
        self._ran: dict[str, object] = {}
        self._endings: list[Callable[[], None]] = []
        self._state = "before"

    # --- other libraries ---

    def opendp(self, mechanism: str) -> Any:
        """Return a runner of OpenDP for one mechanism of the reservation.

        Args:
            mechanism: Its name.

        Raises:
            InputError: If the release has no such mechanism.
            UsageError: If OpenDP is not installed.
        """
        return self._libraries.opendp(self, self.mechanism(mechanism))

    def opacus(self, mechanism: str) -> Any:
        """Return a trainer with Opacus for one mechanism of the reservation.

        Args:
            mechanism: Its name.

        Raises:
            InputError: If the release has no such mechanism.
            UsageError: If Opacus is not installed.
        """
        return self._libraries.opacus(self, self.mechanism(mechanism))

    def tumult(
        self,
        mechanism: str,
        *,
        python: str,
        settings: Mapping[str, str] | None = None,
    ) -> Any:
        """Return a runner of Tumult Analytics scripts for one mechanism.

        Args:
            mechanism: Its name.
            python: The Python of an environment with Tumult Analytics.
            settings: Settings of its Spark, such as `spark.driver.memory`.

        Raises:
            InputError: If the release has no such mechanism, or it is reserved in a
                form that a session of Tumult cannot have.
        """
        one = self.mechanism(mechanism)
        return self._libraries.tumult(self, one, python, settings)

    # --- built-in mechanisms ---

    def query(
        self,
        query: QueryFile,
        data: object,
        *,
        engine: str = "duckdb",
        spark_master: str = "local[*]",
    ) -> Answers:
        """Return the answers to the query of the reservation.

        Args:
            query: The query; its release is the one that is reserved.
            data: The location of its rows, as in `ws.queries.run`.
            engine: The name of the engine, such as `duckdb`.
            spark_master: The cluster that Spark runs on.

        Raises:
            ConflictError: If another release is reserved, it ran already, or rows may
                not be read now.
            InputError: If the form of the data is not as declared.
            StaleError: If it was read under another policy than the ledger decides by.
            UsageError: If there is no such engine, or a table has no data.
            ModicumError: If the engine fails.
        """
        from modicum.api.local.queries.actions import Where, answers_under

        self.must_run()
        where = Where(data=data, engine=engine, spark_master=spark_master)
        return answers_under(self, self._ledger, self._libraries, query, where)

    def noise(self, mechanism: str, values: Iterable[SupportsIndex]) -> list[int]:
        """Return integers with the noise reserved for them.

        Args:
            mechanism: The name of a `discrete-gaussian` or `discrete-laplace`.
            values: All numbers that the mechanism releases. Together they must not
                change by more than its sensitivity: that cannot be checked here.

        Raises:
            InputError: If the release has no such mechanism, it is of another kind,
                or something is no whole number.
            ConflictError: If it ran already, or rows may not be read now.
            UnavailableError: If OpenDP fails.
        """
        sampler = self._libraries.sampler()
        return with_noise(self, self.mechanism(mechanism), sampler, values)

    @property
    def _libraries(self) -> Adapters:
        if self._adapters is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this workspace has no other libraries",
                    help="open it with  mo.open",
                )
            )
        return self._adapters

    # --- running ---

    def _here(self) -> object:
        return None if self._adapters is None else self._adapters.process()

    def must_run(self) -> None:
        """Check that rows may be read now.

        Raises:
            ConflictError: If the block was not entered, or has ended.
        """
        if self._here() != self._process:
            raise _busy("this process is a copy of the one that entered the block")
        if self._state != "in it":
            raise ConflictError(
                Problem(
                    Code.RELEASE_STATE,
                    f"nothing runs {self._state} the block that uses `{self.release}`",
                    help="read rows inside  with ws.use(…) as use:",
                )
            )

    def claim(self, mechanism: str) -> None:
        """Mark a mechanism as run; each may run once.

        Args:
            mechanism: Its name.

        Raises:
            InputError: If the release has no such mechanism.
            ConflictError: If it ran already, or rows may not be read now.
        """
        self.must_run()
        name, own = self.mechanism(mechanism).name, object()
        first = self._ran.setdefault(name, own) is own
        if not first or (self._within is not None and not self._within(name)):
            raise ConflictError(
                Problem(
                    Code.RELEASE_STATE,
                    f"mechanism `{mechanism}` of `{self.release}` has already run",
                    notes=("the reservation covers one run",),
                    help="describe each run as a separate mechanism",
                )
            )

    def before_post(self, ending: Callable[[], None]) -> None:
        """Register a check that must pass before the release is published.

        Args:
            ending: Raises if it did not; the release stays started then.
        """
        self._endings.append(ending)

    def __enter__(self) -> Self:
        """Start the release.

        Raises:
            ConflictError: If it is not reserved any more, if the block was entered
                before, or if this process is in the block of another use.
        """
        if self._state != "before":
            raise _busy(f"the use of `{self.release}` has ended")
        if _NOW.setdefault("use", self) is not self:
            raise _busy("this process uses another reservation")
        try:
            if self._within is None:
                self._ledger.start(self.release)
        except BaseException:
            del _NOW["use"]
            raise
        self._state = "in it"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Publish the release, unless the block failed."""
        if self._here() != self._process:
            return  # The one that entered the block publishes it.
        try:
            if kind is None:
                for ending in self._endings:
                    ending()
        finally:
            self._state = "after"
            del _NOW["use"]
        if kind is None and self._within is None:
            self._ledger.publish(self.release)


def _refuse_other_states(standing: Standing, *, within: bool) -> None:
    if not within:
        # Whether its time is over was looked at with its standing.
        next_status(standing, ReleaseStarted(standing.id), "")
    elif standing.status is not ReleaseStatus.STARTED:
        raise ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"release `{standing.id}` is {standing.status.value}, and not started",
                help=f"run the script with  modicum release run {standing.id} -- …",
            )
        )


def _busy(message: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            message,
            help="use one reservation after the other, each in one block",
        )
    )
