"""The style of a statement, on a screen and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --paper: #fff; --line: #c9d1d9;
  --soft: #57606a; --fill: #2f6fab; --over: #b3261e; --near: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #14181d;
  --line: #3d444d; --soft: #9da7b1; --fill: #6cb0f5; --over: #ff8a80;
  --near: #f0b84a; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: 0.9rem; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.3rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.7rem 0.3rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
tbody th { font-weight: 600; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
dt { font-weight: 600; }
dd { margin: 0 0 0.6rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.over { color: var(--over); font-weight: 700; }
.near { color: var(--near); font-weight: 600; }
.box { border-left: 4px solid var(--over); padding: 0.1rem 1rem; }
.rail { fill: var(--line); }
.fill { fill: var(--fill); }
@media print { :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #333; }
  body { max-width: none; margin: 0; font-size: 10pt; }
  tr, dd, .box { break-inside: avoid; } h2 { break-after: avoid; }
  thead { display: table-header-group; }
  svg rect { print-color-adjust: exact; } }
"""
