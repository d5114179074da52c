"""From what was measured to the claim's tables: parsing, derived figures, checks. Pure."""

# The proxy's own count of hits and the origin's of requests may differ by so much of all requests:
# a proxy asks again where a connection that it had kept was closed on it.
DISAGREEMENT_MAX = 0.001
# A device may lack so much of what the processes say: pages that were dirty twice before a sync.
DEVICE_SHORT_MAX = 0.01
# The time of a run: its start and end, and one request that is missed, with a connection to itself.
START_SECONDS, REQUEST_SECONDS, BYTES_PER_SECOND = 15, 0.0003, 400e6


def driven(report):
    """Figures of the proxy in a report of `encore-sim drive --json`. `hits_said`: by Cache-Status."""
    row = next(row for row in report["rows"] if row["run"] == "proxy")
    return {"requests": row["requests"], "bytes": row["bytes"], "hits_said": row["hits"],
            "origin_requests": row["origin_requests"], "origin_bytes": row["origin_bytes"],
            "hit_ratio": 1 - row["origin_requests"] / row["requests"],
            "byte_hit_ratio": 1 - row["origin_bytes"] / row["bytes"],
            "errors": row["errors"], "mismatches": row["mismatches"],
            "interrupted": report["interrupted"], "notes": report["notes"]}


def simulated(report):
    """{(eviction, admission): figures} of what `encore-sim replay --json` says."""
    return {(row["eviction"], row["admission"]):
            {"requests": row["requests"], "bytes": row["bytes_requested"],
             "hit_ratio": row["object_hit_ratio"], "byte_hit_ratio": row["byte_hit_ratio"],
             "written": row["bytes_written"]} for row in report["rows"]}


def simulated_with_disk(report):
    """The figures of the only run of `encore-sim replay --disk-size --json`."""
    row, disk = report["rows"][0], report["disk"][0]
    return {"requests": row["requests"], "bytes": row["bytes_requested"],
            "hit_ratio": row["object_hit_ratio"], "byte_hit_ratio": row["byte_hit_ratio"],
            "written": disk["disk_bytes_written"]}


def writes(at_start, at_end, log_bytes, device_bytes):
    """Bytes since the start: `written` by the processes (Io), `logs` outside of the cache's files,
    `cache` the rest, `cancelled` of it: deleted before it went out; `device`: by the file system."""
    written = at_end.written - at_start.written
    return {"written": written, "logs": log_bytes, "cache": written - log_bytes,
            "cancelled": at_end.cancelled - at_start.cancelled, "at_start": at_start.written,
            "device": device_bytes}


def problems(row):
    """Why the row's figures are not to be believed, a sentence each."""
    found = []
    if row["errors"] or row["mismatches"]:
        found.append(f"{row['errors']} errors, {row['mismatches']} wrong bodies")
    if row["interrupted"] or row["requests"] != row["simulated"]["requests"]:
        found.append(f"{row['requests']} of {row['simulated']['requests']} requests were driven")
    missed = row["requests"] - row["hits_said"]
    if abs(missed - row["origin_requests"]) > DISAGREEMENT_MAX * row["requests"]:
        found.append(f"the cache speaks of {missed} misses, the origin saw "
                     f"{row['origin_requests']} requests")
    disk = row["disk"]
    if disk and disk["device"] is not None:
        out = disk["cache"] - disk["cancelled"]
        if disk["device"] < out * (1 - DEVICE_SHORT_MAX):
            found.append(f"the processes wrote {out} bytes, the device saw {disk['device']}")
    return found + row.get("faults", [])


def compare(rows, always_of):
    """Adds to each row that has a disk its writes as a share of the row named by `always_of`:
    the same cache that stores whatever it may. Processes with processes, and device with device."""
    by_id = {row["id"]: row for row in rows if row.get("disk")}
    for row in by_id.values():
        always = by_id.get(always_of.get(row["id"]))
        if not always:
            continue
        row["of_always"] = row["disk"]["cache"] / always["disk"]["cache"]
        if always["disk"]["device"] and row["disk"]["device"] is not None:
            row["device_of_always"] = row["disk"]["device"] / always["disk"]["device"]
        row["byte_hit_gain"] = row["byte_hit_ratio"] - always["byte_hit_ratio"]


def merged(reports, names, ids):
    """One report of several; a row of a later one takes the place of an earlier one's. Workloads are
    in the order of `names`, rows in that of `ids`, and those that are not named last. REQUIRES: at least
    one. ValueError: caches of different sizes, or a workload that is another one."""
    first, *others = reports
    whole = {**first, "workloads": [{**w, "rows": list(w["rows"])} for w in first["workloads"]]}
    for report in others:
        if report["cache_bytes"] != whole["cache_bytes"]:
            raise ValueError("the reports are of caches of different sizes")
        whole |= {key: report[key] for key in ("machine", "date", "skipped")}
        whole["versions"] = whole["versions"] | report["versions"]
        for workload in report["workloads"]:
            same = next((w for w in whole["workloads"] if w["name"] == workload["name"]), None)
            if same is None:
                whole["workloads"].append({**workload, "rows": list(workload["rows"])})
            elif same["text"] != workload["text"]:
                raise ValueError(f"the reports have different workloads named {workload['name']}")
            else:
                rows = {row["id"]: row for row in same["rows"] + workload["rows"]}
                same["rows"] = list(rows.values())
    whole["workloads"].sort(key=lambda workload: place(workload["name"], names))
    for workload in whole["workloads"]:
        workload["rows"].sort(key=lambda row: place(row["id"], ids))
    return whole


