"""The history of a ledger under another policy: the decisions it would have made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import assert_never

from modicum.accounting import INFINITE
from modicum.api.local.explanation.conflicts import (
    Conflict,
    Past,
    charged_rules,
    conflicts,
    questions,
)
from modicum.api.local.policies.replay import (
    DENIED,
    GIVEN_UP,
    Attempt,
    History,
    TakenBack,
    Turn,
)
from modicum.api.schema.policy_change import Assumption
from modicum.core.errors import Problem
from modicum.ledger import Balances, RecordedRelease, RuleLoss, decide
from modicum.ledger.decision.balances import facts_of
from modicum.ledger.decision.charges import UNKNOWN, charged
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.replay.past_names import understated
from modicum.ledger.state.past_vocabulary import new_attributes
from modicum.ledger.state.rounds import Planning
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import holds
from modicum.policy.user_groups import grouped_through

#: Maximum number of fullest rules shown.
CLOSEST = 10


class Change(Enum):
    """A decision compared with the recorded outcome."""

    SAME = "same"
    DENIED_NOW = "denied now"
    ALLOWED_NOW = "allowed now"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The decision of another policy about an attempt.

    Attributes:
        attempt: The attempt and its recorded outcome.
        allowed: Whether it would have been allowed. Past releases always are: they
            happened.
        blocking: The rules that would have denied it; for a past release, those that it
            exceeds.
        guards: The guards that would have refused it.
        unmatched: The mechanisms that would have denied it, as no rule over history
            limits them; empty for a past release.
    """

    attempt: Attempt
    allowed: bool
    blocking: tuple[str, ...]
    guards: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()

    @property
    def change(self) -> Change:
        """Return the comparison with the recorded outcome."""
        was_allowed = self.attempt.outcome != DENIED
        if was_allowed == self.allowed:
            return Change.SAME
        return Change.ALLOWED_NOW if self.allowed else Change.DENIED_NOW


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A history under a policy.

    Attributes:
        replayed: Every attempt, oldest first, each decided after those that the policy
            would have allowed before.
        closest: The rules that would be fullest at the end of that, fullest first.
        conflicts: The rules that the history, as it did happen, exceeds.
        assumptions: The assumptions about old releases.
        remarks: Further notes for the reader.
        problems: Redefined units, dropped attributes that may be renamed ones, rules
            that past releases leave, and a further filter.
    """

    replayed: tuple[Replayed, ...]
    closest: tuple[RuleLoss, ...]
    conflicts: tuple[Conflict, ...]
    assumptions: tuple[Assumption, ...]
    remarks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def of(self, change: Change) -> tuple[Replayed, ...]:
        """Return the attempts whose decision compares so."""
        return tuple(one for one in self.replayed if one.change is change)


def what_if(
    history: History,
    compiled: CompiledPolicy,
    on_attempt: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Return the decisions of a policy about a history; nothing is charged."""
    policies = history.policies
    counted = [seq for _, seq in history.recorded]
    # The active policy charges names; if it is activated again, it charges definitions.
    again = bool(understated(policies, counted, lambda: history.recorded, compiled))
    entails = again or None
    replay = _Replay(history, compiled, entails=entails)
    total = len(history.attempts)
    replayed: list[Replayed] = []
    for step in history.steps:
        if isinstance(step, TakenBack):
            replay.take_back(step.release)
        elif isinstance(step, Attempt):
            replayed.append(replay.decide(step))
            if on_attempt is not None:
                on_attempt(len(replayed), total)
        else:
            replay.take_turns(step)
    problems: tuple[Problem, ...] = ()
    if policies and (again or policies[-1].text != compiled.policy.text):
        replaced = compile_text(policies[-1].text.encode("utf-8"), "the active policy")
        past = Past(policies, counted, history.recorded)
        before = replaced, partial(history.reserved, replaced)
        now = compiled, partial(history.reserved, compiled, entails=entails)
        problems = questions(past, before, now).problems
    return WhatIf(
        tuple(replayed),
        replay.closest(),
        conflicts(history.reserved(compiled, entails=entails), compiled),
        tuple(_assumptions(history, compiled)),
        tuple(_remarks(history, compiled)),
        problems,
    )


class _Replay:
    """Decides one attempt after the other, as if the policy had always held."""

    def __init__(
        self, history: History, compiled: CompiledPolicy, *, entails: bool | None
    ) -> None:
        self._compiled = compiled
        self._migration = history.migration(compiled, entails=entails)
        self._planning = Planning()
        self._balances = Balances(compiled, planning=self._planning)
        self._held: dict[str, tuple[RecordedRelease, int]] = {}

    def decide(self, attempt: Attempt) -> Replayed:
        """Decide an attempt; charge it if it is allowed, or was recorded anyway."""
        release = self._migration.release(attempt.release, attempt.seq)
        # Denied then, allowed now, and submitted again: the last attempt counts.
        if (
            release.id in self._held
            and self._held[release.id][0].content == release.content
        ):
            return Replayed(attempt, allowed=True, blocking=())
        self.take_back(release.id)
        verdict = decide(self._balances, release, attempt.day)
        past = attempt.outcome == "recorded"
        guards = () if past else tuple(_refusing(release, self._compiled))
        allowed = past or (verdict.allowed and not guards)
        if allowed:
            self._balances.charge(release, attempt.day)
            self._held[release.id] = release, attempt.day
        unmatched = () if past else verdict.unmatched
        return Replayed(attempt, allowed, verdict.blocking, guards, unmatched)

    def take_back(self, identifier: str) -> None:
        """Release a canceled reservation, if it was allowed at all."""
        held = self._held.pop(identifier, None)
        if held is not None:
            self._balances.take_back(*held)

    def take_turns(self, turn: Turn) -> None:
        """Open the next round, or start or retire a user group."""
        match turn:
            case RoundOpened():
                self._planning.open_round(turn)
            case GroupActivated():
                self._planning.activate(turn)
            case GroupRetired():
                self._planning.retire(turn)
            case _:
                assert_never(turn)

    def closest(self) -> tuple[RuleLoss, ...]:
        """Return the fullest rules, the fullest first."""
        losses = charged_rules(
            (release for release, _ in self._held.values()), self._balances
        )
        enforced = [loss for loss in losses if loss.own_filter.enforced]
        enforced.sort(key=_fullness, reverse=True)
        return tuple(enforced[:CLOSEST])


