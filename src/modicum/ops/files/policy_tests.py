"""Finding policy tests in folders, and reading them with their policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from modicum.api.local.policies.test_format import PolicyTest, PolicyTests, read_tests
from modicum.api.local.policies.tests import Answer, run_test
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.core.reader import Problems, placed
from modicum.ops.files.documents import load_policy, load_release, releases_of
from modicum.policy import CompiledPolicy

#: The suffixes of policy test files.
ENDING = ".test.yaml"


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a file, and the policy they are about.

    Attributes:
        file: The file of tests.
        policy: The policy's file.
        compiled: The policy.
        tests: The tests, in the order of the file.
    """

    file: Path
    policy: Path
    compiled: CompiledPolicy
    tests: tuple[PolicyTest, ...]


def load_suites(paths: Sequence[Path]) -> list[Suite]:
    """Return the policy tests of files and folders."""
    found = Problems()
    policies: dict[Path, CompiledPolicy] = {}
    suites: list[Suite] = []
    for file, about in _files(paths):
        with found.guard():
            tests = read_tests(load_release(file), _reader(file.parent))
            policy = file.parent / tests.policy
            with placed(tests.policy_node):
                _refuse_elsewhere(policy, file.resolve().parent.parent)
            if about is not None and policy.resolve() != about.resolve():
                continue
            compiled = _policy(policy, tests, policies)
            suites.append(Suite(file, policy, compiled, tests.tests))
    found.raise_any()
    if not suites:
        places = ", ".join(str(path) for path in paths) or "this folder"
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"there are no policy tests: no *{ENDING} in {places}",
                help="docs/how-to/test-a-policy.md explains how to write one",
            )
        )
    return suites


def run_suites(
    suites: Iterable[Suite], *, on_test: Callable[[int], None] | None = None
) -> list[tuple[Suite, list[Answer]]]:
    """Return the decisions of the policies in all tests."""
    found = Problems()
    answers: list[tuple[Suite, list[Answer]]] = []
    run = 0
    for suite in suites:
        own: list[Answer] = []
        for test in suite.tests:
            with found.guard():
                own.append(run_test(test, suite.compiled))
            run += 1
            if on_test is not None:
                on_test(run)
        answers.append((suite, own))
    found.raise_any()
    return answers


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Yield each test file once, with the policy it must be about, if any."""
    seen: set[Path] = set()
    for file, about in _all_files(paths):
        if file.resolve() not in seen:
            seen.add(file.resolve())
            yield file, about


def _all_files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    if not paths:
        yield from ((file, None) for file in sorted(Path().glob(f"*{ENDING}")))
    for path in paths:
        if path.is_dir():
            yield from ((file, None) for file in sorted(path.rglob(f"*{ENDING}")))
        elif path.name.endswith(ENDING):
            yield path, None
        elif path.exists():
            files = sorted(path.parent.glob(f"*{ENDING}"))
            yield from ((file, path) for file in files)
        else:
            problem = Problem(Code.FILE_UNREADABLE, f"there is no file {path}")
            raise InputError(problem)


def _reader(folder: Path) -> Callable[[str], tuple[Node, ...]]:
    def read(path: str) -> tuple[Node, ...]:
        _refuse_elsewhere(folder / path, folder)
        return releases_of(load_release(folder / path))

    return read


def _refuse_elsewhere(path: Path, folder: Path) -> None:
    """Refuse a file outside a folder: an error message could quote its beginning."""
    if not path.resolve().is_relative_to(folder.resolve()):
        problem = Problem(
            Code.FILE_UNREADABLE,
            f"`{path}` is outside the folder of the tests",
            notes=("tests may come from another person, and messages quote files",),
            help="put the file next to the tests, or write the releases into them",
        )
        raise InputError(problem)


def _policy(
    path: Path, tests: PolicyTests, known: dict[Path, CompiledPolicy]
) -> CompiledPolicy:
    """Return a compiled policy; each file is compiled once."""
    place = path.resolve()
    if place not in known:
        with placed(tests.policy_node):
            known[place] = load_policy(path)
    return known[place]
