"""The rules of a compiled policy, as `policy compile` and `policy prune` show them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import indent
from typing import TYPE_CHECKING

from modicum.cli.output import fitting

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy, Rule
    from modicum.policy.rules import RuleSet

#: How many rules `compile` shows, and `prune`, unless all are asked for.
RULES_SHOWN = 200
IMPLIED_SHOWN = 20


def print_counts(compiled: CompiledPolicy) -> None:
    """Print how the rules come about: base rules times extensions."""
    policy = compiled.policy
    total = sum(compiled.base_rules.values())
    by_policy = ", ".join(f"{n} {name}" for name, n in compiled.base_rules.items())
    print(f"  base rules {total:>6}   ({by_policy})")
    for extension in policy.extensions:
        names = ", ".join(setting.name for setting in extension.settings)
        print(f"  x {extension.name:<8} {len(extension.settings):>6}   {names}")
    print(f"  = rules    {_counted(compiled.pruned.witness)}")
    units = _by_unit(compiled)
    if len(units) > 1:
        listed = ", ".join(f"{sum(n)} {unit}" for unit, n in units.items())
        print(f"  by unit             {listed}")
    print(f"  per release{_counted(compiled.pruned_alone.witness)}")
    print(f"  filter     {policy.filter_name}   digest {policy.digest[:12]}")


def _counted(witness: Sequence[int]) -> str:
    if not witness:
        return f"{0:>6}"
    constraining, implied = _kept(witness)
    return f"{len(witness):>6}   constraining {constraining}   implied {implied}"


def _kept(witness: Sequence[int]) -> tuple[int, int]:
    kept = sum(1 for one in witness if one < 0)
    return kept, len(witness) - kept


def _by_unit(compiled: CompiledPolicy) -> dict[str, tuple[int, int]]:
    """Return for each unit how many rules over history constrain or are implied."""
    contexts = len(compiled.rules.contexts)
    kept: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for place, base in enumerate(compiled.rules.bases):
        own = compiled.pruned.witness[place * contexts : (place + 1) * contexts]
        kept[base.unit] += sum(1 for one in own if one < 0)
        every[base.unit] += contexts
    return {unit: (kept[unit], every[unit] - kept[unit]) for unit in every}


# --- compile -------------------------------------------------------------------


def print_rules(compiled: CompiledPolicy, *, shown: int | None) -> None:
    """Print a line for each rule.

    Args:
        compiled: The policy.
        shown: At most so many; None for all.
    """
    rows: list[tuple[str, ...]] = []
    total = _rules(compiled)
    several = _several_files(compiled)
    for one in islice(_listed(compiled), fitting(total, shown)):
        rule = one.rule
        marks = [mark for mark in rule.marks if mark is not None]
        lines = ",".join(
            f"{mark.file}:{mark.line}" if several else str(mark.line) for mark in marks
        )
        cells = rule.id, rule.unit, _budget(rule), lines, one.status, when_text(rule)
        rows.append(cells)
    _print_table(("RULE", "UNIT", "BUDGET", "LINE", "STATUS", "WHEN"), rows)
    _print_left(total - len(rows))


def when_text(rule: Rule) -> str:
    """Return a rule's predicate, or "nothing" if no attribute could make it true."""
    from modicum.policy.predicates import ReadsAny

    empty = isinstance(rule.predicate, ReadsAny) and not rule.predicate.attributes
    return "nothing" if empty else rule.when


def print_compiled(compiled: CompiledPolicy) -> None:
    """Print a compiled policy as one JSON document, rule by rule."""
    policy = compiled.policy
    head: dict[str, object] = {
        "name": policy.name,
        "digest": policy.digest,
        "filter": policy.filter_name,
        "base_rules": sum(compiled.base_rules.values()),
        "extensions": {
            extension.name: [setting.name for setting in extension.settings]
            for extension in policy.extensions
        },
        **_counts_to_dict(compiled),
        "units": {
            unit: {"constraining": constraining, "implied": implied}
            for unit, (constraining, implied) in _by_unit(compiled).items()
        },
        "warnings": [problem.to_dict() for problem in compiled.warnings],
    }
    listed = map(_rule_to_dict, _listed(compiled))
    _print_streamed(head, "list", listed)


def _counts_to_dict(compiled: CompiledPolicy) -> dict[str, object]:
    constraining, implied = _kept(compiled.pruned.witness)
    alone, alone_implied = _kept(compiled.pruned_alone.witness)
    return {
        "rules": len(compiled.rules),
        "release_rules": len(compiled.release_rules),
        "constraining": constraining,
        "implied": implied,
        "release_constraining": alone,
        "release_implied": alone_implied,
    }