def _fullness(loss: RuleLoss) -> Fraction:
    """Return how full a rule is on the coordinate that decides; more than 1 if over."""
    nearest = loss.own_filter.nearest(loss.together)
    if not loss.allowed or nearest is None:
        return Fraction(INFINITE)
    index, cap = nearest
    return Fraction(loss.together.units(index), cap) if cap else Fraction(0)


def _refusing(release: RecordedRelease, compiled: CompiledPolicy) -> Iterator[str]:
    facts = facts_of(release, compiled.policy.vocabulary)
    for guard in compiled.policy.guards:
        if not all(holds(guard.unless, one) for one in facts):
            yield guard.name


# --- missing data in a history ---------------------------------------------------


def _remarks(history: History, compiled: CompiledPolicy) -> Iterator[str]:
    """Yield that nothing is unlocked, if groups take turns and none ever began."""
    turns = history.turns
    if compiled.policy.rotation is None or any(
        isinstance(turn, GroupActivated) for turn in turns
    ):
        return
    vocabulary = compiled.policy.vocabulary
    units = dict.fromkeys(
        f"`{base.unit}`"
        for base in compiled.rules.bases
        if grouped_through(base.unit, vocabulary)
    )
    missing = "no user group was activated" if turns else "no round was opened"
    yield (
        f"`rotation` unlocks nothing, because {missing}: whatever matches a rule of"
        f" {' or '.join(units)} is denied"
    )


# --- missing data in old releases ---------------------------------------------


def _assumptions(history: History, compiled: CompiledPolicy) -> Iterator[Assumption]:
    found: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    units = {base.unit for base in compiled.rules.bases}
    migration = history.migration(compiled)
    for attempt in history.attempts:
        if attempt.outcome in (DENIED, *GIVEN_UP):
            continue
        release = migration.release(attempt.release, attempt.seq)
        lines = [
            *_unknown_words(release, compiled),
            *_unknown_losses(attempt.release, release, sorted(units), compiled),
        ]
        for one in dict.fromkeys(lines):
            found[one].append(release.id)
    for (kind, subject, taken), releases in found.items():
        yield Assumption(
            kind=kind, subject=subject, taken=taken, releases=tuple(releases)
        )
    everything = tuple(release.id for release in history.counted)
    vocabulary = compiled.policy.vocabulary
    known = {one for names in vocabulary.renamed.values() for one in names}
    for attribute in sorted(new_attributes(history.policies, vocabulary) - known):
        if everything:
            yield Assumption(
                kind="attribute",
                subject=attribute,
                taken="assumed not read",
                releases=everything,
            )


def _unknown_words(
    release: RecordedRelease, compiled: CompiledPolicy
) -> Iterator[tuple[str, str, str]]:
    vocabulary = compiled.policy.vocabulary
    for name, label in vocabulary.labels.items():
        text = release.metadata.get(name)  # Open text then; it is read as a label now.
        own = [
            release.labels.get(name, text),
            *(one.labels.get(name, text) for one in release.mechanisms),
        ]
        for value in own:
            if value is None:
                yield "label", name, f"not given: assumed {label.default}"
            elif value not in label.values:
                yield "label", name, f"was {value}: assumed {label.default}"
    for mechanism in release.mechanisms:
        for attribute in mechanism.attributes:
            if attribute not in vocabulary.attributes:
                yield "attribute", attribute, "no longer known: no rule uses it"


def _unknown_losses(
    recorded: RecordedRelease,
    release: RecordedRelease,
    units: Iterable[str],
    compiled: CompiledPolicy,
) -> Iterator[tuple[str, str, str]]:
    vocabulary = compiled.policy.vocabulary
    for then, mechanism in zip(recorded.mechanisms, release.mechanisms, strict=True):
        for unit in units:
            loss = charged(mechanism, unit, vocabulary)
            taken = "assumed infinite" if loss == UNKNOWN else "follows from others"
            if unit not in then.losses:
                yield "unit", unit, f"no loss given: {taken}"
                continue
            if unit not in mechanism.losses:
                continue  # The unit is redefined, which is a problem of its own.
            stated, now = mechanism.neighbors.get(unit, "add-remove"), vocabulary
            if stated != now.relation(unit):
                changed = "infinite" if loss == UNKNOWN else "the implied loss"
                yield (
                    "relation",
                    unit,
                    f"proven for {stated}, needed for {now.relation(unit)}:"
                    f" taken as {changed}",
                )
