"""The cost of a mechanism that runs on a secret Poisson sample.

Let S be the sampled unit and K a random set of keys of S, each included independently
with the rate. On
a table, the mechanism answers as it would on the rows whose key of S is in K. Rows are
chosen by their keys alone, so it is the same to choose the part of the data first that
the mechanism reads, and among these rows the sample.

S itself: an instance that is present or absent is in the sample with the probability of
the rate, independent of the others. So its loss is amplified, under `add-remove` and
under no other relation (`modicum.accounting.amplification`).

Another unit U: let two tables be neighbors for U, and take the same K for both. They
differ in the rows of one instance of U, and so does what is left of them. If one table
has none of these rows, then so it is after sampling: `add-remove` stays `add-remove`,
and `any-change` stays `any-change`. For every K the two answers are as far apart as the
loss without a sample says, or equal; and K is as likely for the one as for the other.
All measures are jointly quasi-convex, so the mixtures over K are no farther apart: the
loss without a sample is proven. It need not be less: other visits of a patient may show
that the patient is in the sample, and then one visit costs what it costs without one.

`substitute` does not stay: what an instance has before may lie under a key of S that is
in the sample, and what it has after under one that is not. Then it leaves, of which the
loss says nothing. It stays if all rows of an instance of U lie in one instance of S,
the same in every table (`Vocabulary.owners`): both are in the sample, or none is.

From one unit to another: with its sample, a mechanism is a mechanism like any other,
and the two guarantees above hold between any two neighboring tables. So group privacy
holds along every path of such neighbors, and losses are completed from the amplified
loss as from any loss that is stated. This asks nothing of the sample: the steps are
between tables, and each is taken with a sample that is drawn anew. Nor does the sample
make a mechanism that reads some days look at others: it answers alike on a table and on
what these days leave of it, so the fewer steps within them hold as well.

A kind that takes its own samples, one in each step, has the sample in its curve, which
is for `add-remove` of S. It states nothing for other units: they are completed from S.
"""

from __future__ import annotations

from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.core.errors import Code, InputError
from modicum.release.model import Mechanism, wrong
from modicum.release.sampling import Sampling
from modicum.release.vocabulary import Vocabulary


def refuse_unproven(mechanism: Mechanism, vocabulary: Vocabulary) -> None:
    """Refuse a sample that amplifies nothing: it would be believed to.

    Raises:
        InputError: If the mechanism is of a kind that no sample amplifies, the unit
            is of another relation, or there are no parameters to start from.
    """
    sampling = mechanism.sampling
    if sampling is None:
        return
    _refuse_kind(mechanism, sampling)
    relation = vocabulary.relation(sampling.unit)
    if relation != "add-remove":
        raise wrong(
            mechanism,
            Code.COST_NOT_DERIVABLE,
            f"no loss is proven for a sample of `{sampling.unit}`, whose neighbors are"
            f" {relation}",
            notes=(
                "a Poisson sample amplifies only guarantees for adding or removing"
                " one instance",
            ),
            help="sample a unit whose neighbors are add-remove, or leave `sampling`"
            " out" + _without(mechanism),
            mark=sampling.mark,
        )
    _refuse_nothing_to_amplify(mechanism, sampling)


def on_sample(
    mechanism: Mechanism, unit: str, computed: Curve, vocabulary: Vocabulary
) -> Curve:
    """Return the cost of a mechanism for a unit, with its sampling.

    Args:
        mechanism: The description.
        unit: The unit.
        computed: Its cost for the unit without a sample, by its parameters.
        vocabulary: Its units and their relations.

    Raises:
        InputError: If nothing follows for the unit.
    """
    from modicum.accounting.named_mechanisms import sampled_curve

    sampling = mechanism.sampling
    if sampling is None:
        return computed
    if unit == sampling.unit:
        values = {
            **mechanism.parameters,
            "sensitivity": mechanism.sensitivity[unit],
        }
        kind = RELEASE_KINDS[mechanism.kind]
        return sampled_curve(kind, values, sampling.rate, "poisson")
    whole = sampling.unit in vocabulary.owners.get(unit, ())
    if vocabulary.relation(unit) == "substitute" and not whole:
        raise _may_leave(mechanism, unit, sampling)
    return computed


def _without(mechanism: Mechanism) -> str:
    """Return what a mechanism costs without `sampling`, to follow its remedy."""
    if RELEASE_KINDS[mechanism.kind].samples:
        return " with the parameters, and declare a `cost`"
    return "; for this unit, the loss without it is also valid with it"


def _refuse_kind(mechanism: Mechanism, sampling: Sampling) -> None:
    kind = RELEASE_KINDS[mechanism.kind]
    if not kind.parameters:
        raise wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            "a declared cost is not amplified by `sampling`",
            notes=("it is unknown whether the cost already includes the sample",),
            help="leave `sampling` out, and declare what it costs on its sample:"
            " `modicum account subsample` shows that",
            mark=sampling.mark,
        )
    if not kind.amplified and not kind.samples:
        raise wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            f"`{mechanism.kind}` is not amplified by `sampling`",
            notes=(
                "it is a stream, whose price knows no samples"
                if kind.of_unit
                else f"its loss is proven for {kind.relation}: not for an instance that"
                " a sample leaves out",
            ),
            help="leave `sampling` out, and declare in `cost` what it costs on its"
            " sample",
            mark=sampling.mark,
        )


def _refuse_nothing_to_amplify(mechanism: Mechanism, sampling: Sampling) -> None:
    kind, unit = RELEASE_KINDS[mechanism.kind], sampling.unit
    needed = [f"`{key}`" for key in kind.needed if key not in mechanism.parameters]
    if unit not in mechanism.sensitivity and not kind.samples:
        needed.append(f"`sensitivity: {{{unit}: {{{kind.norm}: …}}}}`")
    if needed:
        raise wrong(
            mechanism,
            Code.MISSING_KEY,
            f"`sampling` of `{unit}` has no effect without {' and '.join(needed)}",
            notes=("only losses computed from parameters are amplified",),
            help=f"give {' and '.join(needed)}, or leave `sampling` out and declare a"
            " `cost`",
            mark=sampling.mark,
        )


def _may_leave(mechanism: Mechanism, unit: str, sampling: Sampling) -> InputError:
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        f"no loss is proven for `{unit}` on a sample of `{sampling.unit}`",
        notes=(
            f"under substitute neighbors, rows of one `{unit}` that are in the sample"
            " may be replaced by rows that are not: it may leave the sample, which its"
            " sensitivity does not cover",
        ),
        help=f"leave `{unit}` out of `sensitivity`, and declare in `cost` what it costs"
        f" on the sample; or in the policy, declare `{unit}` to lie within"
        f" `{sampling.unit}` with the same `id`",
        mark=mechanism.mark,
    )
