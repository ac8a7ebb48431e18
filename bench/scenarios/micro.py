"""ns of single parts: programs of bench/micro that print tables of their own, and an app that measures
in the VM that serves."""
import json
import os
import socket
import subprocess

import measure
import report

PROGRAMS = [("The router", "route_bench"), ("The JSON codec, beside lua-cjson", "json_bench"),
            ("Tasks", "task_bench"), ("Templates", "template_bench")]

SCHEMAS_SECONDS = 60


def read_table(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, check=True, cwd=measure.ROOT,
                          preexec_fn=measure.pin_to(measure.cpus()[0]))
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return rows[0], rows[1:]


def measure_schemas(options):
    app = os.path.join(measure.ROOT, "apps", "bench", "schema.lua")
    server = measure.start_at_port("srv", [
        measure.server_binary(options), app, "--port", "PORT", "--workers", "1", "--no-watch",
        "--slice-limit", "0", "--log-file", "/dev/null"])
    try:
        with socket.create_connection(("127.0.0.1", server.port), SCHEMAS_SECONDS) as connection:
            answer = measure.request(connection, "/schema")
    finally:
        server.stop()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def run(options):
    result = report.Result("Single parts", [
        "CPU time of one thread for each call, the best of several rounds (`bench/micro`, and for schemas",
        "`apps/bench/schema.lua` in the VM that serves). Ten fields: two strings with bounds, URL, email, integer",
        "of a range, boolean, one of three words, array of slugs, object, date."])
    for heading, target in PROGRAMS:
        result.table(heading, *read_table(measure.build(target)))
    result.table("Schemas", ["ns", "each"], measure_schemas(options))
    return result
