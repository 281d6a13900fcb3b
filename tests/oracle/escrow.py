"""What the escrow permits, worked out again from the whole log for each new entry.

It knows docs/spec/escrow.md, and nothing of how modicum does it: entries are JSON, and
whatever it wants to know it looks for in all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

Plain: TypeAlias = dict[str, Any]

COMPUTING = ("query", "task")


def permits(log: list[Plain], new: Plain) -> bool:
    """Return whether an entry about the escrow may come after a log."""
    body, by = new["body"], new["actor"]
    match new["kind"]:
        case "data-registered":
            return _registers(log, body, by)
        case "data-shredded":
            return _shreds(log, body, by)
        case "contract-proposed":
            return _proposes(log, body["contract"], new)
        case "contract-withdrawn":
            found = contract_of(log, body["contract"])
            return (
                found is not None
                and _person(by)
                in {
                    _person(found["analyst"]),
                    _person(_proposer(log, body["contract"])),
                    *map(_person, found["recipients"]),
                }
                and not _bodies(log, "contract-withdrawn", body["contract"])
            )
        case "approval-given":
            return _speaks(log, body, by, new["at"])
        case "disclosure-recorded":
            return _discloses(log, body, by)
        case "flow-begun":
            return _begins(log, body, new)
        case "flow-withheld" | "flow-failed":
            return _ends(log, body, by)
        case "flow-released":
            return body["to"] == by and _lets_go(log, body, new["at"])
        case other:
            raise AssertionError(other)


def digest_of(contract: Plain) -> str:
    text = json.dumps(
        contract, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def contract_of(log: list[Plain], digest: str) -> Plain | None:
    for one in _of(log, "contract-proposed"):
        if digest_of(one["body"]["contract"]) == digest:
            return dict(one["body"]["contract"])
    return None


# --- data sets ---


def _registers(log: list[Plain], body: Plain, by: str) -> bool:
    before = [
        one["body"]
        for one in _of(log, "data-registered")
        if one["body"]["id"] == body["id"]
    ]
    people = {_person(name) for name in body["owners"]}
    if len(people) < len(body["owners"]) or not 1 <= body["quorum"] <= len(people):
        return False
    for_good = ("owners", "quorum", "contracts_max", "bits_max")
    if any(first[key] != body[key] for first in before for key in for_good):
        return False
    return by in body["owners"] and body["version"] > max(
        (one["version"] for one in before), default=0
    )


def _shreds(log: list[Plain], body: Plain, by: str) -> bool:
    version = [body["id"], body["version"]]
    return (
        version in _versions(log)
        and version not in _shredded(log)
        and by in _data(log, body["id"])["owners"]
    )


def _versions(log: list[Plain]) -> list[Any]:
    return [
        [one["body"]["id"], one["body"]["version"]]
        for one in _of(log, "data-registered")
    ]


def _shredded(log: list[Plain]) -> list[Any]:
    return [
        [one["body"]["id"], one["body"]["version"]] for one in _of(log, "data-shredded")
    ]


def _speaks_of_data(log: list[Plain], body: Plain, by: str) -> bool:
    for one in _of(log, "data-registered"):
        kept = one["body"]
        version = [kept["id"], kept["version"]]
        if kept["id"] == body["id"] and _data_content(kept) == body["content"]:
            return (
                by in kept["owners"]
                and body["roles"] == ["owner"]
                and version not in _shredded(log)
                and not _is_used(log, version)
            )
    return False


def _data_content(kept: Plain) -> str:
    content = {key: kept[key] for key in ("id", "version", "sealed", "media", "table")}
    return digest_of({"kind": "modicum-data-version/v1", **content})


def _is_used(log: list[Plain], version: list[Any]) -> bool:
    """Return whether enough owners agreed to a version that replaces another."""
    all_of = [
        one for one in _of(log, "data-registered") if one["body"]["id"] == version[0]
    ]
    one = next(one for one in all_of if one["body"]["version"] == version[1])
    if one is all_of[0] or one["v"] < 5:
        return True
    kept, agree = one["body"], set()
    for owner, keys in kept["owners"].items():
        vote = _last_word(log, "data", _data_content(kept), owner, keys)
        if vote is False:
            return False
        if vote or (owner == one["actor"] and not keys):
            agree.add(owner)
    return len(agree) >= int(kept["quorum"])


def _data(log: list[Plain], identifier: str) -> Plain:
    return next(
        dict(one["body"])
        for one in _of(log, "data-registered")
        if one["body"]["id"] == identifier
    )


# --- proposing ---


def _proposes(log: list[Plain], contract: Plain, new: Plain) -> bool:
    by, at = new["actor"], new["at"]
    known = [one["body"]["contract"] for one in _of(log, "contract-proposed")]
    versions = list(contract["data"].values())
    if contract["id"] in [one["id"] for one in known] or not versions:
        return False
    if any(
        one not in _versions(log) or one in _shredded(log) or not _is_used(log, one)
        for one in versions
    ) or not (contract["expires_at"] > at and contract["uses"] >= 1):
        return False
    sets = {identifier for identifier, _ in versions}
    owners = {name for one in sets for name in _data(log, one)["owners"]}
    return (
        by in {contract["analyst"], *owners}
        and _is_formed(contract)
        and _follows(log, contract)
        and f"contract/{digest_of(contract)}" not in _disclosed(log)
        and _could_be_given(log, contract, sets, _asking(contract, new))
        and all(_within_limits(log, contract, by, one, at) for one in sets)
    )


def _is_formed(contract: Plain) -> bool:
    terms, flow = contract["terms"], contract["flow"]
    if flow not in COMPUTING:
        return 1 <= len(contract["recipients"]) <= 100
    charges = terms["charges"]
    once = contract["uses"] == 1 and len({one[0] for one in charges}) == len(charges)
    if contract["recipients"] or (charges and not once):
        return False
    if flow == "query":
        return bool(charges)
    blocks = terms["blocks"]
    return (
        terms["seconds"] > 0
        and terms["memory_mib"] > 0
        and bool(blocks) == bool(charges)
        and (not blocks or terms["results"] == ["private"])
    )


def _follows(log: list[Plain], contract: Plain) -> bool:
    flow, terms = contract["flow"], contract["terms"]
    if flow == "query":
        return not contract["parent"]
    parent = contract_of(log, contract["parent"])
    if parent is None or any(parent[k] != contract[k] for k in ("analyst", "data")):
        return False
    results = _results(log, contract["parent"])
    needed = {
        "task": "query",
        "output": "query",
        "signal": "task",
        "raw-signal": "task",
    }
    if not results or parent["flow"] != needed[flow]:
        return False
    if flow == "task":
        return all(name in results for name in terms["results"])
    name = "exact" if flow == "raw-signal" else "private"
    return bool(results.get(name) == terms["result"])


def _asking(contract: Plain, proposal: Plain) -> set[str]:
    """Return who asks for a flow, or is given it, and so cannot agree to it."""
    proposers = [proposal["actor"]] if proposal["v"] >= 5 else []
    return _learning(contract) | set(map(_person, proposers))


def _could_be_given(
    log: list[Plain], contract: Plain, sets: set[str], out: set[str]
) -> bool:
    able: set[str] = set()
    for one in sets:
        data = _data(log, one)
        people = {_person(name) for name in data["owners"]} - out
        if len(people) < data["quorum"]:
            return False
        able |= people
    return len(able) >= _people_asked(contract)


def _within_limits(
    log: list[Plain], contract: Plain, by: str, data: str, at: str
) -> bool:
    here = [
        one["body"]["contract"]
        for one in _of(log, "contract-proposed")
        if data in {v[0] for v in one["body"]["contract"]["data"].values()}
    ]
    mine = [
        one
        for one in here
        if _person(_proposer(log, digest_of(one))) == _person(by)
        and _is_open(log, one, at)
    ]
    limits = _data(log, data)
    if len(mine) + 1 > limits["contracts_max"]:
        return False
    if contract["flow"] != "raw-signal":
        return True
    for person in _learning(contract):
        result = sum(
            _bits(one)
            for one in here
            if person in _learning(one) and _may_tell(log, one, at)
        )
        if result + _bits(contract) > limits["bits_max"]:
            return False
    return True


def _learning(contract: Plain) -> set[str]:
    return {_person(one) for one in (contract["analyst"], *contract["recipients"])}


def _bits(contract: Plain) -> int:
    if contract["flow"] != "raw-signal":
        return 0
    bins, bits = contract["terms"]["bins"], 0
    while bins and 2**bits < bins + 1:  # One of the bins, or no score.
        bits += 1
    return bits or 64


def _may_tell(log: list[Plain], contract: Plain, at: str) -> bool:
    digest = digest_of(contract)
    if _bodies(log, "flow-released", digest):
        return True
    return not _is_withdrawn(log, digest) and at < contract["expires_at"]


def _is_open(log: list[Plain], contract: Plain, at: str) -> bool:
    digest = digest_of(contract)
    left = _uses_left(log, digest, contract) > 0
    ended = {
        one["run"]
        for kind in ("flow-withheld", "flow-failed")
        for one in _bodies(log, kind, digest)
    }
    runs = {one["run"] for one in _bodies(log, "flow-begun", digest)}
    return (
        not _is_withdrawn(log, digest)
        and at < contract["expires_at"]
        and not _results(log, digest)
        and (left or bool(runs - ended))
    )


# --- agreeing ---


def _speaks(log: list[Plain], body: Plain, by: str, at: str) -> bool:
    if body["subject"] == "data":
        return _speaks_of_data(log, body, by)
    contract = contract_of(log, body["content"])
    if contract is None or contract["id"] != body["id"] or body["roles"] != ["owner"]:
        return False
    owners = {
        name
        for identifier, _ in contract["data"].values()
        for name in _data(log, identifier)["owners"]
    }
    if by not in owners:
        return False
    if not body["approves"]:
        return True
    return not _is_withdrawn(log, body["content"]) and at < contract["expires_at"]


def has_consent(log: list[Plain], digest: str) -> bool:
    """Return whether all agree whose agreement a contract takes."""
    contract = contract_of(log, digest)
    assert contract is not None
    proposal = next(
        one
        for one in _of(log, "contract-proposed")
        if digest_of(one["body"]["contract"]) == digest
    )
    out = _asking(contract, proposal)
    everybody: set[str] = set()
    for identifier in {one for one, _ in contract["data"].values()}:
        data = _data(log, identifier)
        agree = set()
        for owner, keys in data["owners"].items():
            vote = _last_word(log, "contract", digest, owner, keys)
            if vote is False:
                return False
            if vote and _person(owner) not in out:
                agree.add(_person(owner))
        if len(agree) < data["quorum"]:
            return False
        everybody |= agree
    return len(everybody) >= _people_asked(contract)


def _last_word(
    log: list[Plain], subject: str, digest: str, owner: str, keys: list[str]
) -> bool | None:
    for one in reversed(_of(log, "approval-given")):
        body = one["body"]
        about = body["subject"] == subject and body["content"] == digest
        if about and one["actor"] == owner:
            if not body["approves"]:
                return False
            if not keys or body["key"] in keys:
                return True
    return None


def _people_asked(contract: Plain) -> int:
    exact = contract["flow"] == "raw-signal" and contract["terms"]["bins"] == 0
    return 2 if exact else 1


# --- flowing ---


def _may_be_used(log: list[Plain], digest: str, at: str) -> bool:
    contract = contract_of(log, digest)
    return (
        contract is not None
        and not _is_withdrawn(log, digest)
        and at < contract["expires_at"]
        and not any(one in _shredded(log) for one in contract["data"].values())
        and _uses_left(log, digest, contract) > 0
        and has_consent(log, digest)
    )


def _begins(log: list[Plain], body: Plain, new: Plain) -> bool:
    digest = body["contract"]
    contract = contract_of(log, digest)
    if contract is None or contract["flow"] not in COMPUTING:
        return False
    return (
        _may_be_used(log, digest, new["at"])
        and not _results(log, digest)
        and body["run"] == len(_bodies(log, "flow-begun", digest)) + 1
        and all(
            release in _started_for_it(log, new) and _content(log, release) == content
            for release, content, _ in contract["terms"]["charges"]
        )
    )


def _started_for_it(log: list[Plain], new: Plain) -> list[str]:
    """Return the releases that the entries directly before started, by the same."""
    found = []
    for one in reversed(log):
        same = (one["actor"], one["at"]) == (new["actor"], new["at"])
        if one["kind"] != "release-started" or not same:
            break
        found.append(one["body"]["release"])
    return found


def _content(log: list[Plain], release: str) -> str:
    return next(
        (
            str(one["body"]["release"]["content"])
            for one in _of(log, "release-reserved")
            if one["body"]["release"]["id"] == release
        ),
        "",
    )


def _ends(log: list[Plain], body: Plain, by: str) -> bool:
    digest = body["contract"]
    contract = contract_of(log, digest)
    started = [
        one["body"]["run"]
        for one in _of(log, "flow-begun")
        if one["body"]["contract"] == digest and one["actor"] == by
    ]
    ended = [
        one["run"]
        for kind in ("flow-withheld", "flow-failed")
        for one in _bodies(log, kind, digest)
    ]
    if contract is None or body["run"] not in started or body["run"] in ended:
        return False
    if "results" not in body:
        return True
    return (
        not _results(log, digest)
        and sorted(body["results"]) == contract["terms"]["results"]
    )


def _discloses(log: list[Plain], body: Plain, by: str) -> bool:
    if body["id"] in _disclosed(log):
        return False
    kind, _, digest = body["id"].partition("/")
    contract = contract_of(log, digest) if kind == "contract" else None
    if contract is None or contract["flow"] != "raw-signal":
        return True
    bins = contract["terms"]["bins"]
    form = f"one of {bins} bins" if bins else "as it is"
    text = (
        f"the score of a program on exact answers, told {form}"
        f" (at most {_bits(contract)} bits), to {', '.join(contract['recipients'])}"
    )
    return by in contract["recipients"] and body["what"] == text


def _lets_go(log: list[Plain], body: Plain, at: str) -> bool:
    digest = body["contract"]
    contract = contract_of(log, digest)
    if contract is None or contract["flow"] in COMPUTING:
        return False
    if contract["flow"] == "raw-signal" and f"contract/{digest}" not in _disclosed(log):
        return False
    return body["to"] in contract["recipients"] and _may_be_used(log, digest, at)


def _disclosed(log: list[Plain]) -> list[str]:
    return [one["body"]["id"] for one in _of(log, "disclosure-recorded")]


def _uses_left(log: list[Plain], digest: str, contract: Plain) -> int:
    used = len(_bodies(log, "flow-begun", digest)) + len(
        _bodies(log, "flow-released", digest)
    )
    return int(contract["uses"]) - used


def _results(log: list[Plain], digest: str) -> Plain:
    found = _bodies(log, "flow-withheld", digest)
    return dict(found[0]["results"]) if found else {}


def _is_withdrawn(log: list[Plain], digest: str) -> bool:
    return bool(_bodies(log, "contract-withdrawn", digest))


def _proposer(log: list[Plain], digest: str) -> str:
    return next(
        str(one["actor"])
        for one in _of(log, "contract-proposed")
        if digest_of(one["body"]["contract"]) == digest
    )


# --- looking ---


def _of(log: list[Plain], kind: str) -> list[Plain]:
    return [one for one in log if one["kind"] == kind]


def _bodies(log: list[Plain], kind: str, digest: str) -> list[Plain]:
    return list(_about(log, kind, digest))


def _about(log: list[Plain], kind: str, digest: str) -> Iterator[Plain]:
    for one in _of(log, kind):
        if one["body"]["contract"] == digest:
            yield one["body"]


def _person(name: str) -> str:
    return name.strip().casefold()
