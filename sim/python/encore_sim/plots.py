"""Plots of reports that stay readable with forty series: small multiples with labels at the lines.

    from encore_sim import plots
    figure = plots.plot(report, x="cache_bytes", y="object_hit_ratio")
    plots.save(figure, "hits.png", "hits.svg")

A series is an eviction policy with an admission policy and its parameter. Each panel shows some series in
colour, with their names at the right end, and all the others in grey behind them. Needs matplotlib.
"""

import math

import numpy as np

__all__ = ["plot", "plot_curves", "save"]

# Okabe and Ito (2008): told apart by those who see no red or green as well.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#c8c8c8"
NAMES = {"cache_bytes": "cache size", "object_hit_ratio": "hits", "byte_hit_ratio": "hits by bytes",
         "object_miss_ratio": "misses", "byte_miss_ratio": "misses by bytes", "from_request": "request",
         "footprint_share": "cache size / footprint"}
OF_A_SERIES = ("eviction", "admission", "admission_parameter", "capacity", "fpr_goal")


def plot(report, x="cache_bytes", y="object_hit_ratio", table="rows", by=None, title=None, each=4):
    """Draws column `y` of a report's table over column `x`, and returns matplotlib's figure.

    `by`: the columns whose values name a series; by default those of policy and filter that differ.
    `each`: the most series in a panel.
    """
    rows = [row for row in report[table] if row.get(x) is not None and row.get(y) is not None]
    if not rows:
        raise ValueError(f"no row of {table!r} has {x!r} and {y!r}, accepted: "
                         + ", ".join(sorted({name for row in report[table] for name in row})))
    if by is None:
        by = [name for name in OF_A_SERIES if len({row.get(name) for row in rows} - {None}) > 1] or ["eviction"]
    curves = {}
    for row in rows:
        name = " ".join(str(row[one]) for one in by if row.get(one) is not None)
        curves.setdefault(name, []).append((row[x], row[y]))
    curves = {name: np.array(sorted(points), dtype=float).T for name, points in curves.items()}
    return plot_curves(curves, NAMES.get(x, x), NAMES.get(y, y), title=title, each=each,
                       log_x=x in ("cache_bytes", "footprint_share"), bytes_x=x.endswith("bytes"),
                       percent_y=y.endswith("ratio"))


def plot_curves(curves, x_label="", y_label="", title=None, each=4, log_x=False, log_y=False, bytes_x=False,
                percent_y=False):
    """Draws {name: (x values, y values)} as small multiples, best last points first."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

    if not 1 <= each <= len(COLOURS):
        raise ValueError(f"{each} series in a panel, accepted: 1 to {len(COLOURS)}")
    if not curves:
        raise ValueError("no curve, accepted: one or more")
    curves = {name: (np.asarray(x, dtype=float), np.asarray(y, dtype=float)) for name, (x, y) in curves.items()}
    names = sorted(curves, key=lambda name: -curves[name][1][-1])
    panels = [names[i:i + each] for i in range(0, len(names), each)]
    across = min(len(panels), 1 if len(panels) == 1 else 2 if len(panels) <= 4 else 3)
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(7.2 if across == 1 else 4.4 * across, 1 + 2.7 * down), layout="constrained")
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, shown in zip(axes, panels):
        for name in names:
            if name not in shown:
                axis.plot(*curves[name], color=GREY, linewidth=0.8, zorder=1)
        for colour, name in zip(COLOURS, shown):
            marker = "o" if len(curves[name][0]) < 12 else None
            axis.plot(*curves[name], color=colour, linewidth=1.8, marker=marker, markersize=3, zorder=2, label=name)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.grid(color="#eeeeee", zorder=0)
        if log_x:
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
        if log_y:
            axis.set_yscale("log")
        if bytes_x and log_x:
            ends = [value for x, _ in curves.values() for value in (x[0], x[-1])]
            doublings = math.log2(max(ends) / min(ends))
            axis.xaxis.set_major_locator(LogLocator(base=2.0 ** max(1, math.ceil(doublings / 4))))
            axis.xaxis.set_minor_locator(NullLocator())
        if bytes_x:
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        if percent_y:
            axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axis in axes[len(panels):]:
        axis.set_visible(False)
    for axis in axes[max(0, len(panels) - across):len(panels)]:
        axis.tick_params(labelbottom=True)
    figure.supxlabel(x_label)
    figure.supylabel(y_label)
    if title:
        figure.suptitle(title)
    figure.draw_without_rendering()
    for axis, shown in zip(axes, panels):
        _label_ends(axis, shown, curves)
    return figure


def _label_ends(axis, shown, curves):
    """Writes each name next to the end of its line; names that would overlap are moved apart."""
    last = axis.get_xlim()[1]
    low, high = axis.transAxes.transform((0, 0))[1], axis.transAxes.transform((0, 1))[1]
    room = 9.5 * axis.figure.dpi / 72  # pixels, for 8 points
    heights = [axis.transData.transform((curves[name][0][-1], curves[name][1][-1]))[1] for name in shown]
    # From the top downwards (`shown` is sorted), then up again where the bottom was passed.
    for i, height in enumerate(heights):
        heights[i] = min(height, high if i == 0 else heights[i - 1] - room)
    for i in range(len(heights) - 1, -1, -1):
        heights[i] = max(heights[i], low if i == len(heights) - 1 else heights[i + 1] + room)
    for colour, name, height in zip(COLOURS, shown, heights):
        axis.annotate(name, (last, axis.transData.inverted().transform((0, height))[1]), xytext=(4, 0),
                      textcoords="offset points", color=colour, fontsize=8, va="center", annotation_clip=False)


def bytes_text(value):
    """"1.5GiB", as encore-sim writes it."""
    for unit in ("", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.3g}{unit or 'B'}"
        value /= 1024


def save(figure, *paths):
    """Writes the figure to files whose names end in .png or .svg. The same figure gives the same bytes."""
    import matplotlib

    for path in map(str, paths):
        if not path.endswith((".png", ".svg")):
            raise ValueError(f"{path}, accepted: a name that ends in .png or .svg")
        with matplotlib.rc_context({"svg.hashsalt": "encore", "svg.fonttype": "none"}):
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.endswith(".svg") else {"Software": None})
