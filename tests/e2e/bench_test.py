"""srv bench against servers that are scripted. Each defect that was proved of autocannon 9 (A1 to A10) is one that
this command must not have."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from origin import Origin, RawOrigin, dead_url
from srv_process import BIN, PATIENCE, ROOT, wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SLOW = 0.05


class Done:
    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, err

    @property
    def result(self):
        return json.loads(self.out)


def start(*args, env=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SRV_") or k == "SRV_LUA_PATH"}
    environment.pop("PORT", None)
    environment.update(env or {})
    return subprocess.Popen([BIN, "bench", *map(str, args)], cwd=ROOT, env=environment, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def bench(*args, env=None):
    process = start(*args, env=env)
    try:
        out, err = process.communicate(timeout=2 * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(process, out, err)


def answer(_head, _number):
    return OK


class BenchCase(unittest.TestCase):
    def load(self, *args, status=0, env=None):
        """The JSON of a run whose exit status is STATUS; what was sent is accounted for."""
        done = bench("-j", *args, env=env)
        self.assertEqual(done.status, status, done.err)
        result = done.result
        self.assertEqual(result["sent"], result["answered"] + result["errors"] + result["in_flight"])
        self.assertEqual(result["errors"], sum(result["faults"].values()))
        self.assertLessEqual(0, result["in_flight"])
        return result

    def once_more(self, claim):
        """A claim about time on a machine that has more to do: it may fail once."""
        try:
            claim()
        except AssertionError:
            claim()


def wait_then_answer(_head, _number):
    time.sleep(SLOW)
    return OK


class Defects(BenchCase):
    def test_A1_a_server_of_50_ms_has_a_median_of_50_ms_at_a_rate(self):
        def claim():
            with RawOrigin(wait_then_answer) as origin:
                result = self.load("-c", 1, "-R", 10, "-d", 3, origin.url)
            self.assertEqual(result["latency"]["totalCount"], result["answered"])
            self.assertAlmostEqual(result["answered"], 30, delta=3)
            for times in (result["latency"], result["service"]):
                self.assertGreaterEqual(times["p50"], 49)
                self.assertLessEqual(times["p50"], 60)
        self.once_more(claim)

    def test_A1_a_stall_is_seen_by_all_that_were_due_meanwhile(self):
        def stall_once(_head, number):
            if number == 20:
                time.sleep(1)
            return OK
        with RawOrigin(stall_once) as origin:
            result = self.load("-c", 1, "-R", 100, "-d", 3, origin.url)
        self.assertGreater(result["latency"]["p90"], 500)  # a third of all waited, up to a second
        self.assertLess(result["service"]["p90"], 500)
        with RawOrigin(stall_once) as origin:
            result = self.load("-C", "-c", 1, "-R", 100, "-d", 3, origin.url)
        self.assertLess(result["latency"]["p90"], 500)

    def test_A2_arrivals_are_evenly_spaced(self):
        def claim():
            with RawOrigin(answer) as origin:
                self.load("-R", 100, "-c", 10, "-d", 3, origin.url)
                first = min(origin.arrivals)
                windows = {}
                for moment in origin.arrivals:
                    slot = int((moment - first) * 10)
                    windows[slot] = windows.get(slot, 0) + 1
            self.assertLessEqual(max(windows.values()), 30, windows)
        self.once_more(claim)

    def test_A3_threads_share_the_rate(self):
        with RawOrigin(answer) as origin:
            result = self.load("-R", 100, "-w", 2, "-c", 10, "-d", 3, origin.url)
        self.assertGreaterEqual(result["sent"] + result["backlog"], 298)
        self.assertLessEqual(result["sent"], 100 * result["duration"] + 3)
        self.assertEqual(result["workers"], 2)

    def test_A4_closed_connections_are_accounted_for_and_their_times_are_true(self):
        def close_each_fifth(_head, number):
            return [OK, None] if number % 5 == 0 else OK
        with RawOrigin(close_each_fifth) as origin:
            result = self.load("-c", 4, "-a", 200, origin.url)
            self.assertEqual(result["sent"], 200)
            self.assertEqual(result["in_flight"], 0)
            self.assertGreaterEqual(result["answered"], 100)
            self.assertLessEqual(result["faults"]["closed"] + result["faults"]["reset"], 200 - result["answered"])
            self.assertLess(result["latency"]["p50"], 200)

    def test_A4_an_announced_end_is_no_fault(self):
        def close(_head, _number):
            return [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", None]
        with RawOrigin(close) as origin:
            result = self.load("-c", 4, "-a", 100, origin.url)
        self.assertEqual((result["2xx"], result["errors"]), (100, 0))
        self.assertGreaterEqual(result["connections_made"], 100)

    def test_A5_HEAD_does_not_wait_for_a_body(self):
        with RawOrigin(lambda head, _: OK[:-5]) as origin:
            result = self.load("-m", "HEAD", "-a", 20, "-t", 2, origin.url)
        self.assertEqual((result["2xx"], result["timeouts"]), (20, 0))

    def test_A6_the_exit_status_tells(self):
        self.assertEqual(bench("-d", 1, dead_url()).status, 1)
        for line in (["--bogus", "x"], ["-c", "0", "x"], ["-c", "many", "x"], ["-p", "100000", "x"], [], ["-d", "0", "x"],
                     ["-R", "0", "x"], ["-R", "nan", "x"], ["-r", "1e12", "x"], ["--fail-if", "p98>1", "x"], ["/path"], ["--on-port", "/"], ["-W", "[", "-q", "]", "x"]):
            done = bench(*line)
            self.assertEqual(done.status, 2, line)
            self.assertIn("--help", done.err)
        self.assertEqual(bench("--help").status, 0)

    def test_A7_a_bailout_is_at_once(self):
        began = time.monotonic()
        result = bench("-j", "-B", 5, "-c", 1, "-d", 30, dead_url())
        self.assertEqual(result.status, 1)
        self.assertEqual(result.result["errors"], 5)
        self.assertLess(time.monotonic() - began, 15)

    def test_A8_what_is_said_to_be_sent_has_arrived(self):
        with RawOrigin(answer) as origin:
            result = self.load("-R", 200, "-c", 5, "-d", 1, origin.url)
            wait_until(lambda: len(origin.arrivals) == result["requests"]["sent"], "all that was sent")
        with RawOrigin(answer) as origin:
            result = self.load("-a", 123, "-c", 7, "-w", 3, "-p", 2, origin.url)
            self.assertEqual((result["sent"], len(origin.arrivals)), (123, 123))

    def test_A9_times_have_microseconds_and_all_percentiles(self):
        with RawOrigin(answer) as origin:
            done = bench("-l", "-a", 200, "-c", 1, origin.url)
            result = self.load("-a", 200, "-c", 1, origin.url)
        for name in ("p50", "p75", "p90", "p95", "p97.5", "p99", "p99.9", "p99.99", "max"):
            self.assertIn(name, done.out.splitlines()[0])
        self.assertIn("99.999", done.out)
        self.assertNotEqual(result["latency"]["p50"] * 1000 % 1000, 0)

    def test_A10_the_live_view_is_there_with_threads_too(self):
        with RawOrigin(answer) as origin:
            self.assertIn("req/s", in_terminal("-w", 2, "-c", 4, "-d", 1, origin.url))


    def test_a_terminal_that_knows_no_escape_sequences_is_sent_none(self):
        with RawOrigin(answer) as origin:
            shown = in_terminal("-c", 2, "-d", 1, origin.url, term="dumb")
            self.assertIn("answered", shown)
            self.assertNotIn("\x1b", shown)


def in_terminal(*args, term="xterm"):
    """What a terminal of 80 columns is sent."""
    import pty
    main, other = pty.openpty()
    process = subprocess.Popen([BIN, "bench", *map(str, args)], cwd=ROOT, stdin=other, stdout=other, stderr=other,
                               env=dict(os.environ, TERM=term))
    os.close(other)
    text = b""
    try:
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the last writer has gone
                break
            if not piece:
                break
            text += piece
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(main)
    return text.decode("utf-8", "replace")


class Showing(BenchCase):
    def test_the_live_view_cleans_up_after_itself_and_is_none_without_a_terminal(self):
        with RawOrigin(answer) as origin:
            screen = in_terminal("-d", 3, "-c", 2, origin.url)
            plain = bench("-d", 1, "-c", 2, origin.url)
            quiet = in_terminal("-n", "-d", 1, "-c", 2, origin.url)
        self.assertGreaterEqual(screen.count("req/s  p50"), 4)
        self.assertIn("\x1b[J", screen[screen.rindex("req/s  p50"):])
        self.assertNotIn("\x1b", plain.out + plain.err)
        self.assertNotIn("req/s  p50", plain.err)
        self.assertNotIn("req/s  p50", quiet)
        self.assertIn("Latency", quiet)

    def test_without_progress_the_result_is_still_shown(self):
        with RawOrigin(answer) as origin:
            done = bench("-n", "-a", 10, "--render-status-codes", origin.url)
        self.assertIn("10 sent = 10 answered (10 2xx, 0 others) + 0 failed + 0 under way", done.out)
        self.assertRegex(done.out, r"200 +10\n")

    def test_JSON_has_the_keys_of_autocannon(self):
        with RawOrigin(answer) as origin:
            result = self.load("-T", "a title", "-a", 50, "-W", "[", "-c", 1, "-a", 5, "]", origin.url)
        for key in ("title url connections sampleInt pipelining workers duration samples start finish errors timeouts mismatches "
                    "non2xx resets 1xx 2xx 3xx 4xx 5xx statusCodeStats latency requests throughput warmup").split():
            self.assertIn(key, result)
        for key in "average mean stddev min max p0_001 p0_01 p0_1 p1 p2_5 p10 p25 p50 p75 p90 p97_5 p99 p99_9 p99_99 p99_999".split():
            self.assertIn(key, result["latency"])
            self.assertIn(key, result["requests"])
        self.assertEqual(result["latency"]["totalCount"], 50)
        self.assertEqual((result["requests"]["total"], result["requests"]["sent"]), (50, 50))
        self.assertEqual(result["statusCodeStats"], {"200": {"count": 50}})
        self.assertEqual(result["throughput"]["total"], 50 * len(OK))
        self.assertEqual(result["warmup"]["answered"], 5)

    def test_a_run_of_nothing_but_faults_is_whole_JSON(self):
        result = self.load("-d", 1, "-c", 3, dead_url(), status=1)
        self.assertEqual(result["statusCodeStats"], {})
        self.assertEqual(result["faults"]["refused"], result["errors"])
        self.assertGreater(result["errors"], 0)
        self.assertLess(result["errors"], 100)  # who is down is not attacked

    def test_limits_decide_the_exit_status(self):
        with RawOrigin(lambda head, number: OK if number % 2 else b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") as origin:
            for limit, status in (("non2xx>40%", 1), ("non2xx>60%", 0), ("p99>1us", 1), ("p99>60s", 0), ("errors>0", 0),
                                  ("rps<1", 0), ("rps<1e9", 1)):
                done = bench("-a", 20, "-c", 1, "--fail-if", limit, origin.url)
                self.assertEqual(done.status, status, limit)
                self.assertEqual("failed: " + limit in done.err, status == 1, limit)

    def test_an_earlier_run_is_compared_with(self):
        with tempfile.TemporaryDirectory() as folder:
            old, page, hgrm = (os.path.join(folder, name) for name in ("old.json", "page.html", "t.hgrm"))
            with RawOrigin(wait_then_answer) as origin:
                bench("-d", "1200ms", "-L", 100, "-c", 1, "--output", old, origin.url)
            with RawOrigin(answer) as origin:
                args = ("-d", "1200ms", "-L", 100, "-c", 1, "--compare", old, origin.url)
                done = bench(*args)
                result = self.load("--html", page, "--hgrm", hgrm, *args)
            self.assertRegex(done.out, r"requests/s .*better \(p [=<] 0\.0")
            self.assertEqual([row["verdict"] for row in result["comparison"]][:2], ["better", "better"])
            with open(page, encoding="utf-8") as file:
                self.assertIn('"comparison":', file.read())
            with open(hgrm, encoding="utf-8") as file:
                self.assertRegex(file.read(), r"1/\(1-Percentile\)\n\n(?s:.*)1\.000000000000 +%d +inf\n#\[Mean" % result["answered"])

    def test_a_comparison_that_says_nothing_is_told(self):
        with tempfile.TemporaryDirectory() as folder, RawOrigin(answer) as origin:
            old = os.path.join(folder, "old.json")
            bench("-a", 5, "--output", old, origin.url)
            done = bench("-a", 5, "--compare", old, origin.url)
            self.assertEqual(done.status, 1)
            self.assertIn("too few", done.err)
            with open(old, "w", encoding="utf-8") as file:
                file.write("{}")
            self.assertEqual(bench("-a", 5, "--compare", old, origin.url).status, 1)
            self.assertRegex(bench("--compare", folder, origin.url).err, "^srv bench: --compare .*: Is a directory\n$")

    def test_ctrl_c_ends_the_load_and_shows_what_was_done(self):
        with RawOrigin(answer) as origin:
            process = start("-j", "-d", 600, "-c", 2, origin.url)
            try:
                wait_until(lambda: len(origin.arrivals) > 10, "requests")
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
                process.wait()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(json.loads(out)["interrupted"])
        self.assertGreater(json.loads(out)["answered"], 0)

    def test_ctrl_c_ends_the_warm_up_and_what_would_follow(self):
        with RawOrigin(answer) as origin:
            process = start("-W", "[", "-d", 600, "]", "-d", 600, origin.url, "--", sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1")
            try:
                wait_until(lambda: len(origin.arrivals) > 5, "requests")
                child = self.child_of(process.pid)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
                process.wait()
        self.assertEqual((process.returncode, out, err), (0, "", ""))
        self.assertFalse(os.path.exists("/proc/%d" % child), "the server goes on")

    @staticmethod
    def child_of(pid):
        found = []
        for task in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/children" % (pid, task)) as children:
                    found += [int(child) for child in children.read().split()]
            except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                pass
        return found[0]

    def test_ctrl_c_ends_for_ever_too(self):
        with RawOrigin(answer) as origin:
            process = start("-f", "-d", "300ms", "-c", 1, origin.url)
            try:
                wait_until(lambda: origin.connections > 2, "a third round")
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
                process.wait()
        self.assertEqual(process.returncode, 0)


class Targets(BenchCase):
    def test_a_command_is_started_loaded_and_ended(self):
        result = self.load("--on-port", "-a", 20, "-c", 2, "/", "--", sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1")
        self.assertEqual(result["2xx"], 20)
        port = int(re.search(r":(\d+)/", result["url"]).group(1))
        with socket.socket() as probe:
            self.assertNotEqual(probe.connect_ex(("127.0.0.1", port)), 0, "it still listens")

    def test_our_own_server_is_started_loaded_and_ended(self):
        result = self.load("--on-port", "-a", 50, "--", BIN, os.path.join(ROOT, "apps", "bench"), "--port", "0")
        self.assertEqual(result["2xx"], 50)

    def test_a_command_that_ends_or_never_listens_is_told(self):
        done = bench("--on-port", "/", "--", "sh", "-c", "echo I give up; exit 3")
        self.assertEqual(done.status, 1)
        self.assertIn("I give up", done.err)
        done = bench("--on-port", "--start-timeout", "300ms", "/", "--", "sleep", "60")
        self.assertEqual(done.status, 1)
        self.assertIn("listens on no port", done.err)

    def test_a_path_is_that_of_PORT(self):
        with RawOrigin(answer) as origin:
            self.load("-a", 1, "/there", env={"PORT": str(origin.port)})
            self.assertIn("GET /there ", origin.heads[0])

    def test_IPv6_and_a_name_with_two_addresses(self):
        try:
            origin = RawOrigin(answer, socket.AF_INET6, ("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        with origin:
            self.assertEqual(self.load("-a", 5, "http://[::1]:%d/" % origin.port)["2xx"], 5)
            self.assertIn("Host: [::1]:%d" % origin.port, origin.heads[0])
            if len({info[4][0] for info in socket.getaddrinfo("localhost", origin.port)}) > 1:
                self.assertEqual(self.load("-a", 5, "http://localhost:%d/" % origin.port)["2xx"], 5)
        with RawOrigin(answer) as origin:
            self.assertEqual(self.load("-a", 5, "localhost:%d" % origin.port)["2xx"], 5)

    def test_a_Unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with RawOrigin(answer, socket.AF_UNIX, path) as origin:
                result = self.load("-S", path, "-a", 5, "http://any.example/x")
                self.assertEqual((result["2xx"], result["socketPath"]), (5, path))
                self.assertIn("Host: any.example", origin.heads[0])

    def test_URLs_come_as_often_as_their_weights_say(self):
        with RawOrigin(answer) as origin:
            self.load("-a", 40, "-c", 1, "--weights", "3,1", origin.url + "a", origin.url + "b")
            self.assertEqual(sum("/a " in head for head in origin.heads), 30)
        with RawOrigin(answer) as one, RawOrigin(answer) as other:
            self.load("-a", 40, "-c", 4, one.url, other.url)
            self.assertEqual((len(one.heads) + len(other.heads), one.connections, other.connections), (40, 2, 2))
            done = bench("-a", 40, "-c", 1, one.url, other.url)
            self.assertEqual(done.status, 1)
            self.assertIn("1 of 2 servers", done.err)


class Requests(BenchCase):
    def seen(self, *args):
        """What an origin got of one request: method, path, headers, body."""
        with Origin(lambda handler, body: handler.give(200, b"ok")) as origin:
            self.load("-a", 1, "-c", 1, *args, origin.url + "/p")
            return origin.seen[0]

    def test_headers_method_and_body(self):
        method, path, headers, body = self.seen("-m", "PUT", "-H", "X-One=1", "-H", "X-Two: a=b", "-b", "text")
        self.assertEqual((method, path, body), ("PUT", "/p", b"text"))
        self.assertEqual((headers["X-One"], headers["X-Two"], headers["Content-Length"]), ("1", "a=b", "4"))
        self.assertIsNone(headers["Accept-Encoding"])

    def test_fields_that_come_again_and_Connection(self):
        _, _, headers, _ = self.seen("-H", "X-A=1", "-H", "X-A=2", "-H", "connection=close", "-H", "accept-encoding=gzip")
        self.assertEqual(headers.get_all("X-A"), ["1", "2"])
        self.assertEqual(headers["Connection"], "close")
        self.assertEqual(headers.get_all("Accept-Encoding"), ["gzip"])

    def test_a_large_body_from_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(range(256)) * 16384)
            file.flush()
            method, _, _, body = self.seen("-m", "POST", "-i", file.name)
        self.assertEqual((method, body), ("POST", bytes(range(256)) * 16384))

    def test_a_form_with_a_file(self):
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(b"content [<id>]")
            file.flush()
            form = {"f": {"type": "file", "path": file.name, "options": {"filename": "up.txt"}}, "t": {"type": "text", "value": "v"}}
            method, _, headers, body = self.seen("-F", json.dumps(form), "-I")
        self.assertEqual(method, "POST")
        self.assertIn("multipart/form-data", headers["Content-Type"])
        self.assertIn(b'filename="up.txt"', body)
        self.assertRegex(body, rb"content [0-9a-f-]{27}\r\n")
        self.assertTrue(body.rstrip().endswith(b"--"))

    def test_ids_in_URL_field_and_body_differ(self):
        with Origin(lambda handler, body: handler.give(200, b"ok")) as origin:
            self.load("-I", "-a", 20, "-c", 3, "-p", 2, "-m", "POST", "-b", "b [<id>]", "-H", "X-Id: [<id>]", origin.url + "/[<id>]?q=%5B%3Cid%3E%5D")
            seen = origin.seen
        ids = [one for _, path, headers, body in seen
               for one in re.findall(r"[0-9a-f]{5}-[0-9a-f]{4}-[0-9a-f]{16}", path + headers["X-Id"] + body.decode())]
        self.assertEqual((len(ids), len(set(ids))), (80, 80))

    def test_a_HAR_file_is_played(self):
        with Origin(lambda handler, body: handler.give(200, b"ok")) as origin, tempfile.NamedTemporaryFile("w", suffix=".har") as file:
            entries = [
                {"request": {"method": "GET", "url": origin.url + "/one#x", "headers": [{"name": "X-H", "value": "1"}, {"name": ":authority", "value": "no"}, {"name": "Connection", "value": "no"}]}},
                {"request": {"method": "POST", "url": origin.url + "/two", "headers": [], "postData": {"text": "body"}}},
                {"request": {"method": "GET", "url": "http://elsewhere.example/", "headers": []}},
            ]
            json.dump({"log": {"entries": entries}}, file)
            file.flush()
            done = bench("-j", "--har", file.name, "-a", 4, "-c", 1, origin.url)
            self.assertEqual(done.status, 0, done.err)
            self.assertIn("1 requests of", done.err)
            self.assertEqual([(method, path, body) for method, path, _, body in origin.seen],
                             [("GET", "/one", b""), ("POST", "/two", b"body")] * 2)
            self.assertEqual(origin.seen[0][2]["X-H"], "1")
            self.assertEqual(bench("--har", file.name, "-a", 4, "http://other.example").status, 1)

    def test_what_HTTP_forbids_is_said_not_thrown(self):
        for args in (["-H", "X-A"], ["-H", "Transfer-Encoding=x"], ["-H", "X-A=a\rb"], ["-m", "NO GOOD"], ["-i", "/no/such"]):
            done = bench(*args, "http://127.0.0.1:1/")
            self.assertEqual(done.status, 1, args)
            self.assertNotIn("traceback", done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)

    def test_bodies_that_are_not_as_expected_are_counted(self):
        with RawOrigin(answer) as origin:
            self.assertEqual(self.load("-a", 5, "-E", "hello", origin.url)["mismatches"], 0)
            self.assertEqual(self.load("-a", 5, "-E", "hullo", origin.url)["mismatches"], 5)

    def test_times_of_errors_can_be_left_out(self):
        with RawOrigin(lambda head, number: b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") as origin:
            self.assertEqual(self.load("-x", "-a", 5, origin.url)["latency"]["totalCount"], 0)

    def test_connections_are_used_as_often_as_was_said(self):
        with RawOrigin(answer) as origin:
            self.assertEqual(self.load("-M", 3, "-c", 2, "-d", 60, origin.url)["sent"], 6)
            self.assertEqual(self.load("-D", 2, "-c", 1, "-a", 10, origin.url)["connections_made"], 5)
            self.assertEqual(self.load("-O", 9, "-c", 2, "-d", 60, origin.url)["sent"], 9)

    def test_silence_is_a_timeout(self):
        with RawOrigin(lambda head, number: b"") as origin:
            result = self.load("-t", "100ms", "-a", 3, "-c", 1, origin.url, status=1)
        self.assertEqual((result["timeouts"], result["errors"]), (3, 3))


class Outputs(BenchCase):
    def test_a_file_that_cannot_be_written_is_told_before_the_load(self):
        with RawOrigin(answer) as origin:
            for option in ("--html", "--output", "--hgrm"):
                done = bench("-a", 5, option, "/nowhere/x", origin.url)
                self.assertEqual(done.status, 1, option)
                self.assertIn("%s: /nowhere/x: No such file" % option, done.err)
            self.assertEqual(origin.heads, [])

    def test_a_report_that_nobody_gets_is_no_success(self):
        with RawOrigin(answer) as origin, open("/dev/full", "w") as full:
            done = subprocess.run([BIN, "bench", "-a", "5", origin.url], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=2 * PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertIn("the output cannot be written", done.stderr)


if __name__ == "__main__":
    unittest.main()
