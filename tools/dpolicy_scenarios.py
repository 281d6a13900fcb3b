"""Write the three scenarios of DPolicy's evaluation as policies: examples/dpolicy.

Their budgets are those of the paper for a total of 20 at delta 1e-7. Which attributes
belong to which categories of S2 is drawn by `modicum.workloads.dpolicy`, which
requests of that scenario are made from, too. Run without arguments; a test says whether
the files are current.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from modicum.policy.document.canonical_form import reformatted
from modicum.workloads.dpolicy import CATEGORIES, all_memberships, risk_of

FOLDER = Path(__file__).parents[1] / "examples" / "dpolicy"

#: Measured points (standard, black-box) of the relaxation, from the weakest on.
RELAXATION = (
    *(("0.1", "0.1"), ("0.5", "0.5"), ("0.75", "0.75"), ("1", "1"), ("1.6", "2")),
    *(("1.7", "3"), ("1.8", "4"), ("1.83", "5"), ("1.9", "7"), ("2", "10")),
    *(("2.25", "15"), ("2.5", "20"), ("2.75", "25"), ("3", "30")),
)

HEAD = """\
# {about}
# Made by tools/dpolicy_scenarios.py; change it there.
modicum: policy/v1
name: {name}

dp: {{neighbors: add-remove, bare_budget: {{type: approx-dp, delta: 1e-7}}}}
"""

S1 = """
units:
  user: {{id: user_id}}

labels:
  ml: {{values: [none, black-box], default: none}}

schema:
  attributes:
    a0: low

policies:
  - {{name: total, when: "true", unit: user, budget: 2.5}}
  - {{name: attr, for_each: attribute, unit: user, budget: {{low: 2.5}}}}

extensions:
  - name: ml
    settings:
      standard: {{when: 'm.ml == "none"', budget: same, within: black-box}}
      black-box:
        when: "true"
        budget:
          map:
            {points}
          between: linear
          below: proportional
"""

S2 = """
units:
  user: {{id: user_id}}

schema:
  categories:
{categories}
  attributes:
{attributes}

policies:
  - {{name: total, when: "true", unit: user, budget: 20}}

  - name: attr
    for_each: attribute
    unit: user
    budget: {{low: 20, medium: 9, high: 3}}

  - name: cat
    for_each: category
    unit: user
    budget: {{low: 12, medium: 10, high: 5}}
    levels:
      member: same
      # 1.5 times the budget
      strong: {{map: {{5: 7.5, 10: 15, 12: 18}}}}
      # twice the budget, and never more than the total
      weak: {{map: {{5: 10, 10: 20, 12: 20}}}}
"""

S3 = """
units:
  # what is lost by any change of a user's rows is never less for one month of them
  user: {id: user_id, neighbors: any-change}
  user-month: {id: user_id, time: {column: event_time, period: month}, within: user}

schema:
  attributes:
    a0: [low, {}, static]
    a1: [medium, {}]

policies:
  - {name: total-user, when: "true", unit: user, budget: 20}
  - {name: total-month, when: "true", unit: user-month, budget: 20}
  - {name: attr-user, for_each: attribute, unit: user, budget: {low: 20, medium: 20}}

  - name: attr-month
    for_each: attribute
    unit: user-month
    budget: {low: 20, medium: 3}
"""


def scenarios() -> dict[str, str]:
    """Return the text of every policy, by the name of its file."""
    texts = {"s1.yaml": context(), "s2.yaml": scope(), "s3.yaml": time_units()}
    return {name: reformatted(text.encode(), name) for name, text in texts.items()}


def context() -> str:
    """Return S1: models that only answer queries have a budget of their own."""
    head = HEAD.format(
        about="DPolicy, S1: 2.5 for what is published, 20 with black-box models.",
        name="dpolicy-s1",
    )
    points = "\n            ".join(f"{known}: {most}" for known, most in RELAXATION)
    return head + S1.format(points=points)


def scope() -> str:
    """Return S2: budgets for 150 attributes and ten categories."""
    head = HEAD.format(
        about="DPolicy, S2: 150 attributes and 10 categories within a total of 20.",
        name="dpolicy-s2",
    )
    categories = [f"    c{n}: {risk}" for n, risk in enumerate(CATEGORIES)]
    attributes = [
        f"    a{n}: [{risk_of(n)}, {{{_listed(joined)}}}]"
        for n, joined in enumerate(all_memberships())
    ]
    return head + S2.format(
        categories="\n".join(categories), attributes="\n".join(attributes)
    )


def time_units() -> str:
    """Return S3: a budget for each month of a user, for one attribute of two."""
    head = HEAD.format(
        about="DPolicy, S3: 20 for a user, and for a1 at most 3 for each month.",
        name="dpolicy-s3",
    )
    return head + S3


def _listed(joined: Mapping[int, str]) -> str:
    return ", ".join(f"c{category}: {level}" for category, level in joined.items())


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in scenarios().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
