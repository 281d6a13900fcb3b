"""What a loss recorded under one policy proves for the units of another.

A recorded loss is a proposition: for two tables that differ in one instance of a unit,
as a policy defined it, the answers differ by at most that loss. A later policy has
other units. For each of them this module finds the units of the earlier policy whose
losses bound it, and in how many steps (group privacy). A unit is known by its
definition, its id and its period, not by its name.

Neighboring relation: the recorded one of the earlier unit; the declared one of the
later unit.

Source: `units.changes` for one pair of units; the calendar and the claims of the later
policy give the pairs. Claims of the earlier policy serve no steps, but a loss that may
have been derived by a claim that is weaker now bounds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from modicum.release.units import (
    SAME,
    Reach,
    Reaches,
    Relation,
    Unit,
    all_steps,
    changes,
    owners,
)

#: The fields of `Unit` that define an instance. If one differs, it is another unit.
MEANING = ("id", "period", "column")
#: The fields that claim facts about the data. A loss may have been derived from that of
#: another unit by these, so it is too low if they claim less now.
CLAIMS = ("within", "groups")
#: The fields that are recorded with each loss, which is converted when it is charged
#: (REL-9).
RECORDED = ("neighbors",)


class Source(Struct, frozen=True):
    """A unit of an earlier policy whose losses bound a present unit.

    Attributes:
        unit: Its name under the earlier policy.
        reaches: How an instance of the present unit overlaps its instances; all hold.
    """

    unit: str
    reaches: tuple[Reach, ...]

    def steps(self, present: Relation, recorded: Relation) -> int | None:
        """Return how many recorded changes make any present one; None if unknown."""
        counts = (changes(one, present, recorded) for one in self.reaches)
        return min((one for one in counts if one is not None), default=None)


class Entailment(Struct, frozen=True):
    """What losses under one policy prove under another.

    Attributes:
        same: By present unit, the earlier unit with the same definition, whose loss
            it has.
        sources: By present unit, the earlier units that bound it.
        redefined: By name, how the definitions of a unit that both policies have
            differ.
        weaker: By two earlier units, the claim by which a loss of the first may have
            been derived from the second, and that is weaker now. If there is any, no
            derived loss bounds anything: it may follow from others that do not.
    """

    same: Mapping[str, str]
    sources: Mapping[str, tuple[Source, ...]]
    redefined: Mapping[str, str]
    weaker: Mapping[tuple[str, str], str]


def entailment(old: Mapping[str, Unit], new: Mapping[str, Unit]) -> Entailment:
    """Return what losses for the units of one policy prove for those of another.

    Args:
        old: The units that losses were recorded for, by name.
        new: The units that they are to be charged to, by name.
    """
    twins = _twins(old, new)
    nodes = {unit: twins.get(unit, _former(unit)) for unit in old}
    reaches = Reaches(_joint(old, new, nodes), None)
    weaker = _weaker(old, nodes, reaches)
    same: dict[str, str] = {}
    sources: dict[str, tuple[Source, ...]] = {}
    for unit, facts in new.items():
        alike = [one for one in old if is_same_unit(old[one], facts)]
        if alike:
            same[unit] = unit if unit in alike else alike[0]
        sources[unit] = tuple(
            Source(one, found)
            for one in old
            if (found := (SAME,) if one in alike else (*reaches.of(unit, nodes[one]),))
        )
    redefined = {
        unit: _difference(old[unit], new[unit])
        for unit in old
        if unit in new and not is_same_unit(old[unit], new[unit])
    }
    return Entailment(same, sources, redefined, weaker)


def _former(unit: str) -> str:
    """Return the key of an earlier unit without a twin: no name has a space."""
    return f"former {unit}"


def is_same_unit(one: Unit, other: Unit) -> bool:
    """Return whether two policies define the same instances, under whatever names."""
    return _definition(one) == _definition(other)


def _definition(unit: Unit) -> tuple[object, ...]:
    return tuple(getattr(unit, field) for field in MEANING)


def _twins(old: Mapping[str, Unit], new: Mapping[str, Unit]) -> dict[str, str]:
    """Return by earlier unit the present one of its definition, if there is one."""
    named: dict[tuple[object, ...], str] = {}
    for unit, facts in new.items():
        named.setdefault(_definition(facts), unit)
    found: dict[str, str] = {}
    for unit, facts in old.items():
        own = _definition(facts)
        if unit in new and is_same_unit(new[unit], facts):
            found[unit] = unit
        elif own in named:
            found[unit] = named[own]
    return found


def _joint(
    old: Mapping[str, Unit], new: Mapping[str, Unit], nodes: Mapping[str, str]
) -> dict[str, Unit]:
    """Return the present units, and the earlier ones that have no twin among them.

    Earlier claims are not taken over, except those that are true by definition: an
    instance of an id and a period lies in that of the id, and where one `within` with
    the same id was declared, it still holds.
    """
    joint = {
        **new,
        **{
            nodes[unit]: replace(facts, within=(), groups={})
            for unit, facts in old.items()
            if nodes[unit] not in new
        },
    }
    sure = owners(old)
    for unit, node in nodes.items():
        wider = {nodes[one] for one in sure[unit]} - {node, *joint[node].within}
        joint[node] = replace(joint[node], within=(*joint[node].within, *sorted(wider)))
    lasting = {facts.id: unit for unit, facts in joint.items() if facts.period is None}
    for unit, facts in joint.items():
        wide = lasting.get(facts.id)
        if facts.period is not None and wide and wide not in facts.within:
            joint[unit] = replace(facts, within=(*facts.within, wide))
    return joint


def _difference(old: Unit, new: Unit) -> str:
    return ", ".join(
        f"{field} {was or 'none'} -> {now or 'none'}"
        for field in MEANING
        if (was := getattr(old, field)) != (now := getattr(new, field))
    )


def _weaker(
    old: Mapping[str, Unit], nodes: Mapping[str, str], present: Reaches
) -> dict[tuple[str, str], str]:
    """Return the earlier claims that are weaker now, by the units that they are about.

    The recorded relations are used for both sides: only claims make a difference. A
    claim about a unit that the later policy does not have is not made any more.
    """
    before = all_steps(old)
    found: dict[tuple[str, str], str] = {}
    for unit in old:
        for other in old:
            if unit == other or (unit, other) not in before:
                continue
            relations = old[unit].neighbors, old[other].neighbors
            reaches = present.of(nodes[unit], nodes[other])
            counts = (changes(one, *relations) for one in reaches)
            now = min((one for one in counts if one is not None), default=None)
            if now is None or now > before[unit, other]:
                found[unit, other] = (
                    f"one change of it takes {now or 'any number of'} changes of"
                    f" `{other}`, before {before[unit, other]}"
                )
    return found
