"""The style of statements and of charts, on a screen and on paper."""

#: The colors of charts in the dark; in the light, they have their own.
CHART_STYLE = """
.chart { max-width: 100%; height: auto; }
.chart.wide { max-width: none; }
figure { margin: 1rem 0; overflow-x: auto; }
@media screen and (prefers-color-scheme: dark) {
  svg .ink, svg .series-7 { color: #e6edf3; } svg .soft { color: #9da7b1; }
  svg .grid { color: #30363d; } svg .rail { color: #3d444d; }
  svg .paper { color: #14181d; } svg .hollow { fill: #14181d; }
  svg .fill { color: #6cb0f5; } svg .near { color: #f0b84a; }
  svg .over { color: #ff8a80; } svg .bar { stroke: #e6edf3; }
  svg .series-1 { color: #4aa8e8; } svg .series-2 { color: #f07f3c; }
  svg .series-3 { color: #2fc79b; } svg .series-4 { color: #dd9dc2; }
  svg .series-5 { color: #8fd0f5; } svg .series-6 { color: #f0b84a; } }
"""

STYLE = (
    CHART_STYLE
    + """
:root { color-scheme: light dark; --ink: #1c2128; --paper: #fff; --line: #c9d1d9;
  --soft: #57606a; --over: #b3261e; --near: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #14181d;
  --line: #3d444d; --soft: #9da7b1; --over: #ff8a80; --near: #f0b84a; } }
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
@media print { :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #333; }
  body { max-width: none; margin: 0; font-size: 10pt; }
  tr, dd, .box { break-inside: avoid; } h2 { break-after: avoid; }
  thead { display: table-header-group; }
  svg rect { print-color-adjust: exact; } }
"""
)
