"""The style of the figures, light and dark, and their captions.

A figure is shown as SVG that follows the reader's light or dark scheme, with a
PNG (light) for viewers that show no SVG. Both have a background of their own,
so they can be read on any page. Colours are chosen so that readers who see red
and green alike can tell them apart, and modelled times are always hatched or
hollow.
"""

import hashlib
import io
import re

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.collections import PathCollection  # noqa: E402
from matplotlib.container import BarContainer  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

from .show import number  # noqa: E402, F401

# Name: light, dark. Figures are drawn in the light ones; the SVG replaces them.
COLOURS = {
    "back": ("#fffffe", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "faint": ("#5a636d", "#9aa4af"),
    "grid": ("#d8dee5", "#2d343d"),
    "blue": ("#0072b2", "#58a6e8"),
    "orange": ("#d98300", "#f0b040"),
    "green": ("#00825f", "#3cc6a0"),
    "red": ("#c2410d", "#ff8a5c"),
    "purple": ("#a14d86", "#e39cc8"),
    "grey": ("#8a929b", "#7d8690"),
    "pale": ("#a9c9e2", "#2a557c"),
}
# Steps of a ladder, early ones fainter: they read on white and on black as they are.
STEPS = ["#a0a7b0", "#8ea5bb", "#7aa2c5", "#649dcc", "#4b96d1", "#2f8dd3", "#1f80c8", "#1773b8"]
LIGHT = {name: pair[0] for name, pair in COLOURS.items()}
SERIES = [LIGHT[name] for name in ("blue", "orange", "green", "purple", "red", "grey")]
MARKERS = ["o", "s", "^", "D", "v", "P"]
HATCH = "////"
WIDTH = 11.0  # inches; 1056 pixels in a browser

# Lines and texts that help to read a figure, and are no data.
GUIDE = "_guide"

_STYLE = {
    "figure.facecolor": LIGHT["back"],
    "savefig.facecolor": LIGHT["back"],
    "axes.facecolor": LIGHT["back"],
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["text"],
    "axes.titlecolor": LIGHT["text"],
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LIGHT["grid"],
    "grid.linewidth": 0.8,
    "text.color": LIGHT["text"],
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.labelcolor": LIGHT["text"],
    "ytick.labelcolor": LIGHT["text"],
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "hatch.color": LIGHT["back"],
    "hatch.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "warpbook",
}
plt.rcParams.update(_STYLE)


def new(title, rows=1, columns=1, height=4.5, **options):
    """An empty figure; returns it and its axes as a flat list."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height), layout="constrained", squeeze=False, **options
    )
    plt.close(figure)
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.06)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return figure, list(axes.flat)


def panels(title, count, height):
    """An empty figure of `count` panels, three in a row, each `height` inches high."""
    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = new(title, rows, columns, height=1.3 + height * rows)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def finish(figure, label, details):
    """Adds the caption (source, dates, commits, files) and wraps the figure for a notebook."""
    caption = f"{label[0].upper()}{label[1:].rstrip('.')}.\n{details.rstrip('.')}."
    figure.supxlabel(_wrap(caption), x=0.01, ha="left", fontsize=8.5, color=LIGHT["faint"])
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _more_ticks(axis)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what was found once holds for SVG and PNG
    return Figure(figure, caption)


def _more_ticks(axis):
    """Adds ticks between the powers of ten to a logarithmic axis of less than two decades."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and axis.get_transform().base == 10 and high < 100 * low:
        between = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 5, 7)
        axis.set_major_locator(LogLocator(base=10, subs=between))


def _wrap(text, width=165):
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return "\n".join(lines)


def ladder(step, count):
    """Colour of a step of a ladder: from grey, the first, to blue; the last one is red."""
    if step == count - 1:
        return LIGHT["red"]
    return STEPS[round(step * (len(STEPS) - 1) / max(1, count - 2))]


def bar_style(modelled):
    """Style of bars: modelled times are hatched."""
    return {"hatch": HATCH} if modelled else {}


def point_style(colour, modelled):
    """Style of points: modelled times are hollow."""
    return {
        "facecolor": LIGHT["back"] if modelled else colour,
        "edgecolor": colour,
        "linewidth": 1.5,
    }