@dataclass(frozen=True, slots=True)
class _Listed:
    """A rule by its number; `witness` is that of a rule that implies it, or -1."""

    rules: RuleSet
    number: int
    witness: int
    about_nothing: bool

    @property
    def rule(self) -> Rule:
        return self.rules[self.number]

    @property
    def status(self) -> str:
        if self.about_nothing:
            return "about nothing"
        return "constraining" if self.witness < 0 else "implied"


def _listed(compiled: CompiledPolicy) -> Iterator[_Listed]:
    from modicum.policy.about_nothing import AboutNothing
    from modicum.policy.pruning.logic import Logic

    logic = Logic(compiled.policy.vocabulary)
    for rules, pruned in (
        (compiled.rules, compiled.pruned),
        (compiled.release_rules, compiled.pruned_alone),
    ):
        nothing = AboutNothing(rules, logic)
        for number, witness in enumerate(pruned.witness):
            yield _Listed(rules, number, witness, number in nothing)


def _several_files(compiled: CompiledPolicy) -> bool:
    files = {
        mark.file
        for rules in (compiled.rules, compiled.release_rules)
        for mark in (
            *(base.mark for base in rules.bases),
            *(one.mark for settings in rules.extensions for one in settings),
        )
        if mark is not None
    }
    return len(files) > 1


def _rule_to_dict(listed: _Listed) -> dict[str, object]:
    rule, witness = listed.rule, listed.witness
    base = rule.marks[0]
    return {
        "id": rule.id,
        "stage": rule.stage.value,
        "scope": rule.scope,
        "context": list(rule.context),
        "predicate": rule.when,
        "unit": rule.unit,
        "budget": _budget(rule),
        "status": "constraining" if witness < 0 else "implied",
        "witness": None if witness < 0 else listed.rules.rule_id(witness),
        "about_nothing": listed.about_nothing,
        "source": [str(mark) for mark in rule.marks if mark is not None],
        "line": base.line if base is not None else None,
    }


def _budget(rule: Rule) -> str:
    from modicum.accounting.budgets import budget_text

    return budget_text(rule.budget)


# --- prune ---------------------------------------------------------------------


def print_implied(compiled: CompiledPolicy, *, shown: int | None) -> None:
    """Print each implied rule beside the one that implies it.

    Args:
        compiled: The policy.
        shown: At most so many; None for all.
    """
    rows: list[tuple[str, ...]] = []
    every = compiled.pruned, compiled.pruned_alone
    total = sum(_kept(pruned.witness)[1] for pruned in every)
    for one, witness in islice(_implied(compiled), fitting(total, shown)):
        by = "about nothing" if one.about_nothing else witness.id
        limit = "" if one.about_nothing else _budget(witness)
        rule = one.rule
        rows.append((rule.id, _budget(rule), by, limit))
    if not total:
        print("no rule is implied by another")
        return
    _print_table(("IMPLIED RULE", "BUDGET", "IMPLIED BY", "BUDGET"), rows)
    _print_left(total - len(rows))
    print(
        f"{total} implied, {_rules(compiled) - total} constraining. Implied rules still"
        " appear in reports; whenever one\nwould deny, the rule that implies it denies."
    )


def print_implied_document(compiled: CompiledPolicy) -> None:
    """Print the implied rules as one JSON document."""
    listed = (_implied_to_dict(one, witness) for one, witness in _implied(compiled))
    _print_streamed(_counts_to_dict(compiled), "list", listed)


def _implied_to_dict(one: _Listed, witness: Rule) -> dict[str, object]:
    rule = one.rule
    return {
        "rule": rule.id,
        "stage": rule.stage.value,
        "unit": rule.unit,
        "budget": _budget(rule),
        "witness": witness.id,
        "witness_unit": witness.unit,
        "witness_budget": _budget(witness),
        "about_nothing": one.about_nothing,
    }


def _implied(compiled: CompiledPolicy) -> Iterator[tuple[_Listed, Rule]]:
    for one in _listed(compiled):
        if one.witness >= 0:
            yield one, one.rules[one.witness]


def _rules(compiled: CompiledPolicy) -> int:
    return len(compiled.rules) + len(compiled.release_rules)


# --- how it is printed ---------------------------------------------------------


def _print_left(left: int) -> None:
    if left > 0:
        print(f"… {left} more (--all)")


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns. Plain lines: there may be hundreds of thousands."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _print_streamed(
    head: Mapping[str, object], key: str, listed: Iterable[Mapping[str, object]]
) -> None:
    """Print one JSON document whose last entry is a list, an item on each line."""
    print("{")
    for name, value in head.items():
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        print(f"  {json.dumps(name)}: {indent(text, '  ').lstrip()},")
    print(f"  {json.dumps(key)}: [", end="")
    separator = "\n"
    for item in listed:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False)
        sys.stdout.write(f"{separator}    {text}")
        separator = ",\n"
    print("]\n}" if separator == "\n" else "\n  ]\n}")
