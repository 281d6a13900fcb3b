"""How a report of risk looks: as a statement, with pictures and a banner."""

from modicum.reports.style import STYLE

RISK_STYLE = (
    STYLE
    + """
.banner { border: 2px solid var(--over); color: var(--over); font-weight: 700;
  padding: 0 1rem; text-align: center; }
.banner p { margin: 0.4rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere;
  border-left: 4px solid var(--line);
  padding: 0.2rem 1rem; margin: 1rem 0; }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 48rem; height: auto; background: #fff; }
.numbers { overflow-x: auto; }
.numbers td, .numbers th { overflow-wrap: break-word; text-align: right;
  font-variant-numeric: tabular-nums; }
.numbers th:first-child { text-align: left; }
caption { break-after: avoid; }
.chosen { font-size: 1.2rem; font-weight: 700; }
@media (prefers-color-scheme: dark) {
  figure img { filter: invert(0.9) hue-rotate(180deg); } }
@media print { .sheet { display: table; width: 100%; }
  .sheet > main { display: table-row-group; }
  .first.banner { display: table-header-group; border: 0; }
  .last.banner { display: table-footer-group; border: 0; }
  figure { break-inside: avoid; } figure img { filter: none; }
  .numbers { overflow-x: visible; } .numbers table { font-size: 8pt; }
  .numbers td, .numbers th { padding-top: 0.1rem; padding-bottom: 0.1rem; } }
"""
)
