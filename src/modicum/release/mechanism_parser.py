"""From a marked tree to one mechanism of a release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from modicum.accounting import ApproxBudget, Budget
from modicum.accounting.budget_format import cost_delta, read_measured
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import Kind, read_listed
from modicum.core.document import Kind as NodeKind
from modicum.core.document import Node, Scalar, flow_text
from modicum.core.errors import Code, Problem
from modicum.core.rationals import brief
from modicum.core.reader import (
    Fields,
    Problems,
    boolean,
    choice,
    count,
    fail,
    items,
    name,
    nearest,
    placed,
    positive,
    probability,
    text,
)
from modicum.release.header import MechanismDefaults
from modicum.release.model import Mechanism
from modicum.release.part_parser import read_part
from modicum.release.parts import Part
from modicum.release.sampling import Sampling
from modicum.release.vocabulary import Vocabulary

if TYPE_CHECKING:
    from modicum.accounting.number_of_runs import Runs

#: The methods of sampling.
DRAWS = ("poisson",)


def read_sampling(
    fields: Fields, inherited: Sampling | None, vocabulary: Vocabulary, found: Problems
) -> Sampling | None:
    """Return the sampling of a release or a mechanism; None for all rows.

    Args:
        fields: Its keys; `sampling` is consumed.
        inherited: The default.
        vocabulary: The words it may use.
        found: Collects the mistakes.
    """
    node = fields.take_optional("sampling")
    if node is not None:
        with found.guard():
            return _sampling(node, vocabulary)
    return inherited


def _sampling(node: Node, vocabulary: Vocabulary) -> Sampling:
    found = Problems()
    fields = Fields(node, "`sampling`")
    unit, rate = "?", None
    with found.guard():
        unit = choice(
            fields.take("unit"), "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT
        )
    with found.guard():
        rate = probability(fields.take("rate"), "the rate of a sample")
    with found.guard():
        drawn = fields.take_optional("by")
        if drawn is not None:
            _refuse_other_draws(drawn)
    with found.guard():
        fields.finish()
    found.raise_any()
    assert rate is not None
    return Sampling(unit, rate, node.mark)


def _refuse_other_draws(node: Node) -> None:
    if text(node, "how a sample is drawn") not in DRAWS:
        raise fail(
            Code.NOT_SUPPORTED,
            "releases are priced on Poisson samples only",
            node,
            notes=(
                "a sample of fixed size, or a shuffled batch, is not a Poisson sample",
            ),
            help="`modicum account subsample` shows the loss of a sample of fixed size:"
            " use `mechanism: declared` with that as its `cost`",
        )


#: Larger enforced contribution bounds are refused.
CONTRIBUTIONS_MAX = 10**6

#: Keys below a privacy unit that are often written without one.
_AMOUNTS = frozenset({"l1", "l2", "linf", "teachers", "eps", "rho", "mu", "rdp"})

T = TypeVar("T")

_PLANNED = MappingProxyType(
    {
        "noise": "give `mechanism: gaussian` with `sigma`, or with `eps` and `delta`,"
        " or another mechanism with its parameters, instead"
    }
)


def parse_labels(
    fields: Fields, vocabulary: Vocabulary, found: Problems
) -> dict[str, str]:
    """Return the labels of a release or a mechanism.

    Args:
        fields: Its keys.
        vocabulary: The labels and their values.
        found: Collects the mistakes; invalid labels are left out.
    """
    labels: dict[str, str] = {}
    for label, declared in vocabulary.labels.items():
        with found.guard():
            value = fields.take_optional(label)
            if value is not None:
                labels[label] = choice(
                    value,
                    f"value of label `{label}`",
                    declared.values,
                    Code.UNKNOWN_LABEL_VALUE,
                )
    return labels


def parse_mechanism(
    node: Node,
    number: int,
    inherited: MechanismDefaults,
    vocabulary: Vocabulary,
) -> Mechanism:
    """Return the mechanism of a marked tree.

    Args:
        node: The tree.
        number: Which one of the release it is.
        inherited: The defaults of the release.
        vocabulary: The words it may use.

    Raises:
        InputError: With every mistake found, each with its position.
    """
    found = Problems()
    fields = Fields(node, f"mechanism {number}")
    given_name = fields.take_optional("name")
    own_name = f"mechanism-{number}"
    if given_name is not None:
        with found.guard():
            own_name = name(given_name, "the mechanism's name")
    word = choice(
        fields.take("mechanism"), "mechanism", RELEASE_KINDS, Code.UNKNOWN_MECHANISM
    )
    kind = RELEASE_KINDS[word]
    attributes: tuple[str, ...] = ()
    attributes_node: Node | None = None
    with found.guard():
        attributes_node = fields.take("attributes")
        attributes = read_attributes(attributes_node, vocabulary)
    own_labels = parse_labels(fields, vocabulary, found)
    labels = {**inherited.labels, **own_labels}
    for key in own_labels.keys() & kind.described.keys() & kind.defaults.keys():
        found.add(_label_for_parameter(key, kind, node))
    numbers = _read_numbers(fields, kind, vocabulary, found)
    part = read_part(fields, inherited.part, vocabulary, found)
    sampling = read_sampling(fields, inherited.sampling, vocabulary, found)
    if kind.target and not {"eps", "delta"} & vocabulary.labels.keys():
        with found.guard():
            _calibrate(fields, kind, numbers, sampled=sampling is not None)
    selection = _read_selection(fields, vocabulary, found)
    cost_node = fields.take_optional("cost")
    cost: dict[str, Budget] = {}
    if cost_node is not None:
        with found.guard():
            amount = f"{{{kind.measure or 'eps'}: …}}"
            cost = _units_of(cost_node, "cost", vocabulary, _cost, amount)
    with found.guard():
        fields.finish(unsupported=_PLANNED, slips=kind.slips)
    found.raise_any()
    refuse_hidden(part, attributes, attributes_node, vocabulary)
    return Mechanism(
        name=own_name,
        kind=kind.name,
        attributes=attributes,
        labels=labels,
        cost=cost,
        part=part,
        sampling=sampling,
        selection=selection,
        mark=node.mark,
        cost_mark=cost_node.mark if cost_node is not None else node.mark,
        **numbers,
    )


def _label_for_parameter(key: str, kind: Kind, node: Node) -> Problem:
    """Return that a label hides a parameter, whose default would be priced instead."""
    return Problem(
        Code.KEYS_CONFLICT,
        f"`{key}` is a label of the policy and a parameter of `{kind.name}`",
        node.mark,
        help=f"use `mechanism: declared` with its `cost`, or rename `{key}`",
    )


def _read_selection(
    fields: Fields, vocabulary: Vocabulary, found: Problems
) -> Runs | None:
    """Return how often a mechanism runs for its best output; None if once."""
    labeled = "selection" in vocabulary.labels
    node = None if labeled else fields.take_optional("selection")
    if node is not None:
        from modicum.release.selection import read_selection

        with found.guard():
            return read_selection(node)
    return None


def _read_numbers(
    fields: Fields, kind: Kind, vocabulary: Vocabulary, found: Problems
) -> dict[str, Any]:
    """Return the inputs of the price, as fields of a mechanism."""
    parameters: dict[str, Fraction] = {}
    read: dict[str, Any] = {
        "parameters": parameters,
        "parameter_mark": None,
        "coefficients": (),
        "sensitivity": {},
        "participation": {},
        "contribution_bound": {},
        "public_frame": False,
    }
    for key, parameter in kind.described.items():
        value = fields.take_optional(key)
        if value is not None:
            with found.guard():
                if parameter.listed:
                    read["coefficients"] = read_listed(value, f"`{key}`")
                else:
                    parameters[key] = parameter.read(value, f"`{key}`")
            read["parameter_mark"] = read["parameter_mark"] or value.mark
    if kind.norm is not None:
        with found.guard():
            moves = _sensitivity(fields, kind, kind.norm, vocabulary)
            read["sensitivity"] = {
                unit: one.pop(kind.norm) for unit, one in moves.items()
            }
            read["participation"] = {unit: one for unit, one in moves.items() if one}
    with found.guard():
        read["contribution_bound"] = _by_unit(
            fields, "contribution_bound", vocabulary, _bound, "…"
        )
    if kind.local:
        with found.guard():
            read["public_frame"] = _public_frame(fields)
    return read


def _calibrate(
    fields: Fields, kind: Kind, read: dict[str, Any], *, sampled: bool
) -> None:
    """Compute the noise of a kind from `eps` and `delta`, if these are given.

    They apply to the one unit that has a sensitivity. The charge is computed from the
    noise, as if it had been given.
    """
    noise = kind.target
    eps, delta = fields.take_optional("eps"), fields.take_optional("delta")
    node = delta if eps is None else eps
    if node is None or (eps is None and "epsilon" in fields):
        return
    sensitivity = read["sensitivity"]
    size = brief(next(iter(sensitivity.values()), Fraction(1)))
    shown = flow_text(node) if eps is not None else "…"
    target = f"eps={shown},delta={'…' if delta is None else flow_text(delta)}"
    command = f"modicum account mechanism {kind.name} sensitivity={size} --for {target}"
    by_hand = f"`{noise}`, which  {command}  finds"
    missing = "eps" if eps is None else "delta" if delta is None else ""
    problem, remedy = "", ""
    if sampled:
        problem = "`eps` and `delta` are not supported for a mechanism on a sample"
        remedy = f"write {by_hand} for one run on all rows"
    elif noise in read["parameters"]:
        problem = f"`{noise}` and `eps` are both given, and one determines the other"
        remedy = f"leave `{noise}` out, or `eps` and `delta`"
    elif missing:
        problem = f"the noise of `{kind.name}` also needs `{missing}`"
        remedy = f"also write `{missing}: …`, or {by_hand}"
    elif len(sensitivity) != 1:
        units = ", ".join(sensitivity) or "none"
        problem = f"`eps` has no privacy unit: `sensitivity` has {units}"
        remedy = f"use one unit in `sensitivity`, or write {by_hand} for one of them"
    if eps is None or delta is None or problem:
        code = Code.MISSING_KEY if missing else Code.KEYS_CONFLICT
        raise fail(code, problem, node, help=remedy)
    target_eps, target_delta = positive(eps, "`eps`"), probability(delta, "`delta`")
    target_budget = ApproxBudget(target_eps, target_delta)
    with placed(node):
        (moves,) = sensitivity.values()
        read["parameters"][noise] = _calibrated(kind.name, moves, target_budget)


@lru_cache(maxsize=4096)
def _calibrated(name: str, sensitivity: Fraction, target: ApproxBudget) -> Fraction:
    from modicum.accounting.named_mechanisms import calibrated

    kind, known = RELEASE_KINDS[name], {"sensitivity": sensitivity}
    return calibrated(kind, known, target, find=kind.target)[1]


def refuse_hidden(
    part: Part, attributes: tuple[str, ...], node: Node | None, vocabulary: Vocabulary
) -> None:
    """Refuse a `where` over an attribute that is declared as not read.

    Raises:
        InputError: If one is missing.
    """
    hidden: list[str] = []
    for box in part.where or ():
        for attribute, _ in box:
            if attribute in vocabulary.attributes and attribute not in attributes:
                hidden.append(attribute)
    if hidden:
        raise fail(
            Code.MISSING_KEY,
            f"`where` uses `{min(hidden)}`, which is not in `attributes`",
            node,
            notes=(
                "the answer depends on the filtered attributes; one that is missing"
                " would escape its rules",
            ),
            help=f"add {min(hidden)} to `attributes`",
        )


def read_attributes(node: Node, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the listed attributes of the data, without duplicates.

    Args:
        node: The list.
        vocabulary: All attributes.

    Raises:
        InputError: With every one that is unknown or repeated.
    """
    found = Problems()
    read: list[str] = []
    for item in items(node, "`attributes`"):
        with found.guard():
            attribute = text(item, "an attribute")
            if attribute not in vocabulary.attributes:
                raise fail(
                    Code.UNKNOWN_ATTRIBUTE,
                    f'unknown attribute "{attribute[:60]}" in release',
                    item,
                    label=nearest(attribute, vocabulary.attributes),
                    notes=(
                        "an undeclared attribute would escape all rules for"
                        " attributes and categories",
                    ),
                )
            if attribute in read:
                raise fail(
                    Code.DUPLICATE_NAME, f"attribute `{attribute}` is given twice", item
                )
            read.append(attribute)
    found.raise_any()
    return tuple(read)


