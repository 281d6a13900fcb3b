"""Draw docs/images/architecture.svg from the import contracts of pyproject.toml.

Run `.venv/bin/python tools/architecture.py` after changing a layer; with `--check`
nothing is written, and the exit code says whether the picture is current.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
_WIDTH, _ROW, _GAP, _MARGIN = 960, 46, 8, 12
_STYLE = (
    "rect{fill:#eef3f8;stroke:#4a6785}"
    "text{font-family:sans-serif;fill:#1d2b3a}"
    ".name{font-size:14px;font-weight:bold}.about{font-size:11px}"
    "@media (prefers-color-scheme:dark){rect{fill:#1d2b3a;stroke:#8fb0d0}"
    "text{fill:#e6eef6}}"
)


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    found = next(one for one in contracts if one["type"] == "layers")
    return [[name.strip() for name in one.split("|")] for one in found["layers"]]


def about(package: str) -> str:
    """Return what a package says of itself: the first line of its docstring."""
    place = ROOT / "src" / Path(*package.split("."))
    text = (place / "__init__.py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].rstrip(".")


def picture() -> str:
    """Return the picture as SVG."""
    rows = layers()
    height = 2 * _MARGIN + len(rows) * (_ROW + _GAP) - _GAP
    shapes = []
    for number, packages in enumerate(rows):
        top = _MARGIN + number * (_ROW + _GAP)
        each = (_WIDTH - 2 * _MARGIN - _GAP * (len(packages) - 1)) / len(packages)
        most = int(each / 5.7)  # Characters of the small text that fit.
        for place, package in enumerate(packages):
            left = _MARGIN + place * (each + _GAP)
            text = about(package)
            shown = text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
            name = package.removeprefix("modicum.")
            shapes.append(
                f"<g><title>{escape(name)}: {escape(text)}</title>"
                f'<rect x="{left:.0f}" y="{top}" width="{each:.0f}" height="{_ROW}"'
                ' rx="4"/>'
                f'<text class="name" x="{left + 10:.0f}" y="{top + 19}">'
                f"{escape(name)}</text>"
                f'<text class="about" x="{left + 10:.0f}" y="{top + 36}">'
                f"{escape(shown)}</text></g>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        ' role="img"><title>The packages of modicum, in layers: each imports only'
        " from the layers below it</title>"
        f"<style>{_STYLE}</style>\n" + "\n".join(shapes) + "\n</svg>\n"
    )


def main() -> None:
    """Write the picture, or check it."""
    wanted = picture()
    if "--check" in sys.argv[1:]:
        is_current = PICTURE.exists() and PICTURE.read_text("utf-8") == wanted
        print(f"{PICTURE.name} is {'current' if is_current else 'out of date'}")
        sys.exit(not is_current)
    PICTURE.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