def place(name, names):
    return names.index(name) if name in names else len(names)


def estimate_seconds(requests, bytes_mean, rate):
    """Returns the least seconds for the requests of a workload: by the rate, or by what one connection of two
    cores does."""
    each = REQUEST_SECONDS + bytes_mean / BYTES_PER_SECOND
    return START_SECONDS + requests * max(each, 1 / rate if rate else 0)


def gib(count):
    return "-" if count is None else f"{count / (1 << 30):.2f}"


def mib(count):
    return f"{count / (1 << 20):.0f}"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def held_text(row):
    """Mean and most, of all that the cache holds: on disk, and in the memory that is of its size."""
    disk, memory = row["disk"], row.get("memory", 0)
    return f"{mib(disk['held_mean'] + memory)} / {mib(disk['held_most'] + memory)}"


HEAD = ["cache", "hits %", "of bytes %", "written GiB", "of always %", "device GiB",
        "mean / most held MiB", "simulator", "hits %", "of bytes %", "written GiB"]


def cells(row):
    said = row["simulated"]
    theory = [" ".join(said["as"]), percent(said["hit_ratio"]), percent(said["byte_hit_ratio"]),
              gib(said["written"])]
    if row.get("missing"):
        return [row["cache"], row["missing"], *["-"] * 5, *theory]
    disk = row["disk"]
    return [row["cache"], percent(row["hit_ratio"]), percent(row["byte_hit_ratio"]),
            gib(disk and disk["cache"]), percent(row.get("of_always")),
            gib(disk and disk["device"]), held_text(row) if disk else "-", *theory]


def table(head, rows, texts):
    """Markdown; the first `texts` columns are left-aligned."""
    rule = "|" + "---|" * texts + "---:|" * (len(head) - texts)
    return ["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)]


def text(workload):
    """A workload's table in Markdown, with what is wrong below it."""
    lines = [f"{workload['name']}: {workload['text']}", "",
             *table(HEAD, [cells(row) for row in workload["rows"]], 1)]
    wrong = [f"- {row['cache']}: {sentence}" for row in workload["rows"]
             for sentence in row.get("problems", [])]
    return "\n".join(lines + ([""] + wrong if wrong else []) + [""])


def has_sizes(workload):
    """False where all objects have one size: hits and hits of bytes are the same there."""
    return any(round(row["hit_ratio"] - row["byte_hit_ratio"], 3)
               for row in workload["rows"] if row.get("disk"))


def summary_head(report):
    head = [""]
    for workload in report["workloads"]:
        head += [f"{workload['name']}: hits %", *(["of bytes %"] if has_sizes(workload) else []),
                 "written GiB"]
    return head + ["held MiB"]


def summary_cells(report, id_):
    """A system's line: its name, its figures of each workload, the mean that it held in each."""
    line, held, name = [], [], ""
    for workload in report["workloads"]:
        row = next((row for row in workload["rows"] if row["id"] == id_ and row.get("disk")), None)
        if row is None:
            line += ["-"] * (3 if has_sizes(workload) else 2)
            held.append("-")
            continue
        name = row["cache"]
        line += [percent(row["hit_ratio"]),
                 *([percent(row["byte_hit_ratio"])] if has_sizes(workload) else []),
                 gib(row["disk"]["cache"])]
        held.append(mib(row["disk"]["held_mean"] + row.get("memory", 0)))
    return [name, *line, ", ".join(held)]


def summary(report, order):
    """All workloads in one table, a line a system: the one of README. `order`: ids."""
    measured = [id_ for id_ in order if any(row["id"] == id_ and row.get("disk")
                                            for w in report["workloads"] for row in w["rows"])]
    return "\n".join(table(summary_head(report), [summary_cells(report, i) for i in measured], 1))


def verdicts(report, id_="encore"):
    """Returns a sentence a workload: the system `id_` compared with the others' most hits and
    fewest bytes."""
    sentences = []
    for workload in report["workloads"]:
        rows = {row["id"]: row for row in workload["rows"] if row.get("disk")}
        ours = rows.pop(id_, None)
        others = [row for key, row in rows.items() if not key.startswith(f"{id_}-")]
        if not ours or not others:
            continue
        most = max(others, key=lambda row: row["hit_ratio"])
        fewest = min(others, key=lambda row: row["disk"]["cache"])
        sentences.append(f"{workload['name']}: {figures(ours)}; of the others, most hits: "
                         f"{figures(most)}; fewest bytes written: {figures(fewest)}.")
    return sentences


def figures(row):
    return f"{row['cache']} {percent(row['hit_ratio'])} %, {gib(row['disk']['cache'])} GiB"
