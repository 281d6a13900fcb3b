"""A draft of a tables file: declarations that a person reviews before they count."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.core.reader import name as read_name
from modicum.query.table_format import FORMAT
from modicum.query.tables import Column, ColumnType
from modicum.release.vocabulary import Vocabulary

#: The rounding step of numbers where their type does not determine it.
USUAL_STEP: Final = Fraction(1, 100)
_HEADER: Final = (
    "A draft: losses depend on this file.",
    "Review each line marked `guess`, then remove the mark.",
    "Declare bounds and values from what is publicly known, never from the rows.",
)
#: Begins the comment of a guess; a reviewer removes it.
GUESS: Final = "# guess: "
_ROW_IDS: Final = frozenset({"id", "row_id", "rowid", "uuid", "guid"})
_ROW_ID_TYPES: Final[tuple[ColumnType, ...]] = ("text", "integer")
_PLAIN: Final = re.compile(r"[A-Za-z_][\w.+-]*")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_MISSING: Final = {"number": "bounds: [LOW, HIGH]", "integer": "bounds: [LOW, HIGH]"}


@dataclass(frozen=True, slots=True)
class TableDraft:
    """The draft of one table.

    Attributes:
        table: Its name.
        source: Its source, as text.
        columns: Its columns with their guessed types; their attributes are proposed.
        row_id: The column that seems to identify a row; None if none does.
        one_per: The id of a unit of which it seems to have one row each, if any.
        left_out: Columns that cannot be queried as they are, each with the reason.
    """

    table: str
    source: str
    columns: tuple[Column, ...]
    row_id: str | None
    one_per: str | None
    left_out: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form: the table as a tables file writes it."""
        found: dict[str, object] = {"table": self.table}
        if self.row_id is not None:
            found["row_id"] = self.row_id
        if self.one_per is not None:
            found["one_per"] = self.one_per
        found["columns"] = {one.name: _column(one) for one in self.columns}
        return {**found, "left_out": dict(self.left_out)}


def draft_table(
    table: str,
    source: str,
    columns: Iterable[tuple[str, Column | None]],
    vocabulary: Vocabulary,
) -> TableDraft:
    """Return the draft of one table in a tables file.

    Args:
        table: Its name.
        source: Its source, as text.
        columns: The columns of the data by name, each with a guessed type; None if its
            values are of a type that no query reads.
        vocabulary: The vocabulary of the policy.

    Raises:
        InputError: If no column can be declared under this policy.
    """
    ids = {unit.id for unit in vocabulary.unit_facts.values()}
    kept: dict[str, Column] = {}
    left_out: dict[str, str] = {}
    for own_name, column in columns:
        reason = _unusable(own_name, kept)
        if reason or column is None:
            left_out[own_name] = reason or "queries do not support its type"
        else:
            kept[own_name] = _fitted(column, ids, vocabulary)
    row_id = _row_id(table, kept, ids)
    for own_name, column in list(kept.items()):
        proposed = _with_attribute(column, {*ids, row_id}, vocabulary)
        if proposed is None:
            left_out[own_name] = "it has no attribute of the policy"
            del kept[own_name]
        else:
            kept[own_name] = proposed
    if not kept:
        raise InputError(
            Problem(
                Code.UNKNOWN_ATTRIBUTE,
                f"no column of {source} is an id or an attribute of the policy",
                notes=(
                    "ids: " + (", ".join(sorted(ids)) or "none"),
                    "attributes: " + (", ".join(sorted(vocabulary.attributes)[:20])),
                ),
                help="declare its attributes in the policy, or name another file",
            )
        )
    own = {f"{_singular(table)}_id", _singular(table)}
    one_per = row_id if row_id in ids and row_id.casefold() in own else None
    return TableDraft(table, source, tuple(kept.values()), row_id, one_per, left_out)


def draft_text(drafts: Sequence[TableDraft], vocabulary: Vocabulary) -> str:
    """Return drafts of tables as the text of a tables file, each guess marked."""
    lines = [f"# {one}" for one in _HEADER]
    lines += [f"modicum: {FORMAT}", "tables:"]
    for draft in drafts:
        lines += _lines(draft, vocabulary)
    return "\n".join(lines) + "\n"


