"""The cost of a score of blocks, as an ordinary release that every rule counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from modicum.core.canonical import digest, encode
from modicum.core.document import Entries, Node, Scalar, from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.fields import Fields
from modicum.core.rationals import brief, number_text
from modicum.core.reader import choice, count, positive, release_id
from modicum.core.yaml_reader import read_document
from modicum.escrow.block_division import divided_by, must_divide
from modicum.escrow.blocks import BLOCKS_MAX, SENSITIVITY, ByBlocks, in_scores
from modicum.escrow.programs import Range
from modicum.query.digest import PREFIX
from modicum.query.intervals import width
from modicum.query.query_file import QueryFile
from modicum.query.request import Noise
from modicum.query.request_format import MEASURES
from modicum.release.price import with_defaults
from modicum.release.vocabulary import METADATA, QUERY, Vocabulary

BLOCKS_KIND: Final = "modicum-blocks/v1"
_PART: Final = frozenset({"where", "periods", "groups"})
_NOISES: Final[tuple[Noise, ...]] = ("laplace", "gaussian")
_TEXT: Final = "the loss of a score of blocks"


@dataclass(frozen=True, slots=True)
class Scored:
    """The scored content, and the id of its release.

    Attributes:
        release: The id of the release.
        queries: The queries whose exact answers are scored, as read now.
        program: The program, as its contract names it.
        span: The range of its scores.
    """

    release: str
    queries: Sequence[QueryFile]
    program: str
    span: Range


@dataclass(frozen=True, slots=True)
class BlockScore:
    """A score of blocks as a future release.

    Attributes:
        scored: The scored content.
        blocks: How, with the unit that is divided.
        text: The text that people approve.
        described: The release, as a tree.
    """

    scored: Scored
    blocks: ByBlocks
    text: str
    described: Node

    @property
    def moved(self) -> Fraction:
        """The change of the mean by one instance of the unit."""
        return self._in_scores(Fraction(SENSITIVITY))

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the mean."""
        return self._in_scores(self.blocks.scale)

    @property
    def half_width(self) -> Fraction:
        """So far noise carries the mean, at most, nineteen times in twenty."""
        blocks = self.blocks
        steps = width(blocks.noise, blocks.scale, Fraction(1, 20))
        return self._in_scores(Fraction(steps))

    def explain(self) -> Iterator[str]:
        """Yield the explanation for approvers, in lines."""
        unit, number = self.blocks.unit, self.blocks.number
        yield (
            f"the program runs on exact answers about each of {number} blocks of"
            f" `{unit}`; the result is the noisy mean of the scores"
        )
        yield (
            f"one `{unit}` moves the mean by at most {brief(self.moved)};"
            f" {self.blocks.noise} noise of scale {brief(self.scale)} moves it by"
            f" at most {brief(self.half_width)} with 95 % probability"
        )
        yield "a block without a score counts as the middle of the range"

    def _in_scores(self, steps: Fraction) -> Fraction:
        return in_scores(steps, self.blocks.number, self.scored.span)


def block_score(scored: Scored, blocks: ByBlocks, vocabulary: Vocabulary) -> BlockScore:
    """Return the cost of a score of blocks.

    Args:
        scored: The scored content.
        blocks: How.
        vocabulary: The vocabulary of the policy.

    Raises:
        InputError: If the queries cannot be divided by the unit, or one release cannot
            describe all of them.
    """
    blocks = divided_by(blocks, vocabulary)
    must_divide(scored.queries, blocks.unit, vocabulary)
    _must_be_alike(scored.queries, vocabulary)
    written = _written(scored, blocks)
    return BlockScore(scored, blocks, written, _described(scored, blocks, vocabulary))


