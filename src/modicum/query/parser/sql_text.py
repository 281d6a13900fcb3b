"""The text of a query, its tokens, and which of them were understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from modicum.core.errors import Code, InputError, Mark
from modicum.query.parser.lexer import VALUES, Lines
from modicum.query.refusals import CASTS, WORDS, Reason, not_read, of_function, refused

if TYPE_CHECKING:
    from sqlglot import Token, exp

#: Words and signs whose meaning follows from their position; all others must be names,
#: values, types or functions that were understood.
SYNTAX: Final = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP_BY",
        "GROUPING_SETS",
        "ROLLUP",
        "CUBE",
        "ALIAS",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "BETWEEN",
        "JOIN",
        "INNER",
        "ON",
        "USING",
        "DISTINCT",
        "L_PAREN",
        "R_PAREN",
        "COMMA",
        "DOT",
        "STAR",
        "EQ",
        "NEQ",
        "LT",
        "LTE",
        "GT",
        "GTE",
        "DASH",
        "PLUS",
        "SLASH",
        "DIV",
        "MOD",
        "DPIPE",
        "LIKE",
        "ILIKE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "SEMICOLON",
    ]
)
#: The first words of clauses, which sqlglot reads as names if the second is missing.
CLAUSES: Final = ("GROUP", "ORDER")
_BRACKETS: Final = ("", "(", ")", ",")


class SqlText:
    """A query's text with its tokens; records which of them were understood.

    Args:
        text: The text.
        source: Its name.
        tokens: Its tokens.
        declared: Names of tables and columns.
    """

    def __init__(
        self,
        text: str,
        source: str,
        tokens: Sequence[Token],
        declared: Iterable[str] = (),
    ) -> None:
        self.tokens = tokens
        self._declared = {one.casefold(): one for one in declared}
        self._lines = Lines(text, source)
        self._at = {token.start: place for place, token in enumerate(tokens)}
        self._spent: set[int] = set()
        self._called: dict[int, int] = {}
        self._casts: dict[int, str] = {}

    def mark(self, token: Token) -> Mark:
        """Return the position of a token."""
        return self._lines.mark(token.start, token.end + 1)

    def text_of(self, token: Token) -> str:
        """Return a token as it is written; nothing for a value."""
        return self._lines.text_of(token)

    def mark_of(self, node: exp.Expr) -> Mark:
        """Return the position of the first token of a node, as far as known."""
        return self.mark(self.tokens[self._begin(node)])

    def _begin(self, node: exp.Expr) -> int:
        """Return the number of a node's first token; of one nearby, if it has none.

        sqlglot does not record the positions of NULL, TRUE and FALSE.
        """
        first, above = self.first(node), node.parent
        if first is not None:
            return first
        while above is not None and self.first(above) is None:
            above = above.parent
        begin = 0 if above is None else self.first(above) or 0
        word = type(node).__name__.upper()
        kinds = ("TRUE", "FALSE") if word == "BOOLEAN" else (word,)
        behind = range(begin, len(self.tokens))
        return next((one for one in behind if self.kind(one) in kinds), begin)

    def first(self, node: exp.Expr) -> int | None:
        """Return the number of the first token of a node; None if nothing is known."""
        places = (self._place(one) for one in node.walk())
        return min((place for place in places if place is not None), default=None)

    def last(self, node: exp.Expr) -> int | None:
        """Return the number of the last token of a node that is known."""
        places = (self._place(one) for one in node.walk())
        return max((place for place in places if place is not None), default=None)

    def _place(self, node: exp.Expr) -> int | None:
        start = node.meta.get("start")
        return None if start is None else self._at.get(start)

    def word(self, place: int | None) -> str:
        """Return the text of a token in capitals; nothing where there is none."""
        if place is None or not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        quoted = token.token_type.name in ("STRING", "IDENTIFIER")
        return "" if quoted else token.text.upper()

    def kind(self, place: int) -> str:
        """Return the type of a token; nothing where there is none."""
        return self.tokens[place].token_type.name if place < len(self.tokens) else ""

    def spend(self, *places: int) -> None:
        """Note that tokens were understood."""
        self._spent.update(places)

    def spend_before(self, node: exp.Expr, word: str) -> None:
        """Note that the last such word before a node was understood."""
        before = range(self.first(node) or 0)
        self.spend(*[one for one in before if self.word(one) == word][-1:])

    def is_spent(self, place: int) -> bool:
        """Return whether a token was understood."""
        return place in self._spent

    def spend_node(self, node: exp.Expr, *kinds: str) -> bool:
        """Mark the token of a leaf as understood, if it has one of some types.

        Args:
            node: The leaf.
            kinds: Types of tokens; any, if omitted.
        """
        place = self._place(node)
        if place is None or (kinds and self.kind(place) not in kinds):
            return False
        self.spend(place)
        return True

    def name_of_call(self, node: exp.Expr) -> str:
        """Return the name that a function is called by, in capitals.

        Args:
            node: The call. Those within it are understood, if sqlglot does not record
                the position of its name: then it is the nearest word before them.
        """
        return self.word(self._place_of_call(node))

    def _place_of_call(self, node: exp.Expr) -> int | None:
        place, first = self._place(node), self.first(node)
        place = self._called.get(id(node), place)  # Some nodes are read twice.
        if place is not None or first is None:
            return place
        return next(
            (
                one
                for one in range(first - 1, -1, -1)
                if one not in self._spent
                and self.kind(one) not in SYNTAX
                and self.word(one + 1) == "("
            ),
            None,
        )

    def spend_call(self, node: exp.Expr, names: tuple[str, ...]) -> int:
        """Note that the name of a function was understood, and return its position.

        Args:
            node: The call.
            names: The names that it may have.

        Raises:
            InputError: If it has another one.
        """
        place = self._place_of_call(node)
        if (
            place is None
            or self.word(place) not in names
            or self.word(place + 1) != "("
        ):
            raise self.unread(node)
        self._called[id(node)] = place
        self.spend(place)
        return place

    def spend_cast(self, node: exp.Expr) -> str:
        """Note that a cast was understood, and return its type in capitals.

        Raises:
            InputError: If it is not written as CAST(… AS type) or …::type.
        """
        if id(node) in self._casts:
            return self._casts[id(node)]  # It is read once more.
        behind = (self.last(node.this) or 0) + 1
        while behind in self._spent or self.kind(behind) in SYNTAX - {"ALIAS"}:
            behind += 1  # It ends with words whose positions are unknown.
        if self.kind(behind) == "ALIAS":
            self.spend_call(node, ("CAST", "TRY_CAST"))
        elif self.kind(behind) != "DCOLON":
            raise self.unread(node, CASTS)
        self.spend(behind, behind + 1)
        self._casts[id(node)] = self.word(behind + 1)
        return self._casts[id(node)]

    def is_value(self, node: exp.Expr) -> bool:
        """Return whether a leaf is written as a value, such as a text in quotes."""
        place = self._place(node)
        return place is None or self.kind(place) in VALUES

    def unread(self, node: exp.Expr, reason: Reason | None = None) -> InputError:
        """Return the refusal of a node, ready to be raised; it names a token of it.

        Args:
            node: The unsupported node.
            reason: The reason; by default what is known about the token's word.
        """
        return self.unread_at(self._telling(node), reason)

    def unread_at(self, place: int, reason: Reason | None = None) -> InputError:
        """Return the refusal of a token, ready to be raised.

        Args:
            place: Its number.
            reason: The reason; by default what is known about its word.
        """
        token = self.tokens[place]
        kind, called = token.token_type.name, self.word(place + 1) == "("
        is_name = kind == "IDENTIFIER" or (kind == "VAR" and not called)
        here = kind in VALUES | SYNTAX or (is_name and self.word(place) not in WORDS)
        label = ""
        if reason is None and called and not here:
            reason, label = of_function(self.word(place))
        elif reason is None:
            reason = self.reserved(place)
        word, mark = self.text_of(token), self.mark(token)
        return not_read(word, mark, reason, label=label, here=here)

    def reserved(self, place: int) -> Reason | None:
        """Return how to write a declared name that is also a word of SQL.

        Returns:
            The remedy; None if the token is no such word, or is meant as one.
        """
        name = self._declared.get(self.word(place).casefold())
        kind = self.kind(place)
        is_word = kind not in ("VAR", *VALUES) or self.word(place) in CLAUSES
        if name is None or not is_word or self.kind(place + 1) in ("NUMBER", "STAR"):
            return None
        return Reason(
            "it is a reserved word of SQL", f'write the name in quotes: "{name}"'
        )

    def called(self, node: exp.Expr) -> str:
        """Return the most descriptive word of a node, in capitals."""
        return self.word(self._telling(node))

    def keyword(self, word: str, after: int = 0) -> int:
        """Return the number of the first token that is a word; 0 if there is none."""
        places = range(after, len(self.tokens))
        return next((one for one in places if self.word(one) == word), 0)

    def _telling(self, node: exp.Expr) -> int:
        """Return the most descriptive token of a node: its operator or name."""
        left, right = node.args.get("this"), node.args.get("expression")
        first = self._begin(node)
        if "to" in node.args:
            return self._of_cast(left, first)
        if type(node).__name__ == "Extract":
            before = range(first, 0, -1)
            return next((one for one in before if self.word(one) == "EXTRACT"), first)
        if _is_node(left) and _is_node(right):
            last, behind = self.last(left), self.first(right)
            if last is not None and behind is not None:
                between = range(last + 1, behind)
                signs = [one for one in between if self.word(one) not in _BRACKETS]
                if signs:
                    return signs[0]
        if "to" not in node.args and self.word(first - 1) == "-":
            return first - 1
        named = node.meta.get("start") is not None
        called = first >= 2 and self.word(first - 1) == "(" and not named
        is_name = self.kind(first - 2) not in SYNTAX if called else False
        return first - 2 if is_name else first

    def _of_cast(self, inner: object, first: int) -> int:
        """Return the token of a cast: a word, type or sign."""
        behind = (self.last(inner) or 0) + 1 if _is_node(inner) else 0
        if self.kind(behind) == "DCOLON":
            return behind
        before = first - 2 if self.word(first - 1) == "(" else first - 1
        return max(before, 0)

    def refuse_left(self) -> None:
        """Refuse the first token of which nothing was made.

        Raises:
            InputError: If there is one.
        """
        for place, token in enumerate(self.tokens):
            if place not in self._spent and token.token_type.name not in SYNTAX:
                raise self.unread_at(place)


def _is_node(value: object) -> TypeGuard[exp.Expr]:
    return hasattr(value, "walk")


def only(sql: SqlText, node: exp.Expr, known: Iterable[str]) -> None:
    """Refuse a node with parts other than the known ones.

    Raises:
        InputError: If it has another part.
    """
    allowed = frozenset(known)
    for key, value in node.args.items():
        if key in allowed or value is None or value is False or value == []:
            continue
        if value is True and (place := sql.keyword(key.upper())):
            raise sql.unread_at(place)
        part = value[0] if isinstance(value, list) else value
        raise sql.unread(part if _is_node(part) else node, WORDS.get(key.upper()))


_OF_TEXTS: Final = frozenset("‘’‚‛´′「」")  # noqa: RUF001 - these are meant
_OF_BOTH: Final = frozenset("“”„‟″«»")
_OF_NAMES: Final = frozenset("`")


def refuse_odd_quotes(sql: SqlText) -> None:
    """Refuse quotes of text editors or other databases, outside of values.

    Raises:
        InputError: If there is one; the quoted text is not shown.
    """
    for token in sql.tokens:
        if token.token_type.name in (*VALUES, "IDENTIFIER"):
            continue
        if not _OF_TEXTS.isdisjoint(token.text) or not _OF_BOTH.isdisjoint(token.text):
            remedy = "write ' around a text, and \" around a name"
        elif not _OF_NAMES.isdisjoint(token.text):
            remedy = "write \" around a name, and ' around a text"
        else:
            continue
        raise refused(
            Code.NOT_SQL,
            "the text is not SQL: a quote is not valid in SQL",
            sql.mark(token),
            reason=Reason("", remedy),
        )
