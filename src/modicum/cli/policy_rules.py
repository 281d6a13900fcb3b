"""The rules of a compiled policy, as `policy compile` and `policy prune` show them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy, Rule

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
    total = len(compiled.rules) + len(compiled.release_rules)
    for rule, witness in _with_witness(compiled):
        if shown is not None and len(rows) == shown:
            break
        lines = ",".join(str(mark.line) for mark in rule.marks if mark is not None)
        status = "implied" if witness is not None else "constraining"
        rows.append((rule.id, rule.unit, _budget(rule), lines, status, rule.when))
    _print_table(("RULE", "UNIT", "BUDGET", "LINE", "STATUS", "WHEN"), rows)
    _print_left(total - len(rows))


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
    listed = (_rule_to_dict(rule, witness) for rule, witness in _with_witness(compiled))
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


def _with_witness(compiled: CompiledPolicy) -> Iterator[tuple[Rule, str | None]]:
    """Yield every rule, and the id of the rule that implies it, if one does."""
    for rules, pruned in (
        (compiled.rules, compiled.pruned),
        (compiled.release_rules, compiled.pruned_alone),
    ):
        for rule, witness in zip(rules, pruned.witness, strict=True):
            yield rule, rules.rule_id(witness) if witness >= 0 else None


def _rule_to_dict(rule: Rule, witness: str | None) -> dict[str, object]:
    base = rule.marks[0]
    return {
        "id": rule.id,
        "stage": rule.stage.value,
        "scope": rule.scope,
        "context": list(rule.context),
        "predicate": rule.when,
        "unit": rule.unit,
        "budget": _budget(rule),
        "status": "constraining" if witness is None else "implied",
        "witness": witness,
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
    total = 0
    for rule, witness in _implied(compiled):
        total += 1
        if shown is None or len(rows) < shown:
            rows.append((rule.id, _budget(rule), witness.id, _budget(witness)))
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
    listed = (
        {
            "rule": rule.id,
            "stage": rule.stage.value,
            "unit": rule.unit,
            "budget": _budget(rule),
            "witness": witness.id,
            "witness_unit": witness.unit,
            "witness_budget": _budget(witness),
        }
        for rule, witness in _implied(compiled)
    )
    _print_streamed(_counts_to_dict(compiled), "list", listed)


def _implied(compiled: CompiledPolicy) -> Iterator[tuple[Rule, Rule]]:
    for rules, pruned in (
        (compiled.rules, compiled.pruned),
        (compiled.release_rules, compiled.pruned_alone),
    ):
        for number, witness in enumerate(pruned.witness):
            if witness >= 0:
                yield rules[number], rules[witness]


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
