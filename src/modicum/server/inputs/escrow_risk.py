"""Reading for which query of the escrow an epsilon is to be chosen by risk."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.extras import needing_extras
from modicum.core.fields import Fields
from modicum.core.reader import fail, items, text
from modicum.risk.candidates import PUBLISHED
from modicum.server.inputs.contract_schema import QUERY_MAX
from modicum.server.inputs.program import amount

if TYPE_CHECKING:
    from modicum.ops.escrow.epsilon_choice import Facts

#: So many candidates are taken.
CANDIDATES_MAX: Final = 1000

_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 200}
_NUMBER: Final = {"type": ["number", "string"]}
#: The JSON Schema of what is asked.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "contract": _NAME,
        "query": _NAME,
        "file": {"type": "string", "minLength": 1, "maxLength": QUERY_MAX},
        "tau": _NUMBER,
        "delta": _NUMBER,
        "epsilons": {
            "type": "array",
            "items": _NUMBER,
            "minItems": 1,
            "maxItems": CANDIDATES_MAX,
        },
    },
    "required": ["tau"],
    "oneOf": [{"required": ["contract"]}, {"required": ["file"]}],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class RiskInput:
    """A query for which an epsilon is to be chosen.

    Attributes:
        contract: The contract that asks it; empty for none.
        file: The query file, without a contract.
        tau: The least ratio of the indicators of two people.
        facts: What else is given.
    """

    contract: str
    file: str = field(repr=False)
    tau: Fraction
    facts: Facts


def read_risk(node: Node) -> RiskInput:
    """Return what a form asks."""
    with needing_extras():
        from modicum.ops.escrow.epsilon_choice import Facts

    fields = Fields(node, "the request")
    contract = _text(fields, "contract", 200)
    file = _text(fields, "file", QUERY_MAX)
    query = _text(fields, "query", 200)
    if bool(contract) is bool(file) or (file and query):
        raise fail(
            Code.KEYS_CONFLICT,
            "a query is that of a `contract`, or stands in a `file`",
            node,
            help="write one of both; `query` says which one of a contract's",
        )
    tau = amount(fields.take("tau"), "`tau`")
    delta, given = fields.take_optional("delta"), fields.take_optional("epsilons")
    fields.finish()
    epsilons = PUBLISHED
    if given is not None:
        listed = items(given, "`epsilons`")
        if not 1 <= len(listed) <= CANDIDATES_MAX:
            message = f"`epsilons` holds 1 to {CANDIDATES_MAX} candidates"
            raise fail(Code.OUT_OF_RANGE, message, given)
        epsilons = tuple(amount(one, "a candidate") for one in listed)
    return RiskInput(
        contract,
        file,
        tau,
        Facts(
            query or None,
            None if delta is None else amount(delta, "`delta`"),
            epsilons,
        ),
    )


def _text(fields: Fields, key: str, most: int) -> str:
    node = fields.take_optional(key)
    return "" if node is None else text(node, f"`{key}`", characters_max=most)
