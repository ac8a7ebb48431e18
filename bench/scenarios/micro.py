"""ns of single parts: programs of bench/micro that print tables of their own."""
import subprocess

import measure
import report

PROGRAMS = [("The router", "route_bench"), ("The JSON codec, beside lua-cjson", "json_bench"),
            ("Tasks", "task_bench")]


def read_table(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, check=True, cwd=measure.ROOT,
                          preexec_fn=measure.pin_to(measure.cpus()[0]))
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return rows[0], rows[1:]


def run(options):
    result = report.Result("Single parts", [
        "CPU time of one thread for each call, the best of several rounds (`bench/micro`)."])
    for heading, target in PROGRAMS:
        result.table(heading, *read_table(measure.build(target)))
    return result
