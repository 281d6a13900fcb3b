"""The Hasse diagram of a policy's rules, against all mechanisms there can be."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain, combinations, product
from xml.etree import ElementTree

import pytest
from budget import counted, examples, seed
from samples.drawn import SVG, check_room, root_of, sides
from samples.ledgers import ATTRIBUTES, LABELS, compiled_from, policy_text
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError
from modicum.policy import CompiledPolicy
from modicum.policy.hasse.diagram import (
    COMPARED_MAX,
    NODES_MAX,
    Hasse,
    HasseNode,
    HasseRule,
    hasse,
    neighborhood,
    refuse_crowded,
    rules_of,
    summary,
)
from modicum.policy.hasse.export import to_dot
from modicum.policy.hasse.layout import Box, laid_out
from modicum.policy.hasse.node_selection import centers, chosen_rules, related
from modicum.policy.predicates import Facts, Predicate, Scope, holds
from modicum.policy.pruning.logic import Logic
from modicum.policy.rules import Stage
from modicum.policy.vacuous_rules import VacuousRules
from modicum.reports.charts import hasse_chart


def svg_of(diagram: Hasse) -> str:
    return hasse_chart(diagram).svg


# --- the oracle: a rule is the set of mechanisms it is about --------------------


@cache
def every_mechanism() -> tuple[Facts, ...]:
    """Return one mechanism for each case that random policies can tell apart."""
    names = [(scope, label) for scope in Scope for label in LABELS]
    values = product(*(LABELS[label] for _, label in names))
    read = chain.from_iterable(
        combinations(ATTRIBUTES, size) for size in range(len(ATTRIBUTES) + 1)
    )
    return tuple(
        Facts(
            attributes=frozenset(attributes),
            labels=dict(zip(names, labels, strict=True)),
            texts={
                (Scope.RELEASE, "purpose"): purpose,
                (Scope.MECHANISM, "name"): name,
            },
        )
        for attributes, labels, purpose, name in product(
            read, list(values), ("study", "other"), ("a-1", "b-1")
        )
    )


def matched(predicate: Predicate, known: dict[Predicate, int]) -> int:
    """Return the mechanisms that a predicate holds of, as bits."""
    if predicate not in known:
        known[predicate] = sum(
            1 << n
            for n, facts in enumerate(every_mechanism())
            if holds(predicate, facts)
        )
    return known[predicate]


def brute(
    compiled_policy: CompiledPolicy, stage: Stage, numbers: Iterable[int]
) -> tuple[set[frozenset[int]], set[tuple[frozenset[int], frozenset[int]]]]:
    """Return the nodes, as sets of rules, and the steps, by comparing all with all."""
    rules, _ = rules_of(compiled_policy, stage)
    covers = compiled_policy.policy.vocabulary.covers
    known: dict[Predicate, int] = {}
    about: dict[int, int] = {}
    for number in numbers:
        rule = rules[number]
        about[number] = matched(rule.predicate, known)
        for setting in rule.settings:
            about[number] &= matched(setting, known)

    def below(i: int, j: int) -> bool:
        own, other = rules[i].unit, rules[j].unit
        larger = own == other or other in covers.get(own, ())
        return larger and about[i] & ~about[j] == 0

    nodes = {frozenset(j for j in about if below(i, j) and below(j, i)) for i in about}
    first = {node: min(node) for node in nodes}

    def under(low: frozenset[int], high: frozenset[int]) -> bool:
        return low != high and below(first[low], first[high])

    steps = {
        (low, high)
        for low, high in product(nodes, nodes)
        if under(low, high)
        and not any(under(low, mid) and under(mid, high) for mid in nodes)
    }
    return nodes, steps


def as_sets(
    diagram: Hasse,
) -> tuple[set[frozenset[int]], set[tuple[frozenset[int], frozenset[int]]]]:
    names = [frozenset(rule.number for rule in node.rules) for node in diagram.nodes]
    return set(names), {(names[low], names[high]) for low, high in diagram.edges}


def test_the_diagram_is_the_reduction_of_all_comparisons() -> None:
    rng = random.Random(seed())
    seen = {"nodes of several": 0, "steps between units": 0, "long": 0}
    for _ in range(counted(40)):
        policy = compiled_from(policy_text(rng))
        for stage in Stage:
            rules, _ = rules_of(policy, stage)
            numbers = rng.sample(range(len(rules)), min(len(rules), 30))
            diagram = hasse(policy, numbers, stage=stage)
            nodes, steps = brute(policy, stage, numbers)
            assert as_sets(diagram) == (nodes, steps)
            assert sum(len(node.rules) for node in diagram.nodes) == len(numbers)
            units = [node.unit for node in diagram.nodes]
            seen["nodes of several"] += any(len(n.rules) > 1 for n in diagram.nodes)
            seen["steps between units"] += any(
                units[low] != units[high] for low, high in diagram.edges
            )
            seen["long"] += len(steps) > 15
    assert all(count >= 5 for count in seen.values()), seen


def test_the_neighborhood_is_two_steps_of_the_whole_diagram() -> None:
    rng = random.Random(seed())
    smaller = 0
    for _ in range(counted(25)):
        policy = compiled_from(policy_text(rng))
        every = range(len(policy.rules))
        if len(every) > 40:
            continue
        number = rng.choice(every)
        whole = hasse(policy, every)
        expected, steps = {number}, as_sets(whole)[1]
        start = next(node for node in as_sets(whole)[0] if number in node)
        for up in (True, False):
            reached = {start}
            for _ in range(2):
                reached = {
                    (high if up else low)
                    for low, high in steps
                    if (low if up else high) in reached
                }
                expected.update(*reached)
        expected |= start
        near = neighborhood(hasse(policy, related(policy, [number], every)), [number])
        nodes, near_steps = as_sets(near)
        assert set().union(*nodes) == expected
        assert near_steps == {
            (low, high) for low, high in steps if low <= expected and high <= expected
        }
        smaller += len(near.nodes) < len(whole.nodes)
    assert smaller >= 5


def test_a_thick_way_leads_from_each_redundant_rule_to_its_witness() -> None:
    rng = random.Random(seed())
    ways = 0
    for _ in range(counted(30)):
        policy = compiled_from(policy_text(rng))
        if len(policy.rules) > 60:
            continue
        diagram = hasse(policy, range(len(policy.rules)))
        assert diagram.ways <= set(diagram.edges)
        at = {
            rule.id: place
            for place, node in enumerate(diagram.nodes)
            for rule in node.rules
        }
        useful = set()
        for place, node in enumerate(diagram.nodes):
            for rule in node.rules:
                witness = policy.pruned.witness[rule.number]
                assert rule.witness == (
                    policy.rules[witness].id if witness >= 0 else ""
                )
                if rule.witness:
                    reached = {place}
                    for _ in diagram.nodes:
                        reached |= {u for low, u in diagram.ways if low in reached}
                    assert at[rule.witness] in reached
                    useful |= {e for e in diagram.ways if e[0] in reached}
        assert useful == diagram.ways
        ways += bool(diagram.ways)
    assert ways >= 5


# --- DPolicy's figure 2 ---------------------------------------------------------

BUDGETS = (7, 7, 7, 5, 7, 3, 5)
#: For each rule but the first, those right above it; and the rules that are kept.
SHAPES: Mapping[str, tuple[Mapping[int, tuple[int, ...]], set[int]]] = {
    "a star": (dict.fromkeys(range(2, 8), (1,)), {1, 4, 6, 7}),
    "a chain": ({n: (n - 1,) for n in range(2, 8)}, {1, 4, 6}),
    "a tree": (
        {2: (1,), 3: (1,), 4: (2,), 5: (2,), 6: (3,), 7: (3,)},
        {1, 4, 6, 7},
    ),
    "7 below 4": (
        {2: (1,), 3: (1,), 4: (2,), 5: (2, 3), 6: (3,), 7: (4, 5)},
        {1, 4, 6},
    ),
    "7 below 6": (
        {2: (1,), 3: (1,), 4: (2,), 5: (3,), 6: (5,), 7: (6,)},
        {1, 4, 6},
    ),
    "4 below 6": (
        {2: (1,), 3: (1,), 6: (2,), 4: (6,), 5: (3,), 7: (5,)},
        {1, 6, 7},
    ),
}


def figure_2(upper: Mapping[int, tuple[int, ...]]) -> CompiledPolicy:
    """Return seven rules in the order asked for: each reads what those below read."""
    reads = {n: {n} for n in range(1, 8)}
    for _ in range(7):
        for low, highs in upper.items():
            for high in highs:
                reads[high] |= reads[low]
    policies = [
        {
            "name": f"rule-{n}",
            "when": " || ".join(
                f'"a{one}" in m.attributes' for one in sorted(reads[n])
            ),
            "unit": "user",
            "budget": {"eps": eps, "delta": 1e-7},
        }
        for n, eps in enumerate(BUDGETS, 1)
    ]
    text = json.dumps(
        {
            "modicum": "policy/v1",
            "name": "figure-2",
            "units": {"user": {"id": "user_id"}},
            "schema": {"attributes": {f"a{n}": ["low", {}] for n in range(1, 8)}},
            "policies": policies,
        }
    )
    return compiled(text)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_seven_rules_of_dpolicy(shape: str) -> None:
    upper, kept = SHAPES[shape]
    policy = figure_2(upper)
    diagram = hasse(policy, range(7))
    assert {(low, high) for low, highs in upper.items() for high in highs} == {
        (low + 1, high + 1) for low, high in diagram.edges
    }
    assert {n for n, node in enumerate(diagram.nodes, 1) if not node.redundant} == kept
    assert svg_of(diagram).count('class="soft redundant node"') == 7 - len(kept)
    assert to_dot(diagram).count("dashed") == 7 - len(kept)
    redundant = 7 - len(kept)
    assert summary(diagram) == (
        f"7 rules: {len(kept)} binding, {redundant} redundant; at the top rule-1."
    )


# --- choosing -------------------------------------------------------------------


def test_a_choice_of_rules() -> None:
    policy = compiled()
    ids = [rule.id for rule in policy.rules]
    assert [ids[n] for n in chosen_rules(policy)] == ids
    standard = chosen_rules(policy, settings=["standard"], unit="user")
    assert [ids[n] for n in standard] == [one for one in ids if "@standard" in one]
    kept = chosen_rules(policy, binding=True)
    assert kept == list(policy.pruned.kept)
    assert 0 < len(kept) < len(ids)
    alone = chosen_rules(policy, stage=Stage.RELEASE)
    assert alone == [0]
    for n, identifier in enumerate(ids):
        assert centers(policy, identifier) == (Stage.HISTORY, [n])
    assert centers(policy, "cap") == (Stage.RELEASE, [0])
    both = [n for n, one in enumerate(ids) if one.startswith("attr:age ")]
    assert centers(policy, "attr:age") == (Stage.HISTORY, both)
    assert centers(policy, "attr:age", ["standard"]) == (Stage.HISTORY, both[:1])


def test_a_scope_is_drawn_in_all_its_contexts() -> None:
    policy = compiled()
    _, numbers = centers(policy, "cat:health/weak")
    whole = hasse(policy, related(policy, numbers, chosen_rules(policy)))
    near = neighborhood(whole, numbers)
    drawn = {rule.number for node in near.nodes for rule in node.rules}
    each = [
        {
            rule.number
            for node in neighborhood(whole, [number]).nodes
            for rule in node.rules
        }
        for number in numbers
    ]
    assert drawn == set().union(*each)
    assert near.title == "Rules of small around cat:health/weak"


@pytest.mark.parametrize(
    ("settings", "unit", "code", "says"),
    [
        (["standardd"], None, Code.UNKNOWN_CHOICE, 'did you mean "standard"?'),
        (["standard", "black-box"], None, Code.UNKNOWN_CHOICE, "no rule"),
        ([], "users", Code.UNKNOWN_UNIT, 'did you mean "user"?'),
    ],
)
def test_a_choice_that_leaves_nothing(
    settings: list[str], unit: str | None, code: Code, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        chosen_rules(compiled(), settings=settings, unit=unit)
    assert caught.value.code is code
    assert says in caught.value.render()


def test_a_rule_that_is_not_there() -> None:
    with pytest.raises(InputError) as caught:
        centers(compiled(), "attr:diagnoses @standard")
    assert caught.value.code is Code.UNKNOWN_CHOICE
    assert "nearest: attr:diagnosis" in caught.value.render()


#: Nothing is a member of `place`; `models` and the setting `standard` exclude another.
EMPTY = POLICY.replace(
    "categories: {health: high}", "categories: {health: high, place: high}"
).replace(
    "  - {name: attr,",
    "  - {name: models, when: 'm.ml == \"black-box\"', unit: user, budget: 1}\n"
    "  - {name: attr,",
)
ABOUT_NOTHING = {
    "models @standard",
    *(
        f"cat:place/{level} @{setting}"
        for level in ("member", "strong", "weak")
        for setting in ("standard", "black-box")
    ),
}


def test_rules_about_nothing_are_found() -> None:
    policy = compiled(EMPTY)
    nothing = VacuousRules(policy.rules, Logic(policy.policy.vocabulary))
    found = {rule.id for n, rule in enumerate(policy.rules) if n in nothing}
    assert found == ABOUT_NOTHING


def test_a_rule_is_about_nothing_if_no_mechanism_falls_under_it() -> None:
    rng = random.Random(seed())
    empty = 0
    for _ in range(examples(25)):
        policy = compiled_from(policy_text(rng))
        nothing = VacuousRules(policy.rules, Logic(policy.policy.vocabulary))
        known: dict[Predicate, int] = {}
        for number, rule in enumerate(policy.rules):
            about = matched(rule.predicate, known)
            for setting in rule.settings:
                about &= matched(setting, known)
            assert (number in nothing) == (about == 0), rule.id
            empty += about == 0
    assert empty


def test_rules_about_nothing_are_not_drawn() -> None:
    policy = compiled(EMPTY)
    drawn = {policy.rules[n].id for n in chosen_rules(policy)}
    assert drawn == {rule.id for rule in policy.rules} - ABOUT_NOTHING
    with pytest.raises(InputError, match="`cat:place/weak` matches nothing"):
        centers(policy, "cat:place/weak")
    _, numbers = centers(policy, "models")
    assert [policy.rules[n].id for n in numbers] == ["models @black-box"]


def test_a_witness_outside_the_picture_is_named_in_it() -> None:
    policy = compiled()
    numbers = chosen_rules(policy, settings=["standard"], binding=False)
    diagram = hasse(policy, [n for n in numbers if policy.pruned.witness[n] >= 0])
    assert diagram.nodes
    witness = diagram.nodes[0].rules[0].witness
    for picture in (svg_of(diagram), to_dot(diagram)):
        assert f"by {witness}" in picture
    whole = hasse(policy, chosen_rules(policy))
    assert ">by " not in svg_of(whole)


def crowd(attributes: int) -> CompiledPolicy:
    names = ", ".join(f"a{n}: [low, {{}}]" for n in range(attributes))
    text = re.sub(r"attributes:\n(    .*\n)+", f"attributes: {{{names}}}\n", POLICY)
    text = re.sub(r"  - {name: cat(.*\n)+?ext", "ext", text)
    return compiled(text)


@pytest.mark.parametrize("draw", [refuse_crowded, hasse_chart])
def test_what_nobody_could_read_is_not_drawn(draw: Callable[[Hasse], object]) -> None:
    policy = crowd(NODES_MAX // 2)
    diagram = hasse(policy, range(len(policy.rules)))
    assert len(diagram.nodes) == NODES_MAX + 2
    with pytest.raises(InputError) as caught:
        draw(diagram)
    assert caught.value.code is Code.TOO_LARGE
    assert "--rule" in caught.value.render()
    refuse_crowded(hasse(policy, range(NODES_MAX)))
    number = policy.rules.number("attr:a7 @standard")
    assert number is not None
    near = neighborhood(
        hasse(policy, related(policy, [number], chosen_rules(policy))), [number]
    )
    assert [node.rules[0].id for node in near.nodes] == [
        "global @standard",
        "global @black-box",
        "attr:a7 @standard",
        "attr:a7 @black-box",
    ]
    large = crowd(COMPARED_MAX // 2)
    with pytest.raises(InputError, match="too many to compare"):
        hasse(large, range(len(large.rules)))


# --- drawing --------------------------------------------------------------------


def apart(one: Box, other: Box) -> bool:
    return (
        one.left + one.width < other.left
        or other.left + other.width < one.left
        or one.top + one.height < other.top
        or other.top + other.height < one.top
    )


def any_diagram(rng: random.Random) -> Hasse:
    """Return a diagram with many long steps, as few policies give."""
    size, share = rng.randint(1, 16), rng.choice([0.1, 0.3, 0.6])
    rules = (HasseRule(n, f"rule-{n}", (), "{eps: 1}", "") for n in range(size))
    nodes = tuple(HasseNode((rule,), "user") for rule in rules)
    pairs = combinations(rng.sample(range(size), size), 2)
    edges = tuple(sorted(pair for pair in pairs if rng.random() < share))
    return Hasse("any", nodes, edges, frozenset())


def test_nothing_in_the_picture_lies_on_anything_else() -> None:
    rng = random.Random(seed())
    bends = 0
    for _ in range(counted(60)):
        diagram = any_diagram(rng)
        sizes = [(rng.randint(40, 260), rng.randint(40, 90)) for _ in diagram.nodes]
        layout = laid_out(diagram, sizes)
        for one, other in combinations(layout.boxes, 2):
            assert apart(one, other)
        for box, size in zip(layout.boxes, sizes, strict=True):
            assert (box.width, box.height) == size
            assert box.left >= 0
            assert box.top >= 0
            assert box.left + box.width <= layout.width
            assert box.top + box.height <= layout.height
        for (low, high), points in layout.lines.items():
            lower, upper = layout.boxes[low], layout.boxes[high]
            assert upper.top + upper.height < lower.top
            assert points[0] == (lower.middle, lower.top)
            assert points[-1] == (upper.middle, upper.top + upper.height)
            assert list(points) == sorted(points, key=lambda point: -point[1])
            assert all(0 <= x <= layout.width for x, _ in points)
            for start, end in zip(points[2:-2:2], points[3:-2:2], strict=True):
                bends += 1
                upright = Box(start[0], end[1], 0, start[1] - end[1])
                assert start[0] == end[0]
                assert all(apart(upright, box) for box in layout.boxes)
            # Between two layers, where lines bend, there is no box.
            for start, end in zip(points[1:-1:2], points[2::2], strict=True):
                free = Box(0, end[1] + 1, layout.width, start[1] - end[1] - 2)
                assert all(apart(free, box) for box in layout.boxes)
    assert bends >= 1000


NASTY = Hasse(
    title='a <b> & "c"',
    nodes=(
        HasseNode((HasseRule(0, 'x"<&>\\', ("s'",), "{eps: 1}", ""),), "u<"),
        HasseNode(
            tuple(
                HasseRule(n, f"long-{'é' * 40}-{n}", (), "{eps: 2}", "x\"<&>\\ @s'")
                for n in range(1, 6)
            ),
            "ユーザー",
        ),
    ),
    edges=((1, 0),),
    ways=frozenset({(1, 0)}),
)


def test_the_picture_is_safe_and_says_the_same_in_words() -> None:
    svg = svg_of(NASTY)
    root = ElementTree.fromstring(svg)
    space = {"s": "http://www.w3.org/2000/svg"}
    check_room(svg)
    assert root.findtext("s:title", namespaces=space) == 'a <b> & "c"'
    description = root.findtext("s:desc", namespaces=space)
    assert (
        description
        == summary(NASTY)
        == ("6 rules: 1 binding, 5 redundant; at the top x\"<&>\\ @s'.")
    )
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    assert [root.find(f"*[@id='{one}']") is not None for one in named] == [True, True]
    titles = [one.text for one in root.iterfind(".//s:g/s:title", space)]
    assert titles[0] == "x\"<&>\\ @s': eps: 1 per u<, binding"
    assert (titles[1] or "").count("redundant: x\"<&>\\ @s'") == 5
    texts = ["".join(one.itertext()) for one in root.iterfind(".//s:text", space)]
    assert "and 2 more with the same mechanisms" in texts
    assert "per ユーザー" in texts
    assert all(len(text) <= 33 for text in texts if text.startswith("long"))
    for forbidden in ("<script", "href", "url(", "@import", "onload", "http:"):
        assert forbidden not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_rule_is_a_link_and_its_path_is_thick() -> None:
    link = "/rules?id={}&x=<'\">".format
    chart = hasse_chart(NASTY, name="a-1", link=link, selected=["x\"<&>\\ @s'"])
    root = root_of(chart.svg)
    # What is one image has no links in it.
    assert root.get("role") == "group"
    links = root.findall(f".//{SVG}a")
    ids = [node.rules[0].id for node in NASTY.nodes]
    assert [one.get("href") for one in links] == [link(one) for one in ids]
    boxes = [one.find(f".//{SVG}rect") for one in links]
    kinds = [one.get("class") for one in boxes if one is not None]
    assert kinds == ["fill binding node selected", "soft redundant node"]
    (way,) = root.findall(f".//{SVG}path")
    assert (way.get("class"), way.get("stroke-width")) == ("ink way", "3")
    assert [one.get("id") for one in root[:2]] == ["a-1-title", "a-1-desc"]


def test_the_table_of_a_picture_has_each_rule_and_what_is_above() -> None:
    headings, rows = hasse_chart(NASTY).table
    assert headings == ("Rule", "Unit", "Budget", "State", "Right below")
    top = "x\"<&>\\ @s'"
    assert rows[0] == (top, "u<", "{eps: 1}", "binding", "")
    assert len(rows) == 6
    for number, row in enumerate(rows[1:], 1):
        name = f"long-{'é' * 40}-{number}"
        assert row == (name, "ユーザー", "{eps: 2}", f"redundant by {top}", top)


def test_lines_start_and_end_at_their_boxes() -> None:
    policy = compiled()
    diagram = hasse(policy, range(len(policy.rules)))
    root = root_of(svg_of(diagram))
    ends: dict[int, tuple[float, float, float]] = {}
    for box in root.iter(f"{SVG}rect"):
        if "node" in (box.get("class") or ""):
            left, top, right, bottom = sides(box)
            ends[len(ends)] = ((left + right) / 2, top, bottom)
    steps = sorted(diagram.edges, key=lambda one: (one in diagram.ways, one))
    lines = root.findall(f".//{SVG}path")
    for (lower, upper), line in zip(steps, lines, strict=True):
        numbers = re.findall(r"(-?[\d.]+) (-?[\d.]+)", line.get("d", ""))
        start, end = (tuple(map(float, numbers[at])) for at in (0, -1))
        assert start == pytest.approx((ends[lower][0], ends[lower][1]), abs=1)
        assert end == pytest.approx((ends[upper][0], ends[upper][2]), abs=1)
        assert end[1] < start[1]  # What counts more is above.


def test_dot_quotes_what_needs_it() -> None:
    dot = to_dot(NASTY)
    assert dot.startswith('digraph "a <b> & \\"c\\"" {')
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', dot)
    assert '"' not in bare.replace('""', "")
    assert "n1 -> n0 [penwidth=3" in dot
    labels = re.findall(r'n\d \[label="((?:[^"\\]|\\.)*)"', dot)
    assert labels[0] == "x\\\"<&>\\\\\\n@s'\\neps: 1\\nper u<"


def test_the_same_policy_gives_the_same_picture() -> None:
    first, second = compiled(), compiled()
    pictures = [hasse(one, range(len(one.rules))) for one in (first, second)]
    assert svg_of(pictures[0]) == svg_of(pictures[1])
    assert to_dot(pictures[0]) == to_dot(pictures[1])
    backwards = hasse(first, reversed(range(len(first.rules))))
    assert svg_of(backwards) == svg_of(pictures[0])


def test_a_picture_of_nothing() -> None:
    empty = Hasse("nothing", (), (), frozenset())
    ElementTree.fromstring(svg_of(empty))
    assert "digraph" in to_dot(empty)
