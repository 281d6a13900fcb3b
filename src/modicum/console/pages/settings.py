"""Settings: the visitor, who may do what, tokens, and the state of the server."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

from msgspec import UNSET

from modicum.api import operations
from modicum.api.permissions.actions import (
    ALLOWED,
    IN_WORDS,
    PEOPLE_ONLY,
    REACH,
    Action,
    Reach,
    Role,
)
from modicum.api.schema.account import TOKEN_DAYS, TOKEN_DAYS_MAX, RoleName, TokenInput
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay

DONE["token-revoked"] = "The token is revoked. It no longer works."

#: For which data sets a role must be held, in words.
_REACH_WORDS: Final = {
    Reach.DATA_SET: "its data set",
    Reach.LEDGER: "all data sets",
    Reach.ANY: "any data set",
}
#: The prefix of the fields that name the data sets of a role.
_GRANT: Final = "grant-"


@page("/settings", "settings.html", "Settings")
async def settings(relay: Relay) -> dict[str, Any]:
    """Return what the visitor may do, their tokens, and the doctor's findings."""
    wanted = "doctor" in relay.query
    tokens = await relay.try_get(operations.TOKENS)
    return {
        "words": {one.value: IN_WORDS[one] for one in Action},
        "roles": [one.value for one in Role],
        "table": [
            {
                "action": one.value,
                "words": IN_WORDS[one],
                "reach": _REACH_WORDS[REACH[one]],
                "people_only": one in PEOPLE_ONLY,
                "roles": [role.value for role in Role if one in ALLOWED[role]],
            }
            for one in Action
        ],
        "tokens": None if tokens is None else tokens.tokens[::-1],
        "days": TOKEN_DAYS,
        "days_max": TOKEN_DAYS_MAX,
        "issued": None,
        # It takes longer than all else, so it is done on demand.
        "diagnosis": await relay.try_get(operations.DOCTOR) if wanted else None,
    }


@form("/settings/tokens", settings)
async def issue(relay: Relay) -> dict[str, Any]:
    """Create a token; its text is on this one answer and nowhere else."""
    fields = relay.fields
    is_service = fields.get("service") == "yes"
    grants: dict[RoleName, tuple[str, ...]] = {
        role.value: tuple(sets)
        for role in Role
        if (sets := re.findall(r"[^\s,]+", fields.get(_GRANT + role.value, "")))
    }
    days = fields.get("days", "")
    sent = TokenInput(
        name=fields.get("name", "").strip(),
        actor=fields.get("actor", "").strip() if is_service else UNSET,
        service=is_service,
        expires_in_days=int(days) if re.fullmatch("[0-9]{1,4}", days) else 0,
        # A program has none of the visitor's own.
        grants=grants if grants or is_service else UNSET,
    )
    reply = await relay.call(operations.ISSUE_TOKEN, sent)
    return {"issued": reply.value, "fields": defaultdict(str)}


@form("/settings/tokens/{token}/revoke", settings)
async def revoke(relay: Relay) -> str:
    """Revoke a token."""
    await relay.call(operations.REVOKE_TOKEN, token=relay.named("token"))
    return after("/settings", done="token-revoked")
