"""Take pictures of every page of the web console, light and dark, in build/console.

    .venv/bin/python tools/console_pictures.py [--docs]

The pages are those of the example organization at a fixed time. `--docs` also writes
the pictures of the documentation anew. It needs Chromium and the extra `test`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from samples.browser import launched, make_site, missing, served_site  # noqa: E402

from modicum.console.pages import load_pages  # noqa: E402
from modicum.console.registry import PAGES  # noqa: E402

OUT = ROOT / "build" / "console"
IMAGES = ROOT / "docs" / "images"
THEMES = ("light", "dark")
#: Who is shown pages; amir sees his own requests, and a steward the data.
WHO = "olga"
#: The parts of paths that have parameters, by their page; empty for no picture.
PARTS = {
    "/releases/{release:path}": "r-0007",
    "/requests/{release:path}": "visits-by-clinic",
    "/rules/{rule:path}": "attr:salary%20@standard",
    "/policy/{digest}": "active",
    "/ledger/{seq}": "53",
}
#: The pictures of the documentation.
IN_DOCS = {
    "overview": "console-overview",
    "requests-visits-by-clinic": "console-request",
    "rules-attr-salary-standard": "console-rule",
}


def pages() -> dict[str, str]:
    """Return the paths of pages, by the names of their pictures."""
    load_pages()
    found = {}
    for path in PAGES:
        shown = re.sub(r"{[^}]*}", PARTS.get(path, "{}"), path)
        if "{" not in shown:
            name = re.sub(r"[^a-z0-9]+", "-", shown.replace("%20", "-").lower())
            found[name.strip("-") or "overview"] = shown
    return found


def main() -> None:
    """Take the pictures."""
    if lacking := missing():
        sys.exit(lacking)
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, launched() as chromium:
        place = Path(folder)
        made = make_site(place / "made")
        with (
            chromium.used() as browser,
            served_site(made, place / "acme", browser) as site,
        ):
            for theme in THEMES:
                size = {"width": 1280, "height": 800}
                with site.as_(WHO, color_scheme=theme, viewport=size) as visit:
                    for name, path in pages().items():
                        visit.page.goto(path)
                        file = OUT / f"{name}-{theme}.png"
                        visit.page.screenshot(path=file, full_page=True)
                        print(file.relative_to(ROOT))
                        if "--docs" in sys.argv[1:] and name in IN_DOCS:
                            image = IMAGES / f"{IN_DOCS[name]}-{theme}.png"
                            visit.page.screenshot(path=image)


if __name__ == "__main__":
    main()