def read_blocks(text: str, vocabulary: Vocabulary) -> tuple[str, ByBlocks]:
    """Return the release and the blocks that a text names, which people agreed to.

    Raises:
        InputError: If it is something else.
    """
    fields = Fields(read_document(text.encode("utf-8"), _TEXT), _TEXT)
    release = release_id(fields.take("release"), "the release id")
    fields.take("score")  # It is written again, and compared.
    inner = Fields(fields.take("blocks"), "`blocks`")
    unit = choice(
        inner.take("unit"), "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT
    )
    number = count(inner.take("number"), "`number`", at_least=1, at_most=BLOCKS_MAX)
    inner.finish()
    word = choice(fields.take("noise"), "noise", _NOISES, Code.UNKNOWN_CHOICE)
    noise: Noise = "gaussian" if word == "gaussian" else "laplace"
    of_unit = Fields(fields.take("loss"), "`loss`")
    measured = Fields(of_unit.take(unit), f"the loss of `{unit}`")
    loss = positive(measured.take(MEASURES[noise]), "the loss")
    for one in (measured, of_unit, fields):
        one.finish()
    return release, ByBlocks(number, loss, unit, noise)


def _written(scored: Scored, blocks: ByBlocks) -> str:
    ends = f"{number_text(scored.span.low)}, {number_text(scored.span.high)}"
    measure = MEASURES[blocks.noise]
    return f"""\
release: {_quoted(scored.release)}
score: {{of: "{PREFIX}{digest(scored.program.encode("utf-8"))}", range: [{ends}]}}
blocks: {{unit: {_quoted(blocks.unit)}, number: {blocks.number}}}
noise: {blocks.noise}
loss: {{{_quoted(blocks.unit)}: {{{measure}: {number_text(blocks.loss)}}}}}
"""


def _quoted(word: str) -> str:
    """Return a word in YAML, quoted safely."""
    return encode(word).decode("utf-8")


def _described(scored: Scored, blocks: ByBlocks, vocabulary: Vocabulary) -> Node:
    """Return the release: the common heading of the queries, and one mechanism."""
    units = vocabulary.unit_facts
    own = [name for name, one in units.items() if one.id == units[blocks.unit].id]
    norm, parameter = ("l1", "scale") if blocks.noise == "laplace" else ("l2", "sigma")
    attributes = {one for query in scored.queries for one in query.compiled.attributes}
    mechanism = {
        "name": "score",
        "mechanism": f"discrete-{blocks.noise}",
        "attributes": sorted(attributes),
        "sensitivity": {unit: {norm: SENSITIVITY} for unit in own},
        parameter: blocks.scale,
    }
    added = from_python(
        {
            "release": scored.release,
            QUERY: _identity(scored, blocks),
            "mechanisms": [mechanism],
        }
    )
    assert isinstance(added, Entries)  # It is a mapping.
    return Entries((*_heading(scored.queries, vocabulary), *added.entries), None)


def _identity(scored: Scored, blocks: ByBlocks) -> str:
    """Return what distinguishes it from other releases with the same description."""
    return PREFIX + digest(
        encode(
            {
                "kind": BLOCKS_KIND,
                "queries": [_value(one.described, QUERY) for one in scored.queries],
                "program": scored.program,
                "blocks": [blocks.unit, blocks.number],
                "loss": [blocks.noise, number_text(blocks.loss)],
            }
        )
    )


def _value(node: Node, name: str) -> str:
    assert isinstance(node, Entries)  # A query file was read of it.
    for key, value in node.entries:
        if key.text == name and isinstance(value, Scalar):
            return value.text
    return ""


def _heading(
    queries: Sequence[QueryFile], vocabulary: Vocabulary
) -> list[tuple[Scalar, Node]]:
    """Return the common heading of all queries: labels, part and purpose.

    If they read different parts, it is charged as if it read everything.
    """
    first = queries[0]
    known = {*vocabulary.labels, *METADATA, *_PART}
    if any(one.heading.part != first.heading.part for one in queries):
        known -= _PART
    for name in METADATA:
        values = {one.heading.metadata.get(name) for one in queries}
        if len(values) > 1 and name not in vocabulary.labels:
            known -= {name}
    assert isinstance(first.file, Entries)  # It was read as one.
    return [pair for pair in first.file.entries if pair[0].text in known]


def _must_be_alike(queries: Sequence[QueryFile], vocabulary: Vocabulary) -> None:
    labels = [with_defaults(one.heading.labels, vocabulary) for one in queries]
    if any(one != labels[0] for one in labels):
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                "the queries have different labels, and a score of all of them is one"
                " release, with one value per label",
                help="use one contract for queries with the same labels",
            )
        )