def _by_unit(
    fields: Fields,
    key: str,
    vocabulary: Vocabulary,
    reader: Callable[[Node], T],
    form: str,
) -> dict[str, T]:
    node = fields.take_optional(key)
    return {} if node is None else _units_of(node, key, vocabulary, reader, form)


def _units_of(
    node: Node,
    key: str,
    vocabulary: Vocabulary,
    reader: Callable[[Node], T],
    form: str,
) -> dict[str, T]:
    """Return the values of a key by unit; `form` is an example of one value."""
    unit = next(iter(vocabulary.units), "UNIT")
    if isinstance(node, Scalar) and node.kind is NodeKind.NUMBER:
        form = form.replace("…", node.text)
    remedy = f"write it by privacy unit, such as  {key}: {{{unit}: {form}}}"
    by_unit = Fields(node, f"`{key}`", help=remedy)
    for one in sorted(_AMOUNTS.difference(vocabulary.units)):
        if one in by_unit:
            raise fail(
                Code.UNKNOWN_UNIT,
                f"`{key}` needs its privacy unit",
                by_unit.key_node(one),
                help=f"write  {key}: {{{unit}: {flow_text(node)}}}",
            )
    found = Problems()
    values: dict[str, T] = {}
    for unit_node, value in by_unit.rest():
        with found.guard():
            unit = choice(
                unit_node, "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT
            )
            values[unit] = reader(value)
    found.raise_any()
    return values


