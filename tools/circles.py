"""Circles between units: a unit is a header and its source taken together, with the sources that
are named after it (kernel.h, kernel.cc, kernel_maintenance.cc). Called by structure.py."""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

# Units that stand in circles today. This list only ever gets shorter: it must become empty.
STILL_IN_CIRCLES = set()


def unit_of(path, headers):
    """proxy/net/loop.cc -> proxy/net/loop; fetch_body.cc, without a header of its own -> fetch."""
    stem = path.rsplit(".", 1)[0]
    unit = stem
    while unit not in headers:
        if "_" not in unit.rsplit("/", 1)[-1]:
            return stem
        unit = unit.rsplit("_", 1)[0]
    return unit


def uses(texts):
    """Unit -> the other units that it includes. `texts`: path -> text of each header and source."""
    headers = {path[:-2] for path in texts if path.endswith(".h")}
    graph = {unit_of(path, headers): set() for path in texts}
    for path, text in texts.items():
        unit = unit_of(path, headers)
        for target in INCLUDE.findall(text):
            if target in texts:
                graph[unit].add(unit_of(target, headers))
        graph[unit].discard(unit)
    return graph


def circles(graph):
    """Sorted lists of the units that reach each other (Tarjan 1972, without recursion)."""
    number, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(graph):
        if root in number:
            continue
        work = [(root, iter(sorted(graph[root])))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            unit, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[unit] = min(low[unit], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == number[unit]:
                    at = stack.index(unit)
                    members = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(members)
                    if len(members) > 1:
                        found.append(sorted(members))
    return found


def faults(texts, allowed):
    """Pairs of a unit and what is wrong with it."""
    graph = uses(texts)
    seen = set()
    for members in circles(graph):
        seen.update(members)
        for unit in members:
            if unit not in allowed:
                back = ", ".join(sorted(graph[unit] & set(members)))
                yield unit, f"stands in a circle of {len(members)} units; it includes {back}"
    for unit in sorted(set(allowed) - seen):
        yield unit, "stands in no circle any more: take it off the list in tools/circles.py"
