"""Write the browser libraries of the console into its folder `static/vendor`.

Run `.venv/bin/python tools/vendor.py` after changing a version below; it needs npm.
`hashes.json` says what was written and from what; a test compares it with the files.
Packages are installed without running their scripts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[1] / "src/modicum/console/static/vendor"

#: All that browsers load, with what it needs: no version is chosen by npm.
PACKAGES: Final = {
    "@codemirror/autocomplete": "6.20.4",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-yaml": "6.1.3",
    "@codemirror/language": "6.13.1",
    "@codemirror/lint": "6.9.8",
    "@codemirror/search": "6.7.2",
    "@codemirror/state": "6.7.6",
    "@codemirror/streamparser": "6.0.0",
    "@codemirror/view": "6.43.15",
    "@lezer/common": "1.5.5",
    "@lezer/highlight": "1.2.5",
    "@lezer/lr": "1.4.12",
    "@lezer/yaml": "1.0.4",
    "@marijn/find-cluster-break": "1.0.4",
    "codemirror": "6.0.2",
    "crelt": "1.0.7",
    "htmx.org": "2.0.11",
    "style-mod": "4.1.5",
    "w3c-keyname": "2.2.8",
}
#: What makes the bundle, and is not in it.
BUNDLER: Final = {"esbuild": "0.28.2"}

# The page forbids `<style>` elements and images in `data:` URLs. CodeMirror makes no
# such element in a shadow root, and asks for no such image under this theme.
ENTRY: Final = """\
import { EditorView } from "@codemirror/view";
export { basicSetup, minimalSetup } from "codemirror";
export { EditorView, keymap } from "@codemirror/view";
export { Compartment, EditorState } from "@codemirror/state";
export {
  defaultKeymap, history, historyKeymap, indentLess, indentMore, indentWithTab,
} from "@codemirror/commands";
export {
  HighlightStyle, defaultHighlightStyle, indentUnit, syntaxHighlighting,
} from "@codemirror/language";
export { tags } from "@lezer/highlight";
export { yaml } from "@codemirror/lang-yaml";
export {
  diagnosticCount, forceLinting, lintGutter, lintKeymap, linter, nextDiagnostic,
  openLintPanel, previousDiagnostic, setDiagnostics,
} from "@codemirror/lint";

const underline = (color) => ({
  backgroundImage: "none",
  textDecoration: `underline wavy ${color}`,
});
const marker = (sign, color) => ({ content: `"${sign}"`, color, fontWeight: "bold" });
export const noImages = EditorView.theme({
  ".cm-lintRange-error": underline("#c5221f"),
  ".cm-lintRange-warning": underline("#9a5b00"),
  ".cm-lintRange-info, .cm-lintRange-hint": underline("#5f6368"),
  ".cm-lint-marker": { content: "normal" },
  ".cm-lint-marker-error, .cm-lint-marker-warning, .cm-lint-marker-info":
    { content: "normal", lineHeight: "1" },
  ".cm-lint-marker-error::before": marker("\\u00d7", "#c5221f"),
  ".cm-lint-marker-warning::before": marker("!", "#9a5b00"),
  ".cm-lint-marker-info::before": marker("i", "#5f6368"),
  ".cm-highlightTab": { backgroundImage: "none" },
});
"""


def main() -> None:
    """Install the packages in a temporary folder, and write the files."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        locked = installed(folder)
        modules = folder / "node_modules"
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.copy(modules / "htmx.org/dist/htmx.min.js", FOLDER / "htmx.min.js")
        bundle(folder, FOLDER / "codemirror.min.js")
        (FOLDER / "LICENSES").write_text(licenses(modules), encoding="utf-8")
    files = {
        name: sha256((FOLDER / name).read_bytes()).hexdigest()
        for name in ("LICENSES", "codemirror.min.js", "htmx.min.js")
    }
    text = json.dumps({"files": files, "packages": locked}, indent=1) + "\n"
    (FOLDER / "hashes.json").write_text(text, encoding="utf-8")


def installed(folder: Path) -> Mapping[str, Any]:
    """Return what npm installed: the version, license and hash of each package."""
    wanted = {"private": True, "dependencies": {**PACKAGES, **BUNDLER}}
    (folder / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    found = {
        path.removeprefix("node_modules/"): one
        for path, one in lock["packages"].items()
        if path and "esbuild" not in path
    }
    if {name: one["version"] for name, one in found.items()} != PACKAGES:
        raise SystemExit(f"pin all of these: {sorted(found)}")
    keys = ("version", "license", "integrity")
    return {name: {key: found[name][key] for key in keys} for name in PACKAGES}


def bundle(folder: Path, target: Path) -> None:
    """Write one module with all of the editor."""
    (folder / "entry.js").write_text(ENTRY, encoding="utf-8")
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022")
    made = (*options, "--legal-comments=none", f"--outfile={target}")
    run(folder, "node_modules/.bin/esbuild", "entry.js", *made)


def licenses(modules: Path) -> str:
    """Return the license of each package."""
    texts = (
        f"{name} {version}\n\n{(modules / name / 'LICENSE').read_text('utf-8').strip()}"
        for name, version in PACKAGES.items()
    )
    line = "\n\n" + "-" * 72 + "\n\n"
    return line.join(texts) + "\n"


def run(folder: Path, *command: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, cwd=folder, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
