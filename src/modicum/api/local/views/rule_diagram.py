"""The Hasse diagram of the rules of a policy, if it is readable."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.api.schema import policy as schema
from modicum.core.errors import Code, InputError, Problem
from modicum.policy import CompiledPolicy
from modicum.policy.hasse import Hasse, hasse
from modicum.policy.hasse.diagram import NODES_MAX, RuleOrder, neighborhood
from modicum.policy.pruning.logic import Logic

#: More rules are not compared with each other for one answer.
COMPARED_MAX = 300
#: Nor are more compared with one: their number times the attributes that it reads.
SEARCHED_MAX = 500_000


def readable(
    compiled: CompiledPolicy, chosen: Sequence[int], center: int | None, steps: int
) -> Hasse:
    """Return the diagram of some rules over history.

    Args:
        compiled: The policy.
        chosen: Their numbers.
        center: The number of a rule: only rules near it are shown, and it is one of
            them. None for all.
        steps: How many steps up and down from it.

    Raises:
        InputError: If there are too many rules to be readable.
    """
    kept = list(chosen)
    if center is not None:
        vocabulary = compiled.policy.vocabulary
        read = Logic(vocabulary).looks(compiled.rules[center].predicate).attributes
        if len(kept) * max(len(read), 1) > SEARCHED_MAX:
            raise _too_many(f"{len(kept)} rules")
        order = RuleOrder(compiled.rules, vocabulary)
        kept = [
            one
            for one in {*chosen, center}
            if one == center
            or order.is_below(one, center)
            or order.is_below(center, one)
        ]
    if len(kept) > COMPARED_MAX:
        raise _too_many(f"{len(kept)} rules")
    diagram = hasse(compiled, kept)
    if center is not None:
        diagram = neighborhood(diagram, [center], steps=steps)
    if len(diagram.nodes) > NODES_MAX:
        raise _too_many(f"{len(diagram.nodes)} nodes")
    return diagram


def diagram_view(policy: schema.NamedPolicy, diagram: Hasse) -> schema.RuleDiagram:
    """Return the public form of a diagram."""
    return schema.RuleDiagram(
        policy=policy,
        nodes=tuple(
            schema.DiagramNode(
                unit=node.unit,
                rules=tuple(
                    schema.DiagramRule(
                        rule=one.id, budget=one.budget, witness=one.witness or None
                    )
                    for one in node.rules
                ),
            )
            for node in diagram.nodes
        ),
        edges=diagram.edges,
        witness_edges=tuple(sorted(diagram.ways)),
    )


def _too_many(what: str) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"a diagram of {what} is not readable",
            notes=(f"it has up to {NODES_MAX} nodes, of up to {COMPARED_MAX} rules",),
            help="choose `rule`, `unit`, `context` or `binding`, or fewer `steps`",
        )
    )
