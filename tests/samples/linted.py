"""Small policies to lint, and what is said about them."""

from __future__ import annotations

from hypothesis import strategies as st

from modicum.core.errors import InputError, Problem
from samples.small import compiled

#: A policy before its rules.
HEAD = """
modicum: policy/v1
name: lint
units: {user: {id: user_id}}
labels:
  ml: {values: [none, black-box, open], default: none}
  stage: {values: [draft, final], default: draft}
schema: {attributes: {age: low}}
"""


def refused(text: str) -> list[Problem]:
    """Return what is refused about a policy that compiles."""
    found = compiled(text)
    try:
        found.refuse_mistakes()
    except InputError as error:
        return list(error.problems)
    return []


def policy(*rules: tuple[str, object], settings_of: str = "") -> str:
    """Return a policy of rules, each a predicate and its eps."""
    lines = [
        f"  - {{name: p{number}, when: '{when}', unit: user, budget: {{eps: {eps}}}}}"
        for number, (when, eps) in enumerate(rules)
    ]
    return HEAD + "policies:\n" + "\n".join(lines) + "\n" + settings_of


def extension(*contexts: tuple[str, str]) -> str:
    """Return an extension of settings, each a predicate and a budget map."""
    lines = [
        f"      s{number}: {{when: '{when}', budget: {changed}}}"
        for number, (when, changed) in enumerate(contexts)
    ]
    return "extensions:\n  - name: e\n    settings:\n" + "\n".join(lines) + "\n"


def warned(text: str) -> list[str]:
    """Return the first line of every warning about a policy."""
    return [warning.render().split("\n")[0] for warning in compiled(text).warnings]


_APPROVAL = "  - {{when: '{}', need: {}, from: [{}], requester_may_approve: {}}}\n"


def approvals(*entries: tuple[str, int, tuple[str, ...], bool]) -> str:
    """Return approvals: when, how many, of whom, and whether who asks may.

    Every role has enough people.
    """
    lines = [
        _APPROVAL.format(when, need, ", ".join(roles), str(own).lower())
        for when, need, roles, own in entries
    ]
    roles = dict.fromkeys(role for _, _, of, _ in entries for role in of)
    people = [
        f"  {one}: [{', '.join(f'{one}{n}' for n in range(9))}]\n" for one in roles
    ]
    return "roles:\n" + "".join(people) + "approvals:\n" + "".join(lines)


def guards(*unless: str) -> str:
    """Return guards, named g0, g1 and so on."""
    lines = [
        f"  - {{name: g{number}, unless: '{one}', message: mend it}}\n"
        for number, one in enumerate(unless)
    ]
    return "guards:\n" + "".join(lines)


#: Something that only the release of one value of a label fulfills.
OPEN = 'release.ml == "open"'


#: The labels of these policies, with their values; the first one is the default.
LABELS = {"ml": ("none", "black-box", "open"), "stage": ("draft", "final")}
_atoms = st.sampled_from(
    [
        "true",
        *(f'm.{name} == "{v}"' for name, values in LABELS.items() for v in values),
        *(f'm.{name} != "{v}"' for name, values in LABELS.items() for v in values),
        '"age" in m.attributes',
    ]
)
#: Predicates about labels, and about one attribute.
whens = st.one_of(
    _atoms,
    st.tuples(_atoms, _atoms).map(" && ".join),
    st.tuples(_atoms, _atoms).map(" || ".join),
)
