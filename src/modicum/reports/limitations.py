"""What a statement says about the worth of its own numbers."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.ledger.proof.repricing import Unpriced
from modicum.reports.markup import Markup, element, table

#: What a rule promises.
PROMISES = (
    "A rule adds up the losses of the mechanisms that it is about, for one instance of"
    " its privacy unit: one person, one person's day. As long as it stays within its"
    " limit, two tables that differ in that one instance lead to about equally likely"
    " results of those mechanisms, within the budget, with everything else that was"
    " released held fixed.",
    "This holds however the releases were chosen: teams may have looked at earlier"
    " results before they asked for the next.",
    "A rule about everything released is a statement of differential privacy towards"
    " whoever sees all of it. A rule about an attribute or a category bounds what the"
    " mechanisms that read it tell about the whole instance; it is not differential"
    " privacy of the attribute itself, and mechanisms that do not read it may tell"
    " something about it all the same. A rule in a context is a promise to people who"
    " see the releases of that context and no others.",
)
#: What it does not promise.
LIMITS = (
    "That the descriptions are true. The ledger never saw the data, the programs or the"
    " noise. What a release read, what bounds were enforced and what noise was added is"
    " what its maker said.",
    "Anything about what is not in the ledger: releases nobody recorded, and"
    " disclosures outside differential privacy, which no rule can count. Where the list"
    " of such disclosures is not empty, every promise here is one given what they"
    " told.",
    "That a rule over its limit protects as its budget says. It denies what falls"
    " under it, in the cells that are over, so that no decision makes it worse; what"
    " was spent stands in the table. A past release that is recorded is counted all"
    " the same.",
    "That nothing is learned about people. What holds for a group is learned whether or"
    " not one of them takes part.",
    "That several instances together are protected as well as one: what bounds one"
    " person's loss does not bound a family's at the same figure.",
    "Anything about the time that queries took, or about who saw the raw data.",
)
#: What checking a log shows, and what it cannot.
CHECKED = (
    "The entries were read from the first to the last. Each carries its number, its"
    " hash and the hash of the one before it; no release was published before it was"
    " started, or taken back after; and every decision was taken again, under the"
    " policy that was active then and the entries before it, with the same outcome."
    " Every release was priced again from its description; none states less than that."
)
PINNED = (
    "Signatures by keys that the reader named show that these entries are the ones that"
    " were there when the checkpoint was signed."
)
NOT_PINNED = (
    "No entry is vouched for by a key that the reader named. The log contradicts itself"
    " nowhere, but whoever could write it could have written all of it anew."
)
NOBODY_PROVES_IDENTITY = (
    "Names of people are what they called themselves, and times are those of the"
    " machines that wrote the entries."
)
#: What a correction of the past is worth.
CORRECTED = (
    "A past release is charged where its description says that it read. Here two people"
    " or more said that it read other periods than were recorded. If they are wrong,"
    " what is spent is understated where it did read. All else about the release, and"
    " what its mechanisms cost where they read, follows from what was recorded."
)
#: What a word of somebody is worth.
WORDS = (
    "A word without a signature is by whoever could write to the ledger as that person."
    " A signature shows that the holder of a key said this, at this place of this log."
    " Whose key it is, the policy of the day says, which stands in the log as well: so"
    " compare the key with the one that its owner gives you. A service that signs for"
    " the people whom it knows has one key for all of them."
)
#: What contracts show, and what they cannot.
CONTRACTS = (
    "Everything that ran or was let go had a contract, the agreement of as many owners"
    " of each of its data sets as must agree, and no refusal; all of that was checked."
    " An exact answer itself is never let go. What programs and sandboxes did, and that"
    " nothing left the machine past this ledger, no ledger shows."
)
#: What a score on exact answers is.
NOT_PRIVATE = (
    "A score on exact answers is not differentially private: no epsilon describes it,"
    " and no rule on this page counts it. What it can tell is counted in bits instead,"
    " and every promise on this page is one given what it told."
)


def believed(unpriced: Unpriced) -> Iterator[Markup]:
    """Yield a warning about releases that could not be priced again, if there are any.

    Args:
        unpriced: How many there are, and the first of them.
    """
    count = unpriced.releases
    if not count:
        return
    what = "1 release" if count == 1 else f"{count} releases"
    yield element(
        "p",
        f"{what} could not be priced again, and the stored losses are believed.",
        class_="near",
    )
    more = count - len(unpriced.first)
    yield table(
        f"The first {len(unpriced.first)} of them" if more else "Which, and why",
        ("Entry", "Release", "Mechanism", "Why"),
        [(str(one.seq), one.release, one.mechanism, one.why) for one in unpriced.first],
    )
