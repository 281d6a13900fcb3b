"""Parts of the data in one line: as people write them, and read back as they were."""

from __future__ import annotations

import pytest
from samples.small import POLICY, compiled

from modicum.core.document import Entries
from modicum.core.reader import Fields, Problems
from modicum.core.yaml_reader import read_document
from modicum.release import EVERYTHING, Part
from modicum.release.part_parser import read_part
from modicum.reports.text import part_text

DIVIDED = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id},"
    " user-day: {id: user_id, time: {column: at, period: day}, within: user}}",
) + (
    "population:\n"
    "  partition_by:\n"
    '    region: {values: [EU, US, "2026", "no"], immutable: [user]}\n'
    "    age: {range: [0, 120], immutable: [user]}\n"
    "  groups: {immutable: [user]}\n"
)


def read(text: str) -> Part:
    """Return the part that a line of a release file names."""
    vocabulary = compiled(DIVIDED).policy.vocabulary
    node = read_document(f"{{{text}}}".encode(), "line")
    assert isinstance(node, Entries)
    found = Problems()
    part = read_part(Fields(node, "the line"), EVERYTHING, vocabulary, found)
    found.raise_any()
    return part


@pytest.mark.parametrize(
    "text",
    [
        "where: {region: EU}",
        "where: {region: [EU, US]}",
        'where: {region: ["2026", "no"]}',
        "where: {age: {from: 18, to: 30}}",
        "where: {age: [3, {from: 18, to: 30}], region: US}",
        "where: [{age: 7, region: US}, {region: EU}]",
        'periods: "2026-05"',
        'periods: ["2026-05", {from: "2026-07-03"}]',
        "groups: 3",
        "groups: [3, {from: 5, to: 9}]",
        'where: {region: EU}, periods: "2026", groups: 1',
    ],
)
def test_a_part_reads_as_it_was_written(text: str) -> None:
    assert part_text(read(text)) == text
    assert read(part_text(read(text))) == read(text)


def test_all_of_the_data_is_named() -> None:
    assert part_text(EVERYTHING) == "all of it"


def test_a_long_part_stays_in_one_line() -> None:
    boxes = ", ".join(f"{{age: {age}}}" for age in range(0, 60, 2))
    part = read(f"where: [{{age: [100, 110], region: EU}}, {boxes}]")
    assert "\n" not in part_text(part)
    assert read(part_text(part)) == part
