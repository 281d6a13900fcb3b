"""`modicum policy test`: does a policy answer as its authors expect?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.options import Json
from modicum.cli.output import console, print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.policies.tests import Answer, Coverage
    from modicum.ops.files.policy_tests import Suite

#: Minimum number of tests for a progress bar.
MANY = 20


def register(app: typer.Typer) -> None:
    """Add the command to those about policies."""
    app.command("test")(run_tests)


def run_tests(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files *.test.yaml, policies, or folders; by default this folder.",
            metavar="[PATHS]...",
        ),
    ] = None,
    as_json: Json = False,
    show_coverage: Annotated[
        bool,
        typer.Option("--coverage", help="List the rules that no test covers."),
    ] = False,
) -> None:
    """Run the tests next to policies; exits 0, or 8 if one fails."""
    from modicum.ops.files.policy_tests import load_suites, run_suites

    with reporting(as_json=as_json):
        suites = load_suites(paths or [])
        total = sum(len(suite.tests) for suite in suites)
        with _progress(total, as_json=as_json) as on_test:
            results = run_suites(suites, on_test=on_test)
        covered = _covered(results)
        if as_json:
            print_json(_to_dict(results, covered))
        else:
            _print_results(results)
            _print_coverage(covered, listed=show_coverage)
        if not all(answer.passed for _, own in results for answer in own):
            raise typer.Exit(Exit.THRESHOLD)


@contextmanager
def _progress(total: int, *, as_json: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield something to call with how many tests ran; draws only on a terminal."""
    if as_json or total < MANY or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("testing"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("testing", total=total)

        def on_test(run: int) -> None:
            progress.update(task, completed=run)

        yield on_test


Results = Sequence[tuple["Suite", list["Answer"]]]


def _print_results(results: Results) -> None:
    failed = 0
    for suite, answers in results:
        print(printable(str(suite.file)))
        for answer in answers:
            if answer.passed:
                print(f"  ok    {answer.test.name}")
            else:
                failed += 1
                _print_failure(answer)
    total = sum(len(answers) for _, answers in results)
    tests = f"{total} test{'' if total == 1 else 's'}"
    print(f"{failed} of {tests} failed" if failed else f"{tests} passed")


def _print_failure(answer: Answer) -> None:
    from modicum.core.errors import InputError

    indent = " " * 8
    print(f"  FAIL  {answer.test.name}")
    if answer.test.mark is not None:
        print(f"{indent}--> {printable(str(answer.test.mark))}")
    print(f"{indent}expected {_expected(answer)}")
    print(f"{indent}found    {_found(answer)}")
    if answer.decision is not None:
        reasons = answer.decision.explain()
    else:
        reasons = InputError(*answer.problems).render()
    for line in reasons.splitlines():
        print(f"{indent}{line}".rstrip())


def _expected(answer: Answer) -> str:
    expected = answer.test.expected
    outcome = expected.outcome.value
    if expected.blocking is not None:
        rules = ", ".join(rule for rule, _ in expected.blocking)
        return f"{outcome} by {rules or 'no rule'}"
    return outcome if expected.code is None else f"{outcome} with {expected.code.value}"


def _found(answer: Answer) -> str:
    outcome = answer.outcome.value
    if answer.problems:
        codes = dict.fromkeys(problem.code.value for problem in answer.problems)
        return f"{outcome} with {', '.join(codes)}"
    causes = answer.decision.causes if answer.decision is not None else ()
    return f"{outcome} by {', '.join(causes)}" if causes else outcome


# --- coverage ------------------------------------------------------------------


def _covered(results: Results) -> list[tuple[Path, Coverage]]:
    """Return for each policy what none of its tests covers."""
    from modicum.api.local.policies.tests import coverage

    suites = {suite.policy.resolve(): suite for suite, _ in reversed(results)}
    return [
        (
            suite.policy,
            coverage(
                suite.compiled,
                [
                    answer
                    for other, own in results
                    if other.policy.resolve() == place
                    for answer in own
                ],
            ),
        )
        for place, suite in reversed(suites.items())
    ]


def _print_coverage(covered: list[tuple[Path, Coverage]], *, listed: bool) -> None:
    from modicum.api.local.decision import approval_text
    from modicum.core.reader import place

    for policy, found in covered:
        untouched = [
            *(f"rule {rule}" for rule in found.untouched_rules),
            *(f"guard {guard}" for guard in found.untouched_guards),
            *(
                f"{approval_text(one)} ({place(one.mark)})"
                for one in found.untouched_approvals
            ),
        ]
        hint = "  (--coverage lists the others)" if untouched and not listed else ""
        print(f"{printable(str(policy))}: tests touched {_shares(found)}{hint}")
        for one in untouched if listed else ():
            print(f"  untouched: {one}")


def _shares(found: Coverage) -> str:
    each = (
        ("rule", found.rules, len(found.untouched_rules)),
        ("guard", found.guards, len(found.untouched_guards)),
        ("approval", found.approvals, len(found.untouched_approvals)),
    )
    return ", ".join(
        f"{total - untouched} of {total} {what}{'' if total == 1 else 's'}"
        for what, total, untouched in each
        if total
    )


# --- JSON ----------------------------------------------------------------------


def _to_dict(
    results: Results, covered: list[tuple[Path, Coverage]]
) -> dict[str, object]:
    answers = [answer for _, own in results for answer in own]
    failed = sum(1 for answer in answers if not answer.passed)
    return {
        "ok": not failed,
        "passed": len(answers) - failed,
        "failed": failed,
        "tests": [
            _answer_to_dict(suite, answer) for suite, own in results for answer in own
        ],
        "coverage": [
            {
                "policy": str(policy),
                "rules": found.rules,
                "guards": found.guards,
                "approvals": found.approvals,
                "untouched_rules": list(found.untouched_rules),
                "untouched_guards": list(found.untouched_guards),
                "untouched_approvals": [
                    str(approval.mark) for approval in found.untouched_approvals
                ],
            }
            for policy, found in covered
        ],
    }


def _answer_to_dict(suite: Suite, answer: Answer) -> dict[str, object]:
    from modicum.api.local.views.ledger import problems_view

    test, expected = answer.test, answer.test.expected
    return {
        "name": test.name,
        "file": str(suite.file),
        "line": test.mark.line if test.mark is not None else None,
        "policy": str(suite.policy),
        "passed": answer.passed,
        "expected": {
            "outcome": expected.outcome.value,
            "blocking": None
            if expected.blocking is None
            else [rule for rule, _ in expected.blocking],
            "code": None if expected.code is None else expected.code.value,
        },
        "found": {
            "outcome": answer.outcome.value,
            "blocking": list(answer.blocking),
            "problems": problems_view(answer.problems),
        },
    }
