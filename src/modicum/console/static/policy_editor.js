// The policy editor: highlighting, and problems as one types, over a text area that
// works without it.

const DELAY = 300; // Milliseconds after the last key.

const form = document.getElementById("editor");
const area = document.getElementById("text");
const status = document.getElementById("lint");
const { EditorView, HighlightStyle, basicSetup, forceLinting, indentUnit, indentWithTab,
  keymap, lintGutter, linter, noImages, syntaxHighlighting, tags, yaml,
} = await import(form.dataset.codemirror);

// Colors are those of the page, in light and dark.
const theme = EditorView.theme({
  "&": { backgroundColor: "var(--paper)", color: "var(--ink)", fontSize: "0.9rem",
    border: "1px solid var(--soft)", maxHeight: "38rem" },
  "&.cm-focused": { outline: "3px solid var(--accent)" },
  ".cm-scroller": { overflow: "auto", fontFamily: "ui-monospace, monospace" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--soft)",
    borderRightColor: "var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--raised)" },
  ["&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground,"
    + " .cm-selectionBackground"]: { backgroundColor: "var(--mark)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)",
    borderColor: "var(--line)" },
  ".cm-tooltip": { maxWidth: "40rem" },
  ".cm-button, .cm-textfield": { backgroundImage: "none", color: "var(--ink)",
    backgroundColor: "var(--paper)", borderColor: "var(--soft)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket":
    { backgroundColor: "var(--mark)" },
}, { dark: matchMedia("(prefers-color-scheme: dark)").matches });
const colors = syntaxHighlighting(HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)],
    color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: "var(--near)" },
]));

// The server counts characters, and the editor half of some.
function place(doc, line, column) {
  const found = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const before = [...found.text].slice(0, Math.max(column - 1, 0)).join("");
  return Math.min(found.from + before.length, found.to);
}

function marker(doc, problem, severity) {
  const line = problem.line ?? 1, column = problem.column ?? 1;
  const parts = [problem.message, problem.label, problem.help];
  return {
    from: place(doc, line, column),
    to: place(doc, line, column + (problem.length ?? 1)),
    severity,
    source: problem.code,
    message: parts.filter((one) => one).join("\n"),
  };
}

function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

let waiting = new AbortController();

async function ask(text) {
  waiting.abort();
  waiting = new AbortController();
  const answer = await fetch(form.dataset.lint, {
    method: "POST",
    body: text,
    headers: { "Accept": "application/json", "Content-Type": "application/yaml",
      "X-CSRF-Token": form.elements.csrf.value },
    signal: waiting.signal,
  });
  return [answer.ok, await answer.json()];
}

// CodeMirror drops an answer about a text that has changed since.
async function lint(view) {
  const doc = view.state.doc;
  try {
    const [isValid, found] = await ask(doc.toString());
    if (view.state.doc !== doc) return [];
    const problems = isValid ? found.warnings : found.problems;
    const word = isValid ? "warning" : "problem";
    status.textContent = isValid && !problems.length
      ? `● No problems: ${count(found.rules, "rule")}.`
      : `${isValid ? "▲" : "■"} ${count(problems.length, word)}.`;
    return problems.map((one) => marker(doc, one, isValid ? "warning" : "error"));
  } catch (error) {
    if (error.name !== "AbortError")
      status.textContent = "The server does not answer. Use Check later.";
    return [];
  }
}

// Styles of a shadow root are no <style> elements, which the page forbids.
const host = document.createElement("div");
host.className = "code";
area.after(host);
const root = host.attachShadow({ mode: "open" });
const view = new EditorView({
  doc: area.value,
  parent: root,
  root,
  extensions: [
    basicSetup, yaml(), indentUnit.of("  "), keymap.of([indentWithTab]), colors, theme,
    noImages, lintGutter(), linter(lint, { delay: DELAY }),
    EditorView.contentAttributes.of({
      "aria-label": "Text of the policy, as YAML. To leave, press Escape and then Tab.",
      tabindex: "0", // People who cannot use a mouse scroll it, too.
    }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) area.value = update.state.doc.toString();
    }),
  ],
});
area.hidden = true;
for (const one of document.querySelectorAll(".keys")) one.hidden = false;
document.getElementById("text-label").addEventListener("click", () => view.focus());
forceLinting(view);

// Links to lines lead into the editor.
form.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (!link) return;
  event.preventDefault();
  const { line, column } = link.dataset;
  const anchor = place(view.state.doc, Number(line), Number(column));
  view.dispatch({ selection: { anchor }, scrollIntoView: true });
  view.focus();
});