def _lines(draft: TableDraft, vocabulary: Vocabulary) -> Iterable[str]:
    yield f"  {_quoted(draft.table)}:  # from {_harmless(draft.source)}"
    if draft.row_id is None:
        yield "    # No row_id: rows are ordered by their contents. If a column"
        yield "    # permanently identifies a row, name it:  row_id: COLUMN"
    else:
        yield (
            f"    row_id: {_quoted(draft.row_id)}  {GUESS}by its name; it must be"
            " permanent"
        )
    if draft.one_per is not None:
        yield f"    one_per: {_quoted(draft.one_per)}  {GUESS}one row for each"
    yield "    columns:"
    for one in draft.columns:
        written = ", ".join(
            f"{key}: {_quoted(value)}" for key, value in _column(one).items()
        )
        remark = "; ".join(_remarks(one, draft, vocabulary))
        yield f"      {_quoted(one.name)}: {{{written}}}  {GUESS}{remark}"
    for own_name, reason in draft.left_out.items():
        yield f"      # {_harmless(own_name)}: left out, {reason}"
    units = vocabulary.unit_facts.values()
    known = {one.name for one in draft.columns}
    for column in dict.fromkeys(
        name for unit in units for name in (unit.id, unit.column) if name is not None
    ):
        if column not in known:
            yield f"      # {column}: used by units of the policy; not in this file"


def _remarks(
    column: Column, draft: TableDraft, vocabulary: Vocabulary
) -> Iterable[str]:
    yield "type"
    if column.attribute is not None and column.attribute != column.name:
        yield "attribute"
    if column.name in {unit.id for unit in vocabulary.unit_facts.values()}:
        yield "identifies the owner of a row"
    if column.name in vocabulary.clocks:
        yield "the time of a row"
    if column.type == "number":
        yield "step"
    if column.attribute is not None and column.name != draft.row_id:
        if column.type in _MISSING:
            yield f"sums and averages need {_MISSING[column.type]}"
        elif column.type == "text" and column.partition is None:
            yield "public groups need values: [ALL, OF, THEM]"


def _unusable(own_name: str, kept: Mapping[str, Column]) -> str:
    """Return why a column cannot be named in a tables file; empty if it can."""
    try:
        read_name(from_python(own_name), "a column")
    except InputError:
        return "rename it: use letters, digits and _ . + -"
    if any(own_name.casefold() == one.casefold() for one in kept):
        return "another column differs in case only"
    return ""


def _fitted(column: Column, ids: Iterable[str], vocabulary: Vocabulary) -> Column:
    """Return a column with a type that its role in the policy allows."""
    if column.name in vocabulary.clocks and column.type not in ("date", "timestamp"):
        return replace(column, type="date", step=Fraction(1))
    if column.name in ids and column.type not in _ROW_ID_TYPES:
        return replace(column, type="text", step=Fraction(1))
    return column


def _with_attribute(
    column: Column, only_identify: Iterable[str | None], vocabulary: Vocabulary
) -> Column | None:
    """Return a column with the attribute that it seems to hold; None if it has none."""
    known = {_letters(one): one for one in sorted(vocabulary.attributes)}
    attribute = column.name if column.name in vocabulary.attributes else None
    if attribute is None and column.name not in {*only_identify, *vocabulary.clocks}:
        close = difflib.get_close_matches(_letters(column.name), known, 1, cutoff=0.8)
        if not close:
            return None
        attribute = known[close[0]]
    partition = vocabulary.population.partitions.get(column.name)
    if partition is None:
        return replace(column, attribute=attribute)
    needed: ColumnType = "integer" if partition.values is None else "text"
    return replace(
        column,
        attribute=attribute,
        partition=partition.name,
        type=needed,
        step=Fraction(1),
    )


def _row_id(
    table: str, columns: Mapping[str, Column], ids: Iterable[str]
) -> str | None:
    likely = _ROW_IDS | {f"{_singular(table)}_id", f"{table.casefold()}_id"}
    likely |= {one.casefold() for one in ids if one.casefold() == _singular(table)}
    for one in columns.values():
        if one.name.casefold() in likely and one.type in _ROW_ID_TYPES:
            return one.name
    return None


def _column(column: Column) -> dict[str, str | float]:
    found: dict[str, str | float] = {"type": column.type}
    if column.attribute is not None and column.attribute != column.name:
        found["attribute"] = column.attribute
    if column.partition is not None:
        found["partition"] = column.partition
    if column.type == "number":
        found["step"] = float(column.step)
    return found


def _singular(table: str) -> str:
    return table.casefold().removesuffix("s")


def _letters(word: str) -> str:
    return "".join(filter(str.isalnum, word.casefold()))


def _quoted(word: str | float) -> str:
    if isinstance(word, float):
        return number_text(Fraction(str(word)))
    is_plain = _PLAIN.fullmatch(word) and word.casefold() not in _WORDS
    return word if is_plain else f'"{word}"'


def _harmless(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text[:80])
