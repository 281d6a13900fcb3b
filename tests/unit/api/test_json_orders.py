"""JSON knows only keys in quotes: orders of Renyi costs may stand in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from samples import small

from modicum.api.local.evaluation import price_release
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document


def release(orders: dict[Any, object]) -> dict[str, Any]:
    cost = {"user": {"rdp": orders}}
    one = {"name": "m", "mechanism": "declared", "attributes": ["age"], "cost": cost}
    return {"release": "r", "mechanisms": [one]}


def test_a_release_in_json_costs_what_it_does_in_python() -> None:
    compiled, plain = small.compiled(), release({8: 0.1, 32: 0.4})
    node = read_document(json.dumps(plain).encode(), "r.json")
    assert price_release(node, compiled) == price_release(plain, compiled)


@pytest.mark.parametrize(
    ("orders", "code"),
    [
        ({"eight": 0.1}, Code.NOT_A_NUMBER),
        ({"": 0.1}, Code.NOT_A_NUMBER),
        ({"8": 0.1, 8: 0.1}, Code.DUPLICATE_KEY),
        ({"8": 0.1, "8.0": 0.1}, Code.DUPLICATE_KEY),
        ({"9": 0.1}, Code.OUT_OF_RANGE),
    ],
)
def test_other_texts_are_no_orders(orders: dict[Any, object], code: Code) -> None:
    with pytest.raises(InputError) as refused:
        price_release(release(orders), small.compiled())
    assert refused.value.problems[0].code is code
