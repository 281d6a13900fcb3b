"""Texts about the limitations of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.ledger.proof.repricing import Unpriced
from modicum.ledger.state.gaps import Gaps
from modicum.reports.markup import Markup, element, table

#: What a rule guarantees.
PROMISES = (
    "A rule sums the losses of the mechanisms that it matches, for one instance of its"
    " privacy unit: one person, or one person's day. While the rule is within its"
    " limit, two tables that differ in that instance lead to about equally likely"
    " results of those mechanisms, within the budget, with all other releases fixed.",
    "This holds for adaptively chosen releases: teams may see earlier results before"
    " they request the next release. If a limit or the filter changed after releases,"
    " the promise is the largest limit, with the delta of all filters together; the"
    " table of rules shows both.",
    "A rule about all releases is differential privacy towards anyone who sees all of"
    " them. A rule about an attribute or a category bounds what the mechanisms that"
    " read it reveal about the whole instance; it is not differential privacy of the"
    " attribute itself, and mechanisms that do not read the attribute may still reveal"
    " something about it. A rule in a context is a promise to people who see only the"
    " releases of that context.",
)
#: What it does not guarantee.
LIMITS = (
    "That the descriptions are true. The ledger never sees the data, the programs or"
    " the noise. What a release read, which bounds were enforced and which noise was"
    " added is what its author declared.",
    "Anything about what is not in the ledger: unrecorded releases, and disclosures"
    " outside differential privacy, which no rule can count. If there are such"
    " disclosures, every promise here is conditional on what they revealed.",
    "That a rule over its limit protects as its budget says. It denies matching"
    " releases in the cells over the limit, so no decision makes it worse; the table"
    " shows what was spent. Recorded past releases still count.",
    "That nothing is learned about people. Facts about a group are learned whether or"
    " not one person takes part.",
    "That several instances together are protected as well as one: the bound on one"
    " person's loss is not a bound on a family's.",
    "Anything about the run time of queries, or about who saw the raw data.",
)
#: What checking a log proves, and what it cannot.
CHECKED = (
    "All entries were read. Each has its number, its hash and the hash of the one"
    " before it; no release was published before it was started, or canceled after"
    " that; and every decision was replayed, under the policy that was active then and"
    " the entries before it, with the same outcome. Every release was priced again from"
    " its description; none states a lower loss."
)
PINNED = (
    "Signatures by trusted keys show that these entries are the ones that existed when"
    " the checkpoint was signed."
)
NOT_PINNED = (
    "No entry is signed by a trusted key. The log is consistent, but anyone who can"
    " write it could have rewritten all of it."
)
NOBODY_PROVES_IDENTITY = (
    "Names of people are self-reported, and times are those of the machines that wrote"
    " the entries."
)
#: The evidence for a correction of the past.
CORRECTED = (
    "A past release is charged where its description says that it read. At least two"
    " people corrected the periods that were recorded. If they are wrong, the spent"
    " budget is understated where the release did read. Everything else about the"
    " release, including the losses of its mechanisms, follows from the record."
)
#: The evidence for a vote.
WORDS = (
    "A vote without a signature was made by anyone who could write to the ledger as"
    " that person. A signature shows that the holder of a key voted, at this place of"
    " this log. The policy of that time lists the owner of the key, but it is part of"
    " the log, too: so compare the key with the one that its owner gives you. A service"
    " that signs for its users has one key for all of them."
)
#: What contracts prove, and what they cannot.
CONTRACTS = (
    "Every run and disclosure had a contract, approved by the required number of owners"
    " of each of its data sets and rejected by none; all of that was verified. An exact"
    " answer itself is never disclosed. No ledger can show what programs and sandboxes"
    " did, or that nothing left the machine without being recorded."
)
#: The meaning of a score on exact answers.
NOT_PRIVATE = (
    "A score on exact answers is not differentially private: no epsilon bounds it, and"
    " no rule on this page counts it. It is counted in bits instead, and every promise"
    " on this page is conditional on what it revealed."
)


def lost_entries(gaps: Gaps) -> Iterator[Markup]:
    """Yield a warning about entries that the ledger has lost, if losses may be missing.

    Args:
        gaps: What the log has lost, and what became of it.
    """
    for gap in gaps.open.values():
        yield element(
            "p", f"Losses may be missing on this page: {gap.text()}.", class_="near"
        )
    for seq in gaps.accepted:
        yield element(
            "p",
            "Losses may be missing on this page: entries of the ledger were lost, and"
            f" two people accepted that with entry {seq}.",
            class_="near",
        )


def unverified_losses(unpriced: Unpriced) -> Iterator[Markup]:
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
        f"{what} could not be priced again; their recorded losses are taken as they"
        " are.",
        class_="near",
    )
    more = count - len(unpriced.first)
    yield table(
        f"The first {len(unpriced.first)} of them" if more else "Which, and why",
        ("Entry", "Release", "Mechanism", "Why"),
        [(str(one.seq), one.release, one.mechanism, one.why) for one in unpriced.first],
    )
