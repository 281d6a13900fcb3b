"""Figures in one style, and their files: the same figure gives the same bytes.

Matplotlib is an extra, and it is loaded when something is drawn, not before. Settings
of the machine it runs on do not matter: every figure begins with the library's own.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.core.extras import not_installed
from modicum.system.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colors distinguishable with color blindness (Okabe & Ito 2008), dark ones first.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
#: The style of reference lines.
GRAY = "#666666"

#: Width of a chart in inches.
_WIDTH = 7.6

#: Metadata of each file type; without a date, so that the bytes are reproducible.
_METADATA: Mapping[str, Mapping[str, str | None]] = MappingProxyType(
    {
        ".svg": MappingProxyType({"Date": None, "Creator": "modicum"}),
        ".png": MappingProxyType({"Software": "modicum"}),
    }
)

_STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.labelcolor": "#222222",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "figure.facecolor": "white",
        "font.family": ["DejaVu Sans", "sans-serif"],
        "font.size": 10,
        "grid.color": "#dddddd",
        "legend.frameon": False,
        "lines.linewidth": 2,
        "savefig.dpi": 150,
        "svg.fonttype": "none",  # Text stays text: to be searched, and read aloud.
        "svg.hashsalt": "modicum",
        "text.parse_math": False,  # A dollar in a name is a dollar.
        "text.color": "#222222",
    }
)


@contextmanager
def styled() -> Iterator[None]:
    """Draw, or save, in the one style of all figures."""
    try:
        from matplotlib import style
    except ImportError as error:
        what = "matplotlib, which plots need,"
        raise InputError(not_installed(what, "modicum[plots]")) from error
    with style.context(dict(_STYLE), after_reset=True):
        yield


def panels(*heights: float) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of panels, one below the other; only inside `styled`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    return figure, list(grid[:, 0])


def label(axes: Axes, title: str, across: str, up: str) -> None:
    """Set the title and the axis labels, with units."""
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel(up)


def count_across(axes: Axes) -> None:
    """Number a horizontal axis in integers, such as rounds."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def thousands(axes: Axes) -> None:
    """Write the numbers that go up with commas, such as 600,000."""
    from matplotlib.ticker import StrMethodFormatter

    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def legend(axes: Axes) -> None:
    """Put the legend beside a panel, where it hides nothing."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")


def check_path(path: str | Path) -> None:
    """Refuse a file name without a supported image type."""
    if Path(path).suffix.lower() not in _METADATA:
        raise UsageError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"cannot draw {path}: its name has no known ending",
                help="use a name that ends in .svg or .png",
            )
        )


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG or PNG, by the suffix of the file name."""
    check_path(path)
    write_whole(path, [drawn(figure, Path(path).suffix.lower())])


def drawn(figure: Figure, kind: str) -> bytes:
    """Return the file of a figure: for the same figure the same bytes."""
    contents = io.BytesIO()
    title = str(figure.get_label())
    metadata = {"Title": title} if title else {}
    with styled(), warnings.catch_warnings():
        # Glyphs missing in the font are empty boxes in PNG; the viewer's fonts may have
        # them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(
            contents, format=kind[1:], metadata={**_METADATA[kind], **metadata}
        )
    found = contents.getvalue()
    if kind == ".svg" and title:  # Only a graphic that is one image is read by title.
        return found.replace(b"<svg ", b'<svg role="img" ', 1)
    return found
