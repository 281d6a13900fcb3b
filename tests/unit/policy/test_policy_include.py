"""A policy in several files: what joins, in which order, and what is refused."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import modicum as mo
from modicum.cli.main import app
from modicum.core.canonical import digest
from modicum.core.document import Node, to_plain
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.ops.files.documents import lay_out_policy, load_policy
from modicum.policy import parse_policy
from modicum.policy.compiler import compile_text
from modicum.policy.document.canonical_form import formatted
from modicum.policy.document.include import (
    DEPTH_MAX,
    FILES_MAX,
    has_include,
    merged,
    refuse_include,
)

ROOT = """\
# the whole policy
modicum: policy/v1
name: split
include: [parts/words.yaml, rules.yaml]
units: {patient: {id: patient_id}}
policies:
  - {name: last, when: "true", unit: patient, budget: {rho: 4}}
"""
WORDS = """\
modicum: policy/v1
name: words
include: categories.yaml
labels: {ml: {values: [none, black-box], default: none}}
schema: {attributes: {age: [low, {health: weak}]}}
"""
CATEGORIES = """\
schema: {categories: {health: high}, attributes: {diagnosis: [high, {health: member}]}}
units: {day: {id: day_id}}
"""
RULES = """\
policies:
  - {name: first, when: "true", unit: patient, budget: {rho: 1}}
  - {name: second, unit: day, for_each: attribute,
     budget: {low: {rho: 3}, high: {rho: 2}}}
"""
FILES = {
    "policy.yaml": ROOT,
    "parts/words.yaml": WORDS,
    "parts/categories.yaml": CATEGORIES,
    "rules.yaml": RULES,
}
WHOLE = """\
modicum: policy/v1
name: split

units:
  day: {id: day_id}
  patient: {id: patient_id}

labels:
  ml: {values: [none, black-box], default: none}

schema:
  categories: {health: high}
  attributes:
    diagnosis: [high, {health: member}]
    age: [low, {health: weak}]

policies:
  - {name: first, when: "true", unit: patient, budget: {rho: 1}}

  - name: second
    for_each: attribute
    unit: day
    budget: {low: {rho: 3}, high: {rho: 2}}

  - {name: last, when: "true", unit: patient, budget: {rho: 4}}
