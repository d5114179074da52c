"""Draws hits against bytes written, a point a system and a panel a workload: CSV, and PNG by gnuplot."""

import csv
import io
import shutil
import subprocess

FIELDS = ("workload", "system", "hits_percent", "byte_hits_percent", "written_bytes",
          "held_mean_bytes", "held_most_bytes")
GNUPLOT_SECONDS = 60
# A colour and a mark a family of systems, the first word of their names.
STYLES = {"Encore": ("#c0392b", 7), "nginx": ("#1e8449", 5), "Traffic": ("#1f618d", 9),
          "Squid": ("#9a7d0a", 11), "Varnish": ("#6c3483", 13)}
OTHER_STYLE = ("#555555", 6)
PANEL = (520, 560)  # pixels


def points(report):
    """A dictionary of FIELDS for each row of a report that has figures."""
    return [dict(zip(FIELDS, (workload["name"], row["cache"], 100 * row["hit_ratio"],
                              100 * row["byte_hit_ratio"], row["disk"]["cache"],
                              row["disk"]["held_mean"], row["disk"]["held_most"])))
            for workload in report["workloads"] for row in workload["rows"] if row.get("disk")]


def csv_text(report):
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for point in points(report):
        writer.writerow({**point, **{name: f"{point[name]:.3f}" for name in FIELDS[2:4]}})
    return text.getvalue()


def quoted(text):
    """A string of gnuplot: between single quotes it knows one escape, a quote doubled."""
    return "'" + text.replace("'", "''").replace("\n", " ") + "'"


def label_side(point, others):
    """Returns the place of a point's label, so that it crosses few others: above or below, by the
    point that is nearest in height."""
    near = [other for other in others if other is not point
            and abs(other["hits_percent"] - point["hits_percent"]) < 1.5
            and 0.4 < other["written_bytes"] / point["written_bytes"] < 2.5]
    above = any(other["hits_percent"] >= point["hits_percent"] for other in near)
    return -1 if above else 1


def panel_script(name, panel):
    written = [point["written_bytes"] / (1 << 30) for point in panel]
    hits = [point["hits_percent"] for point in panel]
    room = max(1.0, 0.12 * (max(hits) - min(hits)))
    lines = [f"set title {quoted(name)} noenhanced",
             f"set xrange [{min(written) / 1.6:.4g}:{max(written) * 2.2:.4g}]",
             f"set yrange [{min(hits) - room:.4g}:{max(hits) + room:.4g}]", "unset label"]
    middle = (min(written) * max(written)) ** 0.5
    for x, point in zip(written, panel):
        colour, mark = STYLES.get(point["system"].split()[0].strip(","), OTHER_STYLE)
        right = x <= middle  # the label is right of the point
        lines.append(
            f"set label {quoted(point['system'])} at {x:.6g},{point['hits_percent']:.6g} "
            f"{'left' if right else 'right'} noenhanced point pt {mark} ps 1.6 lc rgb '{colour}' "
            f"tc rgb '{colour}' offset {'1' if right else '-1'},"
            f"{0.6 * label_side(point, panel):.2g}")
    return "\n".join(lines + ["plot NaN notitle"])


def script(report, path):
    """Returns the script for gnuplot; None if there is no point to draw."""
    names = [workload["name"] for workload in report["workloads"]]
    all_points = points(report)
    panels = [(name, [p for p in all_points if p["workload"] == name]) for name in names]
    panels = [(name, panel) for name, panel in panels if panel]
    if not panels:
        return None
    title = (f"Caches of {report['cache_bytes'] >> 20} MiB: hits against bytes written "
             "(better: up and left)")
    return "\n".join([
        f"set terminal pngcairo size {PANEL[0] * len(panels)},{PANEL[1]} font 'DejaVu Sans,10'",
        f"set output {quoted(str(path))}", "set grid", "set logscale x 2",
        "set format x '%g'", "set xlabel 'GiB written to disk (logarithmic)'",
        "set ylabel 'hits, % of requests'",
        f"set multiplot layout 1,{len(panels)} title {quoted(title)}",
        *(panel_script(name, panel) for name, panel in panels), "unset multiplot", ""])


def draw(report, path):
    """Draws the PNG. Returns why not, a sentence, or None."""
    text = script(report, path)
    if text is None:
        return "no plot: nothing was measured"
    if not shutil.which("gnuplot"):
        return ("no plot: gnuplot is not installed: "
                "apt-get install --no-install-recommends gnuplot-nox")
    path.unlink(missing_ok=True)
    # If it cannot open the file, it writes the picture to its output.
    ended = subprocess.run(["gnuplot"], input=text, text=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, check=False, timeout=GNUPLOT_SECONDS)
    if ended.returncode != 0 or not path.is_file():
        return f"no plot: gnuplot says {ended.stderr.strip()[-300:]}"
    return None
