"""The picture in the docs is what the conversions say, and can be read by all."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def tool() -> ModuleType:
    place = ROOT / "tools" / "conversion_plot.py"
    spec = importlib.util.spec_from_file_location("conversion_plot", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_current() -> None:
    shown = (ROOT / "docs" / "images" / "conversions.svg").read_text(encoding="utf-8")
    assert shown == tool().picture(), "run .venv/bin/python tools/conversion_plot.py"


def test_the_picture_has_a_title_and_a_description() -> None:
    root = ElementTree.fromstring(tool().picture())
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title")
    description = root.findtext(f"{SVG}desc") or ""
    for line in tool().LINES:
        assert line.label in description


def test_every_line_is_labeled_in_words_with_its_last_value() -> None:
    labels = re.findall(r">([\w.-]+) \((\d\.\d\d)\)</text>", tool().picture())
    assert dict(labels)["gaussian-exact"] < dict(labels)["real-order"]
    assert {label for label, _ in labels} == {line.label for line in tool().LINES}
