"""Reading an audit bundle in one pass, without trusting its contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from modicum.core.canonical import decode, digest
from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger.log.chain import Record
from modicum.ledger.proof.access_trail import verified
from modicum.ledger.proof.bundle import (
    BUNDLE_KIND,
    BUNDLE_KIND_TRAIL,
    MANIFEST,
    PAGE_BYTES,
    PAGE_RECORDS,
    Manifest,
    TrailManifest,
    checkpoint_name,
    in_order,
    is_full,
    key_name,
    page_name,
    pems_of,
    policy_name,
    policy_of,
    trail_name,
)
from modicum.ledger.proof.claims import Signed, read_signed, signed_bytes
from modicum.ledger.proof.zip_format import Member


def broken(why: str) -> VerificationError:
    """Return the error for a bundle that contradicts itself."""
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the bundle contradicts itself: {why}",
            help="nothing in it is reliable; request it again",
        )
    )


class BundleReader:
    """A bundle read in one pass; only one page is held in memory.

    The manifest, the keys and the checkpoints are read immediately. `records` yields
    the records, and then checks the rest.

    Args:
        found: The members, in order.

    Attributes:
        manifest: The manifest of the bundle.
        checkpoints: The checkpoints; their signatures are not checked yet.

    Raises:
        VerificationError: If it is not put together as a bundle is.
    """

    def __init__(self, found: Iterable[Member]) -> None:
        self._members = _readable(found)
        self.manifest = _manifest(self._take(MANIFEST))
        self._keys = {key: self._take(key_name(key)) for key in self.manifest.keys}
        self.checkpoints = self._checkpoints()

    def records(self) -> Iterator[Record]:
        """Yield every record, with its hash recomputed; then check the rest.

        Raises:
            VerificationError: If anything else disagrees with the records.
        """
        seq, head, ledger = 0, "", ""
        activations: list[tuple[str, str]] = []
        pages = _Pages()
        for place in range(1, self.manifest.pages + 1):
            for line in pages.lines(self._take(page_name(place))):
                seq += 1
                record = Record(seq, line, digest(line))
                ledger, head = ledger or record.hash, record.hash
                policy = policy_of(record)
                if policy is not None:
                    name = policy_name(seq, policy.digest)
                    activations.append((name, digest(policy.text.encode("utf-8"))))
                yield record
        for name, text_digest in activations:
            if digest(self._take(name)) != text_digest:
                raise broken(f"`{name}` is not the activated policy")
        self._check_trail()
        if next(self._members, None) is not None:
            raise broken("it contains extra data")
        counted = (ledger, seq, head, len(activations))
        manifest = self.manifest
        if counted != (
            manifest.ledger,
            manifest.entries,
            manifest.head,
            manifest.policies,
        ):
            raise broken("its manifest does not agree with its records")

    def _check_trail(self) -> None:
        """Check the access trail, if there is one: its chain, and its end."""
        given = self.manifest.trail
        if given is None:
            return
        pages, last = _Pages(), None
        lines = chain.from_iterable(
            pages.lines(self._take(trail_name(place)))
            for place in range(1, given.pages + 1)
        )
        records = (Record(n, line, digest(line)) for n, line in enumerate(lines, 1))
        for last, _ in verified(records):  # noqa: B007 - the last one is compared
            pass
        if last is None or (last.seq, last.hash) != (given.events, given.head):
            raise broken("its manifest does not agree with its access trail")

    def _checkpoints(self) -> tuple[Signed, ...]:
        found = []
        for place in range(1, self.manifest.checkpoints + 1):
            name = checkpoint_name(place)
            data = self._take(name)
            try:
                signed = read_signed(data)
            except ValueError as error:
                raise broken(f"`{name}` is not a checkpoint: {error}") from error
            if signed_bytes(signed) != data:
                raise broken(f"`{name}` is not in canonical form")
            found.append(signed)
        if in_order(set(found)) != [signed_bytes(one) for one in found]:
            raise broken("its checkpoints are not in order, each once")
        if pems_of(found) != self._keys:
            raise broken("its keys are not those of its checkpoints")
        return tuple(found)

    def _take(self, name: str) -> bytes:
        found = next(self._members, None)
        if found is None:
            raise broken(f"`{name}` is missing")
        if found[0] != name:
            raise broken(f"`{found[0]}` is in the place of `{name}`")
        return found[1]


def _readable(found: Iterable[Member]) -> Iterator[Member]:
    try:
        yield from found
    except ValueError as error:
        raise broken(str(error)) from error


def _manifest(data: bytes) -> Manifest:
    try:
        plain = decode(data.removesuffix(b"\n"))
    except ValueError as error:
        raise broken(f"its manifest cannot be read ({error})") from error
    match plain:
        case {"kind": str(kind)} if kind not in (BUNDLE_KIND, BUNDLE_KIND_TRAIL):
            raise broken(f"it is of the kind `{kind[:80]}`, not `{BUNDLE_KIND_TRAIL}`")
        case {
            "ledger": str(ledger),
            "entries": int(entries),
            "head": str(head),
            "pages": int(pages),
            "checkpoints": int(checkpoints),
            "keys": [*keys],
            "policies": int(policies),
            **rest,
        }:
            names = tuple(str(key) for key in keys)
            trail = _trail(rest)
            manifest = Manifest(
                ledger, entries, head, pages, checkpoints, names, policies, trail
            )
        case _:
            raise broken("its manifest lacks a key")
    counts = (entries, pages, checkpoints, policies)
    if (
        manifest.to_bytes() != data
        or list(names) != sorted(set(names))
        or any(isinstance(count, bool) for count in counts)
    ):
        raise broken("its manifest is not in canonical form")
    return manifest


def _trail(rest: Mapping[object, object]) -> TrailManifest | None:
    match rest.get("trail"):
        case {"events": int(events), "head": str(head), "pages": int(pages)}:
            return TrailManifest(int(events), head, int(pages))
        case _:
            return None


class _Pages:
    """Splits pages into lines, and refuses those that are not filled as written."""

    def __init__(self) -> None:
        self._before = 0, 0

    def lines(self, page: bytes) -> Iterator[bytes]:
        """Return the lines of the next page, without their line breaks."""
        if not page.endswith(b"\n"):
            raise broken("a page of records does not end with a line break")
        count, first = page.count(b"\n"), page.index(b"\n") + 1
        too_large = count > PAGE_RECORDS or (count > 1 and len(page) > PAGE_BYTES)
        if too_large or (self._before[0] and not is_full(*self._before, first)):
            raise broken("its pages are not in canonical form")
        self._before = count, len(page)
        return iter(page[:-1].split(b"\n"))
