"""Programs of the escrow, as people read them before they approve them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modicum.escrow.inspection import Inspection
    from modicum.escrow.programs import Program
    from modicum.ledger.log.contracts import TaskTerms


def program_lines(
    terms: TaskTerms,
    program: Program | None,
    inspection: Inspection | None,
    *,
    code: bool,
) -> Iterator[str]:
    """Yield all that a contract says of a program, and what there is to say about it.

    Args:
        terms: What stands in the contract.
        program: The program; None without a vault.
        inspection: What there is to say about it; None without a vault.
        code: Whether a text of the catalogue is shown, too.
    """
    runs_on = f"{' and '.join(terms.results)} answers"
    limits = f"{terms.seconds} s, {terms.memory_mib} MiB"
    if terms.blocks:
        runs_on = f"exact answers about each of {terms.blocks} blocks"
        limits = f"{terms.blocks} runs of {limits}"
    yield f"program, on {runs_on}, in {terms.tier} ({limits}):"
    yield from _agreed_lines(json.loads(terms.program))
    if program is None or inspection is None:
        yield "its code lies in the vault: read it with  --vault DIR --vault-keys FILE"
        return
    yield from str(inspection).splitlines()
    if inspection.vetted and not code:
        yield "  its text is that of every such task: read it with  --code"
    elif program.language == "python":
        text = program.code.decode("utf-8", "replace")
        # Other ends of lines than this one stay in the line, where they are escaped.
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            yield f"{number:5} | {line}"


def _agreed_lines(plain: dict[str, Any]) -> Iterator[str]:
    low, high = plain["range"]
    yield f"  code        {plain['code']} ({plain['language']})"
    yield f"  scores      from {low} to {high}"
    if plain["compares"]:
        yield "  compares    exact answers with private ones: it has no private score"
    for place, (name, value) in enumerate(sorted(plain["arguments"].items())):
        label = "arguments" if place == 0 else ""
        yield f"  {label:<12}{name}: {json.dumps(value, ensure_ascii=False)}"
