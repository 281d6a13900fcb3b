"""A kind of mechanism: its curve, its parameters, and how a release describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module

from msgspec import Struct, field

from modicum.accounting.curves import Curve
from modicum.accounting.privacy_loss.pairs import Batch
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.core.reader import (
    count,
    fail,
    items,
    number,
    placed,
    positive,
    probability,
)

#: Parameters by name.
Values = Mapping[str, Fraction]

#: Relations chosen by those who state the parameters.
OF_SENSITIVITY = "that of the sensitivity"
OF_GUARANTEE = "that of the guarantee"
#: Larger whole parameters are refused in a release.
WHOLE_MAX = 10**6
#: Longer lists of numbers are refused.
NUMBERS_MAX = 10**4
#: The largest numerator and denominator of a number in a list.
_LISTED_MOST = 10**40
#: Parameters that a release gives by unit, beside the sensitivity.
OF_UNIT = ("participations", "separation")


class Parameter(Struct, frozen=True):
    """A parameter of a kind of mechanism.

    Attributes:
        name: As it is typed.
        meaning: Its meaning, in brief.
        rising: Whether the loss rises with it; that of noise falls.
        default: Its default; None if it is required.
        least: It is at least this, or above it if `open_below`.
        most: It is at most this, if there is a bound.
        whole: Whether it is an integer.
        open_below: Whether `least` itself is excluded.
        least_by: A larger `least` that follows from the other parameters, if it does.
        listed: Whether it is a list of numbers of at least 0, the first above 0.
    """

    name: str
    meaning: str
    rising: bool = True
    default: Fraction | None = None
    least: Fraction = Fraction(0)
    most: Fraction | None = None
    whole: bool = False
    open_below: bool = True
    least_by: Callable[[Values], Fraction] | None = None
    listed: bool = False

    @property
    def of_noise(self) -> bool:
        """Whether it scales the noise, up or down: any positive number may."""
        return not self.whole and self.most is None

    def check(self, value: Fraction) -> None:
        """Refuse a value that is out of range.

        Raises:
            InputError: If it is.
        """
        below = value < self.least or (self.open_below and value == self.least)
        above = self.most is not None and value > self.most
        broken = self.whole and value.denominator != 1
        if below or above or broken:
            relation = "above" if self.open_below else "at least"
            upper = "" if self.most is None else f", at most {self.most}"
            number = "an integer" if self.whole else "a number"
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"{self.name} is {number_text(value)}",
                    help=f"it is {number} {relation} {self.least}{upper}",
                )
            )

    def read(self, node: Node, what: str) -> Fraction:
        """Return its value in a release file: no probability is 0 or 1 there.

        Raises:
            InputError: If it is no number, or out of range.
        """
        if self.whole:
            least = int(self.least)
            return Fraction(count(node, what, at_least=least, at_most=WHOLE_MAX))
        value = (probability if self.most == 1 else positive)(node, what)
        with placed(node):
            self.check(value)
        return value


def read_listed(node: Node, what: str) -> tuple[Fraction, ...]:
    """Return the numbers of a list: at least 0, the first above 0.

    Raises:
        InputError: If it is something else, or too long.

    Examples:
        >>> from modicum.core.document import from_python
        >>> read_listed(from_python([1, 0]), "coefficients")
        (Fraction(1, 1), Fraction(0, 1))
    """
    listed = items(node, what)
    values = tuple(number(one, f"a number of {what}") for one in listed)
    for value, one in zip(values, listed, strict=True):
        if max(abs(value.numerator), value.denominator) > _LISTED_MOST:
            raise fail(
                Code.OUT_OF_RANGE,
                f"a number of {what} has more than 40 digits",
                one,
                help="round it up",
            )
    if not values or values[0] <= 0 or min(values) < 0 or len(values) > NUMBERS_MAX:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be at most {NUMBERS_MAX} numbers of at least 0, the first"
            " above 0",
            node,
            help="write the absolute value of a negative one, and leave zeros at the"
            " end out",
        )
    return values


def noise_size(name: str, meaning: str) -> Parameter:
    """Return a parameter of which more costs less.

    Examples:
        >>> noise_size("scale", "scale of the noise").rising
        False
    """
    return Parameter(name, meaning, rising=False)


def whole_number(
    name: str, meaning: str, default: int | None = 1, least: int = 1
) -> Parameter:
    """Return a parameter that counts something.

    Examples:
        >>> whole_number("answers", "independent answers").default
        Fraction(1, 1)
    """
    given = None if default is None else Fraction(default)
    return Parameter(
        name,
        meaning,
        default=given,
        least=Fraction(least),
        whole=True,
        open_below=False,
    )


def change(norm: str, of: str = "the answer") -> Parameter:
    """Return the sensitivity of a kind, 1 by default.

    Examples:
        >>> change("L1").meaning
        'largest L1 change of the answer'
    """
    meaning = f"largest {norm} change of {of}"
    return Parameter("sensitivity", meaning, default=Fraction(1))


class Noise(Struct, frozen=True):
    """How modicum itself samples the noise of a kind, on integers.

    Attributes:
        law: The distribution around 0: discrete `laplace` or `gaussian` noise.
        scale: The parameter that is its scale.
        made: Maps independent draws, as many as needed, and the parameters to the noise
            of one number; None if that is one draw. Its scale is then drawn exactly,
            and not rounded up: more of it may cost more.
    """

    law: str
    scale: str
    made: Callable[[Iterator[int], Values], int] | None = None


class Kind(Struct, frozen=True):
    """A kind of mechanism.

    With all its parameters it has a curve; with a free one it is a family, whose free
    parameter can be calibrated to a budget. In a release, the sensitivity is given by
    unit. A kind without one takes its own samples of one unit, whose contribution it
    clips, if it has a `sampling-rate`; else it is a local randomizer: each instance
    answers for itself, and a contribution bound limits the number of answers.

    Attributes:
        name: As it is typed.
        parameters: All of them, the one to calibrate first by habit in front.
        build: From all parameters to the curve; a listed one has one number there.
        relation: The neighboring relation under which the curve holds.
        norm: The norm of its sensitivity, or None if it has no sensitivity.
        measure: The measure in which a cost may be declared beside parameters.
        repeats: The parameter that counts independent runs, if there is one.
        target: The parameter that `eps` and `delta` find in a release, if one is.
        slips: Common mistakes for its parameters, each with the remedy.
        assumes: What its sensitivity says, where the norm does not say it.
        of_rho: From a rho that is declared of such noise to its curve, if that is
            more than the curve of any rho-zCDP mechanism.
        on_sample: From all parameters and a rate to the curve on a Poisson sample, if
            that is better than for any mechanism with its curve.
        noise: How modicum draws its noise, if it does.
        pairs: From all parameters to pairs that dominate it, if any are known that
            say more than its curve.
        pairs_on_sample: From all parameters and a rate to such pairs on a Poisson
            sample.
        of_list: From a listed parameter and all others to the curve.
    """

    name: str
    parameters: tuple[Parameter, ...]
    build: Callable[[Values], Curve]
    relation: str = OF_SENSITIVITY
    norm: str | None = None
    measure: str | None = None
    repeats: str = ""
    target: str = ""
    slips: Mapping[str, str] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()
    of_rho: Callable[[Fraction], Curve] | None = None
    on_sample: Callable[[Values, Fraction], Curve] | None = None
    noise: Noise | None = None
    pairs: Callable[[Values], Batch | None] | None = None
    pairs_on_sample: Callable[[Values, Fraction], Batch | None] | None = None
    of_list: Callable[[tuple[Fraction, ...], Values], Curve] | None = None

    @property
    def described(self) -> Mapping[str, Parameter]:
        """The parameters that a release gives under their own names."""
        others = {"sensitivity", "sampling-rate", self.repeats if self.local else ""}
        others.update(OF_UNIT)
        return {p.name: p for p in self.parameters if p.name not in others}

    @property
    def of_unit(self) -> Mapping[str, Parameter]:
        """The parameters that a release gives by unit, beside the sensitivity."""
        return {p.name: p for p in self.parameters if p.name in OF_UNIT}

    @property
    def amount(self) -> str:
        """An example of what is given by unit."""
        keys = (p.name for p in self.of_unit.values() if p.default is None)
        return f"{{{', '.join(f'{key}: …' for key in (self.norm, *keys))}}}"

    @property
    def needed(self) -> tuple[str, ...]:
        """Those of them that have no default."""
        return tuple(p.name for p in self.described.values() if p.default is None)

    @property
    def defaults(self) -> Values:
        """The optional parameters."""
        return {p.name: p.default for p in self.parameters if p.default is not None}

    @property
    def local(self) -> bool:
        """Whether it is a local randomizer."""
        return self.norm is None and bool(self.parameters) and not self.samples

    @property
    def samples(self) -> bool:
        """Whether it takes its own samples, of a unit that a release names."""
        return any(one.name == "sampling-rate" for one in self.parameters)

    @property
    def open_relation(self) -> bool:
        """Whether those who state the parameters choose the neighbors."""
        return self.relation in {OF_SENSITIVITY, OF_GUARANTEE}

    @property
    def amplified(self) -> bool:
        """Whether a release amplifies it by a sample."""
        return self.open_relation and not self.of_unit


class Kinds(Mapping[str, Kind]):
    """Kinds by name, each imported from its module on first use.

    Args:
        table: Names, modules of this package, and where each can be named.
        place: One of these places; the others are left out.
    """

    def __init__(self, table: Sequence[tuple[str, str, str]], place: str) -> None:
        self._modules = {
            name: module for name, module, places in table if place in places.split()
        }
        self._read: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._read:
            module = import_module(f"{__package__}.{self._modules[name]}")
            self._read |= {kind.name: kind for kind in module.KINDS}
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def description(
    kind: str,
    attributes: Sequence[str],
    more: Mapping[str, object],
    **given: object,
) -> dict[str, object]:
    """Return a mechanism as in a release file; None values are left out.

    Examples:
        >>> description("laplace", ["age"], {"name": "n"}, scale=2, sensitivity=None)
        {'mechanism': 'laplace', 'attributes': ('age',), 'scale': 2, 'name': 'n'}
    """
    # Anew, so that it does not change with the caller's list.
    own = tuple(attributes) if isinstance(attributes, list) else attributes
    present = {key: value for key, value in given.items() if value is not None}
    return {"mechanism": kind, "attributes": own, **present, **more}
