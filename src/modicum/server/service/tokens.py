"""API tokens: made for oneself or for a program, listed, and revoked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from modicum.api.local.handlers.errors import not_found
from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import ALL, Grants, Identity
from modicum.api.permissions.tokens import (
    DAY_SECONDS,
    Token,
    TokenTerms,
    no_token,
    token_id,
)
from modicum.core.errors import AccessError, Code, Problem
from modicum.server.auth.grants import CurrentGrants
from modicum.server.auth.names import PROGRAM_PREFIX, owner_name
from modicum.server.auth.registry import IssuedToken, Registry
from modicum.server.service.threads import Threads

#: Roles that programs cannot have: they require a responsible person.
NOT_FOR_PROGRAMS: Final = frozenset(
    {Role.PRIVACY_OFFICER, Role.DATA_STEWARD, Role.ADMIN}
)
#: A token that rests on groups is good for so long: a week.
BY_GROUP_SECONDS: Final = 7 * DAY_SECONDS


class Tokens:
    """The operations on API tokens.

    Args:
        registry: The store of tokens.
        threads: Where they run.
        grants: The grants in force.
    """

    def __init__(
        self, registry: Registry, threads: Threads, grants: CurrentGrants
    ) -> None:
        self._registry = registry
        self._threads = threads
        self._grants = grants

    async def make(self, who: Identity, terms: TokenTerms) -> IssuedToken:
        """Create a token; it is shown once.

        People create tokens for themselves, with at most their own grants. Grants by
        group end within a week: the end of a membership is not reported here. Token
        managers also create tokens for programs.

        Args:
            who: The caller.
            terms: Its terms.

        Raises:
            AccessError: If they may not; or they were recognized by a token, which
                would live on in others; or 100 tokens of the same actor are active.
            InputError: If it is for a person whose name no sign-in produces, or for a
                new name that looks like a known one.
        """
        if who.by_token:
            raise _refused(
                f"`{who.name}` is authenticated by a token, which cannot create tokens",
                "sign in, then create it",
            )
        if terms.is_service:
            _refuse_program(who, terms)
        else:
            _refuse_more(who, terms)
            terms = self._kept_short(terms)
        return await self._threads.submit(
            lambda: self._registry.add_token(
                terms, created_by=who.name, named=self._grants.table.names
            )
        )

    def _kept_short(self, terms: TokenTerms) -> TokenTerms:
        """Return a token that ends soon, if it rests on groups."""
        if self._grants.table.is_for_good(terms.actor, terms.grants):
            return terms
        return replace(terms, seconds=min(terms.seconds, BY_GROUP_SECONDS))

    async def listed(self, who: Identity) -> list[Token]:
        """Return the visible tokens, oldest first.

        Args:
            who: The caller.

        Raises:
            AccessError: If they may not have any.
        """
        who.must(Action.MANAGE_OWN_TOKENS)
        found = await self._threads.submit(self._registry.tokens)
        return [one for one in found if _may_see(who, one)]

    async def revoke(self, who: Identity, identifier: str) -> Token:
        """Revoke a token.

        Args:
            who: The caller.
            identifier: Its id, or the token itself.

        Raises:
            AccessError: If they may not have any.
            InputError: If there is no such token, as far as they may know.
        """
        called = token_id(identifier)
        for one in await self.listed(who):
            if one.id == called:
                revoke = partial(
                    self._registry.revoke_token, one.id, revoked_by=who.name
                )
                return await self._threads.submit(revoke)
        raise not_found(no_token(called), "list yours at  /tokens")


def _may_see(who: Identity, token: Token) -> bool:
    """Return whether a token is their own, or one of those that they manage."""
    own = token.actor == who.name and not token.is_service
    manages = who.may(Action.MANAGE_TOKENS) and not _beyond(who, token.grants)
    return own or manages


def _beyond(who: Identity, grants: Grants) -> frozenset[str]:
    """Return the data sets of some grants whose tokens a caller does not manage."""
    managed = who.grants.get(Role.ADMIN, frozenset())
    reached = frozenset().union(*grants.values())
    return frozenset() if ALL in managed else reached - managed


def _refuse_more(who: Identity, terms: TokenTerms) -> None:
    """Refuse a token for a person that is another, or that may more than they."""
    who.must(Action.MANAGE_OWN_TOKENS)
    if who.is_service or terms.actor != who.name:
        raise _refused(
            f"`{who.name}` cannot create a token for the person `{terms.actor}`",
            "people create their own tokens",
        )
    owner_name(terms.actor)
    for role, sets in terms.grants.items():
        held = who.grants.get(role, frozenset())
        if ALL not in held and not sets <= held:
            missing = ", ".join(sorted(sets - held))
            raise _refused(
                f"`{who.name}` is not {role.value} for {missing}",
                "a token has at most the roles of its creator",
            )


def _refuse_program(who: Identity, terms: TokenTerms) -> None:
    """Refuse a token for a program that passes for a person, or may too much."""
    who.must(Action.MANAGE_TOKENS)
    if not terms.actor.startswith(PROGRAM_PREFIX) or terms.actor == PROGRAM_PREFIX:
        raise _refused(
            f"`{terms.actor}` is not a valid name of a program",
            f"use  {PROGRAM_PREFIX}NAME , to distinguish it from people",
        )
    missing = _beyond(who, terms.grants)
    if missing:
        raise _refused(
            f"`{who.name}` cannot manage tokens for {', '.join(sorted(missing))}",
            "an admin for these data sets can",
        )
    for role in terms.grants:
        if role in NOT_FOR_PROGRAMS:
            raise _refused(
                f"a program cannot be {role.value}",
                "this role requires a person",
            )


def _refused(message: str, remedy: str) -> AccessError:
    return AccessError(Problem(Code.FORBIDDEN, message, help=remedy))
