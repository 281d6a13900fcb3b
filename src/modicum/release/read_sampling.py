"""Reading which sample a mechanism runs on: `sampling`."""

from __future__ import annotations

from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, choice, fail, probability, text
from modicum.release.sampling import Sampling
from modicum.release.vocabulary import Vocabulary

#: How samples may be drawn.
DRAWS = ("poisson",)


def read_sampling(
    fields: Fields, inherited: Sampling | None, vocabulary: Vocabulary, found: Problems
) -> Sampling | None:
    """Return the sample that a release or a mechanism names; None for all rows.

    Args:
        fields: Its keys; `sampling` is taken.
        inherited: What holds if it is left out.
        vocabulary: The words it may use.
        found: Collects the mistakes.
    """
    node = fields.take_optional("sampling")
    if node is not None:
        with found.guard():
            return _sampling(node, vocabulary)
    return inherited


def _sampling(node: Node, vocabulary: Vocabulary) -> Sampling:
    found = Problems()
    fields = Fields(node, "`sampling`")
    unit, rate = "?", None
    with found.guard():
        unit = choice(
            fields.take("unit"), "privacy unit", vocabulary.units, Code.UNKNOWN_UNIT
        )
    with found.guard():
        rate = probability(fields.take("rate"), "the rate of a sample")
    with found.guard():
        drawn = fields.take_optional("by")
        if drawn is not None:
            _refuse_other_draws(drawn)
    with found.guard():
        fields.finish()
    found.raise_any()
    assert rate is not None
    return Sampling(unit, rate, node.mark)


def _refuse_other_draws(node: Node) -> None:
    if text(node, "how a sample is drawn") not in DRAWS:
        raise fail(
            Code.NOT_SUPPORTED,
            "releases are priced on Poisson samples only",
            node,
            notes=(
                "a sample of fixed size, or a shuffled batch, is not a Poisson sample",
            ),
            help="`modicum account subsample` shows the loss of a sample of fixed size:"
            " give `mechanism: declared` with that as its `cost`",
        )