"""


def tree(text: str, file: str) -> Node:
    return read_document(text.encode(), file)


def join(files: Mapping[str, str]) -> Node:
    """Return the one tree of files in memory, from `policy.yaml` on."""
    root = tree(files["policy.yaml"], "policy.yaml")
    return merged(root, "policy.yaml", lambda path: tree(files[path], path))


def refused(files: Mapping[str, str]) -> InputError:
    with pytest.raises(InputError) as caught:
        join(files)
    return caught.value


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "policy.yaml"


# --- what joins ----------------------------------------------------------------


def test_what_is_included_comes_first_in_the_order_of_the_list() -> None:
    assert formatted(join(FILES)) == WHOLE


def test_a_policy_without_includes_is_itself() -> None:
    root = tree(WHOLE, "policy.yaml")
    assert join({"policy.yaml": WHOLE}) == root
    assert not has_include(root)


def test_an_empty_include_changes_nothing() -> None:
    files = {"policy.yaml": WHOLE.replace("name: split", "name: split\ninclude: []")}
    assert to_plain(join(files)) == to_plain(tree(WHOLE, "policy.yaml"))


@pytest.mark.parametrize(
    ("section", "own", "part", "together"),
    [
        ("extensions", "[{name: b}]", "[{name: a}]", ["a", "b"]),
        ("per_release", "[{name: b}]", "[{name: a}]", ["a", "b"]),
        ("guards", "[{name: b}]", "[{name: a}]", ["a", "b"]),
        ("approvals", "[{need: 2}]", "[{need: 1}]", ["1", "2"]),
        ("disclosed_invariants", "[b]", "[a, c]", ["a", "c", "b"]),
        ("units", "{b: 2}", "{a: 1}", ["a", "b"]),
        ("labels", "{b: 2}", "{a: 1}", ["a", "b"]),
        ("schema", "{categories: {b: 2}}", "{categories: {a: 1}}", ["a", "b"]),
        ("schema", "{attributes: {b: 2}}", "{attributes: {a: 1}}", ["a", "b"]),
        ("population", "{time_detail: {b: 2}}", "{time_detail: {a: 1}}", ["a", "b"]),
        ("population", "{partition_by: {b: 2}}", "{partition_by: {a: 1}}", ["a", "b"]),
    ],
)
def test_every_section_joins(
    section: str, own: str, part: str, together: list[str]
) -> None:
    joined = formatted(
        join(
            {
                "policy.yaml": f"include: a.yaml\n{section}: {own}\n",
                "a.yaml": f"{section}: {part}\n",
            }
        )
    )
    places = [joined.index(f"{part_of}") for part_of in together]
    found = [joined.rindex(part_of) for part_of in together]
    assert len(places) == len(together)
    assert found == sorted(found), joined


def test_schema_and_population_may_be_spread() -> None:
    files = {
        "policy.yaml": "include: a.yaml\nschema: {attributes: {x: low}}\n",
        "a.yaml": "schema: {categories: {c: low}}\npopulation: {time_detail: {d: 2}}\n",
    }
    assert formatted(join(files)) == (
        "schema:\n  categories: {c: low}\n  attributes:\n    x: low\n\n"
        "population: {time_detail: {d: 2}}\n"
    )


def test_marks_point_to_the_files_in_which_things_stand() -> None:
    broken = {**FILES, "rules.yaml": RULES.replace("unit: day", "unit: dya")}
    with pytest.raises(InputError) as caught:
        parse_policy(join(broken), "")
    (problem,) = caught.value.problems
    assert str(problem.mark).startswith("rules.yaml:3:")


# --- what is refused -----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "where", "says"),
    [
        ({"rules.yaml": "include: policy.yaml"}, Code.INCLUDE, "rules.yaml:1:10",
         "`policy.yaml` includes itself"),
        ({"rules.yaml": "include: rules.yaml"}, Code.INCLUDE, "rules.yaml:1:10",
         "`rules.yaml` includes itself"),
        ({"rules.yaml": "include: ./parts/../parts/words.yaml"}, Code.INCLUDE,
         "rules.yaml:1:10", "`parts/words.yaml` is included twice"),
        ({"rules.yaml": "include: ../other.yaml"}, Code.INCLUDE, "rules.yaml:1:10",
         "outside the folder"),
        ({"parts/words.yaml": "include: ../../x.yaml"}, Code.INCLUDE,
         "parts/words.yaml:1:10", "outside the folder"),
        ({"rules.yaml": "include: /etc/passwd"}, Code.INCLUDE, "rules.yaml:1:10",
         "is not a path from the including file"),
        ({"rules.yaml": "include: 'parts\\words.yaml'"}, Code.INCLUDE,
         "rules.yaml:1:10", "is not a path from the including file"),
        ({"rules.yaml": "include: 'https://a.example/x.yaml'"}, Code.INCLUDE,
         "rules.yaml:1:10", "is not a path from the including file"),
        ({"rules.yaml": "include: parts/"}, Code.INCLUDE, "rules.yaml:1:10",
         "is not a file"),
        ({"rules.yaml": "include: ''"}, Code.INCLUDE, "rules.yaml:1:10",
         "is not a file"),
        ({"rules.yaml": "include: 7"}, Code.WRONG_TYPE, "rules.yaml:1:10",
         "must be text"),
        ({"rules.yaml": "include: {a: b}"}, Code.WRONG_TYPE, "rules.yaml:1:10",
         "must be text"),
        ({"rules.yaml": "include: [[a]]"}, Code.WRONG_TYPE, "rules.yaml:1:11",
         "must be text"),
        ({"rules.yaml": "[]"}, Code.WRONG_TYPE, "rules.yaml:1:1",
         "must be a mapping"),
        ({"rules.yaml": "polices: []"}, Code.UNKNOWN_KEY, "rules.yaml:1:1",
         "unknown key `polices`"),
        ({"rules.yaml": "schema: {attribute: {}}"}, Code.UNKNOWN_KEY,
         "rules.yaml:1:10", "unknown key `attribute` in `schema`"),
        ({"rules.yaml": "modicum: policy/v2"}, Code.UNKNOWN_VERSION,
         "rules.yaml:1:10", "is another format"),
        ({"rules.yaml": "name: no name"}, Code.BAD_NAME, "rules.yaml:1:7",
         "not a valid name"),
        ({"rules.yaml": "units: {patient: {id: other}}"}, Code.DUPLICATE_NAME,
         "policy.yaml:5:9", "`patient` of `units` is given in two files"),
        ({"rules.yaml": "labels: {ml: {}}"}, Code.DUPLICATE_NAME,
         "rules.yaml:1:10", "`ml` of `labels` is given in two files"),
        ({"rules.yaml": "schema: {categories: {health: low}}"}, Code.DUPLICATE_NAME,
         "rules.yaml:1:23", "`health` of `categories` is given in two files"),
        ({"rules.yaml": "schema: {attributes: {age: low}}"}, Code.DUPLICATE_NAME,
         "rules.yaml:1:23", "`age` of `attributes` is given in two files"),
        ({"rules.yaml": "policies: {}"}, Code.WRONG_TYPE, "rules.yaml:1:11",
         "must be a list"),
        ({"rules.yaml": "units: []"}, Code.WRONG_TYPE, "rules.yaml:1:8",
         "must be a mapping"),
        ({"rules.yaml": "dp: {}", "parts/categories.yaml": "dp: {}"},
         Code.DUPLICATE_KEY, "rules.yaml:1:1", "`dp` is given in two files"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused_at_its_place(
    changes: dict[str, str], code: Code, where: str, says: str
) -> None:
    error = refused({**FILES, **changes})
    assert [problem.code for problem in error.problems] == [code]
    assert str(error.problems[0].mark) == where
    assert says in error.problems[0].message


def test_a_second_name_tells_where_the_first_one_stands() -> None:
    error = refused({**FILES, "rules.yaml": "labels: {ml: {}}"})
    assert error.problems[0].notes == ("first at parts/words.yaml:4",)


def test_a_circle_is_shown() -> None:
    error = refused({**FILES, "parts/categories.yaml": "include: words.yaml"})
    assert error.problems[0].notes == (
        "parts/words.yaml -> parts/categories.yaml -> parts/words.yaml",
    )


def test_several_mistakes_are_reported_at_once() -> None:
    error = refused(
        {
            **FILES,
            "parts/words.yaml": "include: [/a, ../../b]\n",
            "rules.yaml": "modicum: policy/v9\n",
        }
    )
    assert [str(problem.mark) for problem in error.problems] == [
        "parts/words.yaml:1:11",
        "parts/words.yaml:1:15",
        "rules.yaml:1:10",
    ]


def chain(length: int) -> dict[str, str]:
    files = {f"f{n}.yaml": f"include: f{n + 1}.yaml\n" for n in range(length)}
    files["policy.yaml"] = "include: f0.yaml\n"
    files[f"f{length}.yaml"] = "labels: {deep: 1}\n"
    return files


def test_depth_is_limited() -> None:
    assert formatted(join(chain(DEPTH_MAX - 1))) == "labels:\n  deep: 1\n"
    error = refused(chain(DEPTH_MAX))
    assert error.code is Code.INCLUDE
    assert f"deeper than {DEPTH_MAX}" in str(error)


def many(number: int) -> dict[str, str]:
    files = {f"f{n}.yaml": f"labels: {{l{n}: 1}}\n" for n in range(number)}
    return {"policy.yaml": f"include: [{', '.join(files)}]\n", **files}


def test_the_number_of_files_is_limited() -> None:
    assert formatted(join(many(FILES_MAX - 1))).count(": 1") == FILES_MAX - 1
    assert "more than 100 files" in str(refused(many(FILES_MAX)))


def test_a_text_by_itself_may_not_include() -> None:
    node = tree(ROOT, "policy.yaml")
    with pytest.raises(InputError) as caught:
        refuse_include(node)
    assert caught.value.code is Code.INCLUDE
    refuse_include(tree(WHOLE, "policy.yaml"))
    with pytest.raises(InputError):
        compile_text(ROOT.encode(), "policy.yaml")


# --- files ---------------------------------------------------------------------


def test_a_ledger_holds_one_text_that_says_everything(tmp_path: Path) -> None:
    compiled = load_policy(write(tmp_path, FILES))
    assert compiled.policy.text == WHOLE
    again = compile_text(compiled.policy.text.encode(), "from the ledger")
    assert again.policy.digest == compiled.policy.digest
    assert [rule.id for rule in again.rules] == [rule.id for rule in compiled.rules]
    ws = mo.open(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml", actor="me")
    release = {
        "release": "r",
        "mechanisms": [
            {
                "mechanism": "declared",
                "attributes": ["age"],
                "cost": {"patient": {"rho": 1}, "day": {"rho": 1}},
            }
        ],
    }
    assert ws.submit(release).allowed
    (tmp_path / "parts" / "words.yaml").unlink()
    without = mo.open(tmp_path / "ledger.db", actor="me")
    assert not without.check({**release, "release": "r2"}).allowed
    assert without.verify().decisions == 1


def test_places_are_relative_to_the_policy(tmp_path: Path) -> None:
    files = {**FILES, "parts/words.yaml": WORDS.replace("default: none", "default: no")}
    path = write(tmp_path, files)
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert str(caught.value.problems[0].mark).startswith(
        f"{tmp_path}/parts/words.yaml:4:"
    )


def test_a_missing_file_is_reported_where_it_is_included(tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    (tmp_path / "rules.yaml").unlink()
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert caught.value.code is Code.FILE_UNREADABLE
    assert str(caught.value.problems[0].mark) == f"{path}:4:29"


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    path = write(inside, FILES)
    outside = tmp_path / "rules.yaml"
    outside.write_text(RULES)
    (inside / "rules.yaml").unlink()
    (inside / "rules.yaml").symlink_to(outside)
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert caught.value.code is Code.INCLUDE
    assert "outside the folder" in str(caught.value)
    (inside / "rules.yaml").unlink()
    (inside / "rules.yaml").symlink_to("kept.yaml")
    (inside / "kept.yaml").write_text(RULES)
    assert load_policy(path).policy.text == WHOLE


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    (tmp_path / "rules.yaml").unlink()
    (tmp_path / "rules.yaml").symlink_to("rules.yaml")
    with pytest.raises(InputError) as caught:
        load_policy(path)
    assert caught.value.code is Code.FILE_UNREADABLE


# --- commands ------------------------------------------------------------------


def run(*args: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["policy", *map(str, args)])
    return result.exit_code, result.stdout


def test_fmt_prints_the_text_whose_hash_is_the_digest(tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    assert run("fmt", path) == (0, WHOLE)
    code, printed = run("fmt", path, "--json")
    shown = mo.load_policy(path).policy.digest
    assert code == 0
    assert f'"digest": "{shown}"' in printed
    assert digest(WHOLE.encode()) == shown


def test_fmt_rewrites_one_file_and_keeps_its_comments_and_mode(tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    path.chmod(0o640)
    assert run("fmt", path, "--check") == (
        4,
        f"{path}: not formatted; fix it with  modicum policy fmt --write {path}\n",
    )
    assert path.read_text() == ROOT
    assert run("fmt", path, "--write") == (0, f"{path}: formatted\n")
    assert path.read_text() == (
        "# the whole policy\nmodicum: policy/v1\n"
        "include: [parts/words.yaml, rules.yaml]\nname: split\n\n"
        "units:\n  patient: {id: patient_id}\n\npolicies:\n"
        '  - {name: last, when: "true", unit: patient, budget: {rho: 4}}\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run("fmt", path, "--check") == (0, f"{path}: ok\n")
    assert run("fmt", path, "--write") == (0, f"{path}: already formatted\n")
    assert run("fmt", path, "--write", "--json")[1].split() == [
        "{", '"changed":', "false", "}",
    ]  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "parts",
        "policy.yaml",
        "rules.yaml",
    ]
    assert load_policy(path).policy.text == WHOLE


def test_fmt_lays_out_a_part_and_checks_its_sections(tmp_path: Path) -> None:
    path = write(tmp_path, {"policy.yaml": RULES}).rename(tmp_path / "part.yaml")
    assert lay_out_policy(path, write=True)
    assert "for_each: attribute\n    unit: day\n" in path.read_text()
    path.write_text("polices: []\n")
    assert run("fmt", path, "--write")[0] == 4
    assert path.read_text() == "polices: []\n"


def test_fmt_never_rewrites_a_file_with_mistakes(tmp_path: Path) -> None:
    broken = ROOT.replace("rho: 4", "rho: -4")
    path = write(tmp_path, {**FILES, "policy.yaml": broken})
    for option in ("--write", "--check", "--json"):
        assert run("fmt", path, option)[0] == 4
    assert path.read_text() == broken


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    link = tmp_path / "link.yaml"
    link.symlink_to("policy.yaml")
    assert lay_out_policy(link, write=True)
    assert link.is_symlink()
    assert "units:\n  patient" in path.read_text()


def test_write_and_check_exclude_each_other(tmp_path: Path) -> None:
    assert run("fmt", write(tmp_path, FILES), "--write", "--check")[0] == 2
