"""Runs the tasks of a sweep on a Dask cluster: python3 -c THIS SCHEDULER FILE.

FILE has a line for each task: its name, a tab, its command. Writes a line for each that ends: "done NAME", or
"failed NAME: why"; or "error: why" where the cluster cannot be used. A task whose worker dies is run again by
another one, three times at most: its name is its key, and its result is a file.
"""

import subprocess
import sys


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return done.returncode, (done.stderr or done.stdout).strip().splitlines()[-1:]


def report(future, name):
    try:
        code, last = future.result()
    except Exception as error:  # from the cluster or the task
        return f"failed {name}: {error}"
    return f"done {name}" if code == 0 else f"failed {name}: exit {code}: {''.join(last)}"


def main(scheduler, path):
    try:
        from dask.distributed import Client, as_completed
    except ImportError as error:
        return print(f"error: {error}; install python3-distributed", flush=True)
    with open(path, encoding="utf-8") as file:
        tasks = [line.rstrip("\n").split("\t", 1) for line in file]
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        return print(f"error: {scheduler}: {error or type(error).__name__}", flush=True)
    with client:
        names = {client.submit(run, command, key=name, retries=3): name for name, command in tasks}
        for future in as_completed(list(names)):
            print(report(future, names[future]).replace("\n", " "), flush=True)
    return None


main(*sys.argv[1:3])
