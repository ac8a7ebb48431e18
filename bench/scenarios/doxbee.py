"""The Doxbee benchmark of bluebird: 10,000 uploads at once on our worker, and on Node beside it.

The uploads that Node runs are bluebird's own files. They are fetched for the run, not part of this
repository: bench/doxbee holds ours, bench/peers/doxbee.js measures theirs in the same way."""
import io
import json
import os
import shutil
import statistics
import subprocess
import tarfile
import urllib.request

import measure
import report

SOURCES = "https://codeload.github.com/petkaantonov/bluebird/tar.gz/refs/tags/v3.7.2"
FETCH_SECONDS = 30
UPLOADS, DELAY_MS, PARTS, ERRORS = 10000, 1, 25, 0.1
TOGETHER_MS = 2000  # long enough for all to begin before the first is over

# heading, our route, bluebird's folder, likelihood of an error
KINDS = [
    ("Sequential: 7 operations", "sequential", "doxbee-sequential", 0),
    ("Parallel: %d operations at once, and one" % PARTS, "parallel", "madeup-parallel", 0),
    ("Sequential with errors", "sequential", "doxbee-sequential-errors", ERRORS),
]
VARIANTS = ["callbacks-baseline", "promises-bluebird", "promises-native-async-await"]
COLUMNS = ["variant", "ms least", "median", "MiB median", "ms least, RSS each 100th", "median"]


def fetch_bluebird():
    """A folder with bluebird's benchmark/, and bluebird itself where that looks for it."""
    folder = measure.temporary_folder()
    try:
        with urllib.request.urlopen(SOURCES, timeout=FETCH_SECONDS) as answer:
            archive = tarfile.open(fileobj=io.BytesIO(answer.read()))
        archive.extractall(folder.name, [m for m in archive if "/benchmark/" in m.name and m.isfile()])
    except (OSError, tarfile.TarError) as why:
        raise measure.Failed("the peers' uploads cannot be fetched from %s (%s). Without a network, give a "
                             "checkout of petkaantonov/bluebird with --bluebird FOLDER" % (SOURCES, why))
    return folder, os.path.join(folder.name, os.listdir(folder.name)[0])


def link_bluebird(checkout):
    """promises-bluebird wants the built library, which is on npm."""
    if os.path.exists(os.path.join(checkout, "js", "release")):
        return
    package = measure.node_packages("bluebird@3.7.2").name
    os.makedirs(os.path.join(checkout, "js"), exist_ok=True)
    os.symlink(os.path.join(package, "node_modules", "bluebird", "js", "release"),
               os.path.join(checkout, "js", "release"))


def run_srv(options, route, errors, every, delay_ms=DELAY_MS):
    """Of a fresh process, which is what the original measures."""
    app = os.path.join(measure.ROOT, "bench", "doxbee")
    command = [measure.server_binary(options), app, "--port", "0", "--workers", "1", "--no-watch",
               "--no-access-log"]
    with measure.Server("srv", command, measure.cpus()[0]) as server:
        url = "http://127.0.0.1:%d/%s?n=%d&t=%g&p=%d&e=%g&every=%d" % (
            server.port, route, UPLOADS, delay_ms, PARTS, errors, every)
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)


def run_node(path, errors, every, delay_ms=DELAY_MS):
    # Not pinned: Node's helper threads would take the only CPU from it.
    done = subprocess.run(
        ["node", os.path.join(measure.ROOT, "bench", "peers", "doxbee.js"), path,
         str(UPLOADS), str(delay_ms), str(PARTS), str(errors), str(every)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, NODE_ENV="production"))
    if done.returncode != 0:
        raise measure.Failed("%s failed:\n%s" % (path, done.stderr[-1000:]))
    return json.loads(done.stdout)


def programs(options, checkout, route, folder, errors):
    """What is measured for one table: name and how to run it once."""
    found = [("srv", lambda *how: run_srv(options, route, errors, *how))]
    for variant in VARIANTS if checkout else []:
        path = os.path.join(checkout, "benchmark", folder, variant + ".js")
        if os.path.exists(path):
            found.append((variant, lambda *how, path=path: run_node(path, errors, *how)))
    return found


def row(name, each, hundredth):
    def ms(runs):
        return report.low_and_median([run["ms"] for run in runs], "%.0f")

    return [name, *ms(each), "%.1f" % statistics.median(run["mib"] for run in each), *ms(hundredth)]


def find_peers(options):
    """The checkout, or None and why there are no peers."""
    if not shutil.which("node"):
        return None, None, "Node is not installed, so there are no peers."
    try:
        keep, checkout = (None, options.bluebird) if options.bluebird else fetch_bluebird()
        link_bluebird(checkout)
        version = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
        return keep, os.path.abspath(checkout), "Node %s, bluebird 3.7.2." % version
    except measure.Failed as failure:
        return None, None, "No peers: %s." % failure


def run(options):
    keep, checkout, peers = find_peers(options)
    result = report.Result("Doxbee: %d uploads at once" % UPLOADS, [
        "bluebird's benchmark: each upload is a chain of operations that take %d ms, a timer each. 350 to" % DELAY_MS,
        "warm up, then all are started in one loop; from there to the end of the last, and how much the",
        "resident size has grown meanwhile. It is read at each completion, as the original does, which is a",
        "large part of what Node needs, or at each hundredth. Each run is a process of its own, %d runs of" % options.turns,
        "each in turns; \"least\" is the best of them. srv runs bench/doxbee on its worker: a task for each",
        "upload and for each parallel operation, `srv.sleep`, `srv.map`, and it waits for each commit, which",
        "the peers' promises and all parallel uploads do not. " + peers])
    for heading, route, folder, errors in KINDS:
        found = programs(options, checkout, route, folder, errors)
        runs = {name: ([], []) for name, _ in found}
        for _ in range(options.turns):
            for name, once in found:
                runs[name][0].append(once(1))
                runs[name][1].append(once(100))
        result.table(heading, COLUMNS, [row(name, *runs[name]) for name, _ in found])
    heading, route, folder, errors = KINDS[1]
    result.table("All %d parallel operations under way together, %d ms each" % (UPLOADS * PARTS, TOGETHER_MS),
                 ["variant", "MiB"],
                 [[name, "%.0f" % once(100, TOGETHER_MS)["mib"]]
                  for name, once in programs(options, checkout, route, folder, errors)])
    if keep:
        keep.cleanup()
    return result
