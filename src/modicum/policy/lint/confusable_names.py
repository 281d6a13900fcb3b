"""Names of a policy that people take for each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modicum.core.confusables import keys
from modicum.core.errors import Code, Mark, Problem
from modicum.core.reader import place
from modicum.policy.declarations.roles import person_key
from modicum.policy.model import Policy

#: Names by what they name, each with its position, if it is known.
_Names = Mapping[str, Mapping[str, Mark | None]]


def confusable_within(policy: Policy) -> Iterator[Problem]:
    """Yield pairs of names in a policy, of things of one kind, that look alike."""
    partitions = {
        f"values of partition `{one.name}`": dict.fromkeys(one.values or (), one.mark)
        for one in policy.vocabulary.population.partitions.values()
    }
    for kind, names in {**_names_of(policy), **partitions}.items():
        seen: dict[str, str] = {}
        for name, mark in names.items():
            other = next((seen[key] for key in sorted(keys(name)) if key in seen), None)
            if other is not None:
                message = f"two {kind} look alike: `{other}` and `{name}`"
                note = f"the first is at {place(names[other])}" if names[other] else ""
                yield _problem(message, name, other, mark, note)
            seen |= dict.fromkeys(keys(name), name)


def confusable_between(old: Policy, new: Policy) -> Iterator[Problem]:
    """Yield new names of a policy that look like names of the one that it replaces."""
    before = _names_of(old)
    for kind, names in _names_of(new).items():
        known = before.get(kind, {})
        earlier = {key: name for name in known for key in keys(name)}
        for name, mark in names.items():
            if name in known:
                continue
            other = next(
                (earlier[key] for key in sorted(keys(name)) if key in earlier), None
            )
            if other is not None:
                message = f"`{name}` looks like `{other}` of the active policy"
                note = f"both are among the {kind}, and are not the same name"
                yield _problem(message, name, other, mark, note)


def _problem(
    message: str, name: str, other: str, mark: Mark | None, note: str
) -> Problem:
    spelled = " and ".join(ascii(one) for one in (other, name))
    return Problem(
        Code.DUPLICATE_NAME,
        message,
        mark,
        notes=(*([note] if note else ()), f"they are spelled {spelled}"),
        help="keep the name that people know, or choose one that looks different",
    )


def _names_of(policy: Policy) -> _Names:
    vocabulary = policy.vocabulary
    bases = (*policy.base_policies, *policy.per_release)
    settings = [one for each in policy.extensions for one in each.settings]
    people = [one for each in (policy.roles or {}).values() for one in each]
    return {
        "attributes": {one.name: one.mark for one in policy.attributes.values()},
        "categories": dict.fromkeys(policy.categories),
        "units": dict.fromkeys(vocabulary.units),
        "labels": dict(policy.label_marks),
        **{
            f"values of label `{name}`": dict.fromkeys(
                label.values, policy.label_marks.get(name)
            )
            for name, label in vocabulary.labels.items()
        },
        "partitions": dict.fromkeys(vocabulary.population.partitions),
        "policies": {one.name: one.mark for one in bases},
        "settings": {one.name: one.mark for one in settings},
        "guards": {one.name: one.mark for one in policy.guards},
        "roles": dict.fromkeys(policy.roles or {}, policy.roles_mark),
        # Names that differ in capitals only are one person: see `written_twice`.
        "people": dict.fromkeys(map(person_key, people), policy.roles_mark),
    }
