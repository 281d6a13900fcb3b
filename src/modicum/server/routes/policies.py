"""`/policies` and `/rules`: what holds, what would hold, and where each rule stands."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from msgspec.structs import asdict
from starlette.convertors import (  # codespell:ignore convertors
    StringConvertor,
    register_url_convertor,
)
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.schema.policy import (
    Lint,
    PolicyItem,
    PolicyList,
    PolicyText,
    RulePage,
)
from modicum.ledger.state.state import ActivePolicy
from modicum.server.answers import json_response
from modicum.server.asking import Who
from modicum.server.bodies import body_of
from modicum.server.paging import Cursor, Limit, after_of, cursor_of
from modicum.server.parts import Verbs
from modicum.server.routes import describing
from modicum.server.routes.describing import serve
from modicum.workspace.permissions.actions import Action
from modicum.workspace.views.problems import problems_view
from modicum.workspace.views.standings import policy_view, standing_view


class _Digest(StringConvertor):
    """What is no step: `/policies/{digest}:activate` is another address."""

    regex = "[^/]+(?<!:activate)"


register_url_convertor("digest", _Digest())

router = APIRouter(tags=["policies"])

#: So many releases are named that filled a cell.
SPENDERS_MAX = 100

_POLICY = describing.body_of(
    {"$ref": "#/components/schemas/Policy"},
    "a policy, as in a file; YAML keeps its remarks",
)


@serve(router, operations.POLICIES)
async def policies(who: Who, verbs: Verbs) -> Response:
    """Return the policies that were active, oldest first; the last one is."""
    found = await verbs.policies.history(who)
    last = found[-1].digest if found else ""
    items = tuple(_item(one, is_active=one is found[-1]) for one in found)
    return json_response(PolicyList(policies=items), etag=last)


@serve(router, operations.POLICY)
async def policy(
    digest: Annotated[str, Path(max_length=64, description="a digest, or `active`")],
    who: Who,
    verbs: Verbs,
) -> Response:
    """Return a policy that is or was active, with its text."""
    one = await verbs.policies.one(who, digest)
    active = await verbs.policies.one(who, "active")
    item = asdict(_item(one, is_active=one.seq == active.seq))
    return json_response(PolicyText(**item, text=one.text), etag=one.digest)


@serve(router, operations.LINT_POLICY, _POLICY)
async def lint(request: Request, who: Who, verbs: Verbs) -> Response:
    """Check a policy; mistakes are told with their places. Writes nothing."""
    body = await body_of(request, who, Action.COMPILE_POLICY)
    compiled = await verbs.policies.compile(who, body)
    return json_response(
        Lint(
            ok=True,
            name=compiled.policy.name,
            digest=compiled.policy.digest,
            rules=len(compiled.rules),
            release_rules=len(compiled.release_rules),
            warnings=problems_view(compiled.warnings),
        )
    )


@serve(router, operations.RULES)
async def rules(
    who: Who,
    verbs: Verbs,
    unit: Annotated[str, Query(max_length=200, description="only of this unit")] = "",
    scope: Annotated[str, Query(max_length=200, description="only this scope")] = "",
    context: Annotated[
        str, Query(max_length=200, description="only those with this setting")
    ] = "",
    constraining: Annotated[
        bool | None,
        Query(description="only those that can, or cannot, be the only one to deny"),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> Response:
    """Return where every rule over history stands, in the policy's order."""
    after = after_of("rules", cursor)
    found = await verbs.policies.standings(who)
    witness = found.compiled.pruned.witness
    kept = [
        one
        for number, one in enumerate(found.losses)
        if (not unit or one.rule.unit == unit)
        and (not scope or one.rule.scope == scope)
        and (not context or context in one.rule.context)
        and (constraining is None or constraining is (witness[number] < 0))
    ]
    shown = kept[after : after + limit]
    more = after + limit if after + limit < len(kept) else None
    return json_response(
        RulePage(
            **asdict(policy_view(found.compiled, found.state)),
            rules=tuple(map(standing_view, shown)),
            next=cursor_of("rules", more),
        ),
        etag=found.state.head,
    )


@serve(router, operations.RULE_BALANCE)
async def history(
    rule: Annotated[str, Query(max_length=400, description="the id of the rule")],
    who: Who,
    verbs: Verbs,
    most: Annotated[int, Query(ge=1, le=SPENDERS_MAX)] = 20,
) -> Response:
    """Return what the fullest cell of a rule was charged, and by whom."""
    found = await verbs.policies.spenders(who, rule)
    told = await verbs.sight.masked(who, found.view(most))
    return json_response(told, etag=found.head)


def _item(one: ActivePolicy, *, is_active: bool) -> PolicyItem:
    return PolicyItem(
        name=one.name,
        digest=one.digest,
        entry=one.seq,
        active=is_active,
        reason=one.reason,
        accepted=tuple(one.accepted),
    )
