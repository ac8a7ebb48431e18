"""The bare loop against itself: a ratio far from 1.00 says how little this machine can tell now."""
import measure
import report
from scenarios import hello


def run(options):
    connections = options.connections or hello.CONNECTIONS
    result = report.Result("The method against itself", hello.HOW + [
        "Both servers are the bare loop; %d turns of %g s for each." % (options.turns, options.seconds)])
    with measure.start_loop(name="bare loop") as one, measure.start_loop(name="the same") as other:
        turns = measure.take_turns([one, other], "/", options, connections)
        result.table("GET /", hello.COLUMNS, hello.rows_of(turns, one))
    return result