def dots(axes, places, values, colour, modelled, marker="o", label=None, words=None):
    """One dot for each row with its number beside it, and a faint line to the dot."""
    least = 1e-12  # left of everything on a logarithmic axis, and next to nothing on another
    axes.hlines(places, least, values, color=LIGHT["pale"], lw=1.2, zorder=1)
    style = point_style(colour, modelled)
    axes.scatter(values, places, s=46, marker=marker, zorder=3, label=label, **style)
    for place, value, word in zip(places, values, words or [number(v) for v in values]):
        offset = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
        guide_text(axes, value, place, word, fontsize=8.5, **offset)


def plain_log(axis):
    """A logarithmic axis whose ticks read 0.1, 1, 10, 1000."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")
    axis.set_minor_formatter(lambda value, _: "")


def guide_text(axes, x, y, text, **options):
    """Texts of a figure that are not data."""
    options.setdefault("fontsize", 9)
    return axes.annotate(text, (x, y), **options)


# ---- What a figure holds ----


def _bars(container):
    return [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in container.patches]


def _data(axes):
    """The numbers behind each mark: bars, points, corners of lines; guides are left out."""
    marks = []
    for container in axes.containers:
        if isinstance(container, BarContainer) and container.get_label() != GUIDE:
            marks += _bars(container)
    for collection in axes.collections:
        if isinstance(collection, PathCollection) and collection.get_label() != GUIDE:
            marks += [tuple(p) for p in collection.get_offsets().filled(float("nan"))]
    for line in axes.lines:
        if line.get_label() != GUIDE:
            marks += [tuple(p) for p in line.get_xydata()]
    finite = [m for m in marks if all(abs(float(v)) < float("inf") for v in m)]
    return [tuple(float(f"{float(v):.5g}") for v in m) for m in finite]


def _words(axes):
    texts = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
    for axis in (axes.xaxis, axes.yaxis):
        texts += [label.get_text() for label in axis.get_ticklabels()]
    return texts


class Figure:
    """A finished figure: Jupyter shows its picture; tests read `marks` and `digest`."""

    def __init__(self, figure, caption):
        self.figure = figure
        self.caption = caption
        self.title = figure.get_suptitle()

    @property
    def marks(self):
        """Number of bars, points and line vertices on each axis."""
        return [len(_data(axes)) for axes in self.figure.axes if axes.get_visible()]

    @property
    def digest(self):
        """A hash of the figure's numbers and texts, independent of library versions."""
        parts = [self.title, self.caption]
        for axes in self.figure.axes:
            parts += _words(axes)
            parts += [repr(mark) for mark in _data(axes)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def svg(self):
        """The picture as one <svg> element that follows the reader's scheme."""
        buffer = io.StringIO()
        self.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return adaptive(buffer.getvalue(), self.title)

    def png(self):
        """The picture in light colours, with few of them, which keeps it small.

        An octree keeps a colour that few pixels have; a median cut gives it a neighbour's.
        """
        from PIL import Image

        buffer, small = io.BytesIO(), io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        few = {"colors": 64, "method": Image.Quantize.FASTOCTREE, "dither": Image.Dither.NONE}
        image = Image.open(buffer).convert("RGB").quantize(**few)
        image.save(small, format="png", optimize=True)
        return small.getvalue()

    def _repr_mimebundle_(self, **_):
        about = {"title": self.title, "marks": self.marks, "digest": self.digest}
        data = {
            "image/svg+xml": self.svg(),
            "image/png": self.png(),
            "text/plain": f"{self.title}\n{self.caption}",
        }
        return data, {"warpbook": about}


def _scheme():
    light = "".join(f"--wb-{name}:{pair[0]};" for name, pair in COLOURS.items())
    dark = "".join(f"--wb-{name}:{pair[1]};" for name, pair in COLOURS.items())
    return (
        f"<style>svg.warpbook{{{light}color-scheme:light dark;max-width:100%;height:auto}}"
        f"@media (prefers-color-scheme:dark){{svg.warpbook{{{dark}}}}}</style>"
    )


def _rounded(tag):
    """Coordinates to a hundredth of a pixel; words, which stand between tags, stay as they are."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])


def adaptive(svg, title):
    """Replaces the colours of a matplotlib SVG by variables that adapt to the reader's colour scheme."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    for name, (light, _) in COLOURS.items():
        svg = re.sub(re.escape(light), f"var(--wb-{name})", svg, flags=re.I)
    svg = re.sub(r"<[^>]*>", _rounded, svg)
    label = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    head = f'<svg class="warpbook" role="img" aria-label="{label}" '
    svg = svg.replace("<svg ", head, 1)
    first = svg.index(">") + 1
    return svg[:first] + _scheme() + svg[first:]