def _sensitivity(
    fields: Fields, kind: Kind, norm: str, vocabulary: Vocabulary
) -> dict[str, dict[str, Fraction]]:
    def read(node: Node) -> dict[str, Fraction]:
        shown = flow_text(node) if isinstance(node, Scalar) else "…"
        remedy = f"write  {kind.amount.replace('…', shown, 1)}"
        inner = Fields(node, "a sensitivity", help=remedy)
        values = {norm: positive(inner.take(norm), f"the {norm} sensitivity")}
        for key, parameter in kind.of_unit.items():
            optional = parameter.default is not None
            given = (
                inner.take_optional(key)
                if optional
                else inner.take(key, help=f"`{key}` is the {parameter.meaning}")
            )
            if given is not None:
                values[key] = parameter.read(given, f"`{key}`")
        inner.finish()
        return values

    return _by_unit(fields, "sensitivity", vocabulary, read, kind.amount)


def _bound(node: Node) -> int:
    return count(node, "a contribution bound", at_least=1, at_most=CONTRIBUTIONS_MAX)


def _public_frame(fields: Fields) -> bool:
    node = fields.take_optional("public_frame")
    return node is not None and boolean(node, "`public_frame`")


def _cost(node: Node) -> Budget:
    return read_measured(node, "a cost", cost_delta)
