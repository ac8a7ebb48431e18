"""A result as text: what was measured, how, and on what."""
import os
import platform
import statistics
import subprocess

from measure import ROOT


class Result:
    def __init__(self, title, how):
        self.title = title
        self.how = how     # sentences: how it was made
        self.tables = []   # (heading, [column], [[cell]])

    def table(self, heading, columns, rows):
        self.tables.append((heading, columns, rows))


def low_and_median(values, form="%.2f"):
    return [form % min(values), form % statistics.median(values)]


def _table(heading, columns, rows):
    widths = [max(len(str(row[i])) for row in [columns] + rows) for i in range(len(columns))]

    def line(cells):
        text = [str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                for i, (cell, width) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(text) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ("-" if i == 0 else ":") for i, width in enumerate(widths)) + "|"
    return ["", "## " + heading, "", line(columns), rule] + [line(row) for row in rows]


def _output(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip()


def _commit():
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", "src", "lua", "apps/bench")
    return _output("git", "rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def _processor():
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def render(result, argv, load):
    """LOAD: of the machine when it began."""
    lines = ["# " + result.title, ""]
    lines.append("Made by `bench/run %s` at %s on %s with %d CPUs, Linux %s; the load before it was %.2f." % (
        " ".join(argv), _commit(), _processor(), os.cpu_count(), platform.release().split("-")[0], load))
    lines += [""] + result.how
    for table in result.tables:
        lines += _table(*table)
    return "\n".join(lines)


def write(name, text):
    folder = os.path.join(ROOT, "bench", "results")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".md"), "w") as file:
        file.write(text + "\n")
