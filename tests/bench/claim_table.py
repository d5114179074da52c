"""From what was measured to the claim's table: parsing, derived figures, checks. Pure."""

# The proxy's own count of hits and the origin's of requests may differ by so much of all requests:
# a proxy asks again where a connection that it had kept was closed on it.
DISAGREEMENT_MAX = 0.001
# A device may lack so much of what the processes say: pages that were dirty twice before a sync.
DEVICE_SHORT_MAX = 0.01


def driven(report):
    """What `encore-sim drive --json` says of the proxy."""
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
    """Adds to each row that has a disk what it writes as a share of the row named by `always_of`:
    the same cache that stores whatever it may. Processes with processes, and device with device."""
    by_name = {row["cache"]: row for row in rows if row.get("disk")}
    for row in by_name.values():
        always = by_name.get(always_of[row["cache"]])
        if not always:
            continue
        row["of_always"] = row["disk"]["cache"] / always["disk"]["cache"]
        if always["disk"]["device"] and row["disk"]["device"] is not None:
            row["device_of_always"] = row["disk"]["device"] / always["disk"]["device"]
        row["byte_hit_gain"] = row["byte_hit_ratio"] - always["byte_hit_ratio"]


def gib(count):
    return "-" if count is None else f"{count / (1 << 30):.2f}"


def mib(count):
    return f"{count / (1 << 20):.0f}"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


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
            gib(disk and disk["device"]),
            f"{mib(disk['held_mean'])} / {mib(disk['held_most'])}" if disk else "-", *theory]


def text(workload):
    """A workload's table in Markdown, with what is wrong below it."""
    lines = [f"{workload['name']}: {workload['text']}", "", "| " + " | ".join(HEAD) + " |",
             "|---|" + "---:|" * 6 + "---|" + "---:|" * 3]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in workload["rows"]]
    wrong = [f"- {row['cache']}: {sentence}" for row in workload["rows"]
             for sentence in row.get("problems", [])]
    return "\n".join(lines + ([""] + wrong if wrong else []) + [""])
