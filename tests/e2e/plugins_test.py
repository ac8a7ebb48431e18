"""Plugins that all workers share: metrics, health, sessions, rate limits, request ids."""
import re
import signal
import tempfile
import threading
import unittest

from srv_process import Srv, json_lines, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
local orders = srv.metrics.counter("orders_total", "Orders.", { "kind" })
local inside = srv.metrics.gauge("inside", "Requests in /inside.")
app:use(srv.metrics(), srv.health(), srv.request_id { trust = { "loopback" } })
app:get("/", function() return "hello" end)
app:get("/worker", function() return { id = srv.worker.id } end)
app:get("/order/:kind", function(req)
  orders:add(1, { kind = req.params.kind })
  return "ordered"
end)
app:get("/inside", function()
  inside:add(1)
  srv.defer(function() inside:add(-1) end)
  srv.sleep(30)
end)
app:get("/broken", function() error "broken" end)
local visits = srv.session()
app:get("/session", visits, function(req)
  req.session.n = (req.session.n or 0) + 1
  return { n = req.session.n, worker = srv.worker.id }
end)
app:get("/limited", srv.rate_limit { limit = 20, window = "10m" }, function() return { worker = srv.worker.id } end)
return app
"""


def numbers(srv):
    """{ sample: value } of /metrics."""
    status, headers, body = srv.get("/metrics")
    assert status == 200, (status, body)
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", headers
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in body.decode().splitlines() if not line.startswith("#")}


class Plugins(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        write_app(self.folder.name, {"app.lua": APP})

    def tearDown(self):
        self.folder.cleanup()

    def serve(self, *flags, workers=2):
        return Srv(self.folder.name, *flags, workers=workers)

    def on_both_workers(self, srv, ask):
        """ASK -> worker, until both have answered; how often it asked."""
        seen, asked = set(), 0
        while len(seen) < 2:
            seen.add(ask())
            asked += 1
            self.assertLess(asked, 1000, "one worker takes everything")
        return asked

    def test_counters_are_the_sum_of_all_workers(self):
        with self.serve() as srv:
            asked = self.on_both_workers(srv, lambda: srv.get("/worker")[2])
            for kind in ("book", "book", "pen"):
                srv.get("/order/" + kind)
            srv.get("/broken")
            srv.get("/nothing")
            srv.request("HEAD", "/")
            self.assertEqual(srv.request("PUT", "/")[0], 405)
            with srv.connect() as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
                self.assertRegex(client.recv(4096), b"^HTTP/1.1 400 ")
            # A request is counted when its last byte is out, which we may have before the worker goes on.
            # Each worker counts its own, so none of them is the last one of both.
            want = {
                'srv_http_requests_total{method="GET",route="/worker",status="2xx"}': asked,
                'srv_http_request_duration_seconds_count{method="GET",route="/worker"}': asked,
                'srv_http_requests_total{method="GET",route="/broken",status="5xx"}': 1,
                'srv_http_requests_total{method="HEAD",route="/",status="2xx"}': 1,
                'srv_http_requests_total{method="GET",route="(none)",status="4xx"}': 1,
                'srv_http_requests_total{method="PUT",route="(none)",status="4xx"}': 1,
                'srv_http_refused_total{status="400"}': 1,
                'orders_total{kind="book"}': 2,
                'orders_total{kind="pen"}': 1,
            }
            wait_until(lambda: all(numbers(srv).get(name, 0) >= count for name, count in want.items()), "all are counted")
            got = numbers(srv)
            self.assertEqual({name: got[name] for name in want}, want)
            self.assertEqual(srv.stop(), 0)

    def test_numbers_of_the_process_are_there(self):
        with self.serve() as srv:
            # A worker tells of itself before it sleeps.
            got = wait_until(lambda: numbers(srv)['srv_generation{worker="1"}'] == 1 and numbers(srv), "both workers")
            self.assertGreater(got["process_resident_memory_bytes"], 1 << 20)
            self.assertGreater(got["process_open_fds"], 5)
            self.assertGreater(got["process_cpu_seconds_total"], 0)
            self.assertGreater(got["process_start_time_seconds"], 1e9)
            for worker in "01":
                self.assertGreater(got['srv_lua_memory_bytes{worker="%s"}' % worker], 1e5)
                self.assertEqual(got['srv_generation{worker="%s"}' % worker], 1)
            self.assertGreaterEqual(got['srv_pool_running{lane="file"}'], 1)  # the page itself

    def test_what_waits_is_counted_while_it_waits(self):
        with self.serve(workers=1) as srv:
            def gone():
                got = numbers(srv)
                # The scrape itself is a connection and a task at most.
                return (got["inside"] == 0 and got['srv_http_connections{worker="0"}'] <= 1 and
                        got['srv_tasks{worker="0"}'] <= 1 and got)
            wait_until(gone, "a quiet start")
            waiting = [srv.connect() for _ in range(8)]
            for client in waiting:
                client.sendall(b"GET /inside HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: numbers(srv)["inside"] == 8, "eight inside")
            got = numbers(srv)
            self.assertGreaterEqual(got['srv_tasks{worker="0"}'], 8)
            self.assertGreaterEqual(got['srv_http_connections{worker="0"}'], 8)
            for client in waiting:
                client.close()
            got = wait_until(gone, "all counters at their start")
            self.assertEqual(got['srv_http_requests_total{method="GET",route="/inside",status="aborted"}'], 8)

    def test_counting_goes_on_over_an_edit(self):
        with self.serve() as srv:
            srv.get("/order/book")
            write_app(self.folder.name, {"app.lua": APP.replace('"ordered"', '"ordered anew"')})
            srv.signal(signal.SIGHUP)
            srv.wait_line("app reloaded")
            wait_until(lambda: srv.get("/order/book")[2] == b"ordered anew", "the new version")
            got = wait_until(lambda: numbers(srv)['srv_generation{worker="0"}'] >= 2 and numbers(srv), "its number")
            self.assertGreaterEqual(got['orders_total{kind="book"}'], 2)
            self.assertGreaterEqual(got['srv_reloads_total{result="loaded"}'], 1)
            broken = len(srv.lines)
            write_app(self.folder.name, {"app.lua": "return 5"})
            srv.signal(signal.SIGHUP)
            srv.wait_line("app not reloaded", broken)
            self.assertGreaterEqual(numbers(srv)['srv_reloads_total{result="refused"}'], 1)

    def test_a_draining_process_is_alive_and_not_ready(self):
        with self.serve(workers=1) as srv:
            self.assertEqual(srv.get("/readyz")[0], 200)
            clients = []
            for path in (b"/readyz", b"/livez"):
                client = srv.connect()
                client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n")
                clients.append(client)
            wait_until(lambda: numbers(srv)['srv_http_connections{worker="0"}'] >= 3, "both heads have begun")
            srv.signal(signal.SIGTERM)
            srv.wait_line("draining")
            wait_until(lambda: refused(srv), "new connections are refused")
            for client in clients:
                client.sendall(b"\r\n")
            self.assertRegex(clients[0].recv(4096), b"^HTTP/1.1 503 ")
            self.assertRegex(clients[1].recv(4096), b"^HTTP/1.1 200 ")
            for client in clients:
                client.close()
            self.assertEqual(srv.wait_exit(), 0)

    def test_sessions_and_limits_are_shared_by_all_workers(self):
        with self.serve() as srv:
            status, headers, _ = srv.get("/session")
            cookie, count = headers["set-cookie"].split(";")[0], 1
            workers = set()
            while len(workers) < 2 and count < 1000:
                _, _, body = srv.get("/session", {"Cookie": cookie})
                count += 1
                found = re.search(rb'"n":(\d+),"worker":(\d+)', body)
                self.assertEqual(int(found.group(1)), count)
                workers.add(found.group(2))
            self.assertEqual(len(workers), 2)
            results = []
            threads = [threading.Thread(target=lambda: results.append(srv.get("/limited")[0])) for _ in range(60)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual((results.count(200), results.count(429)), (20, 40))

    def test_the_log_bears_the_id_that_was_given(self):
        with self.serve("--log-format", "json") as srv:
            self.assertEqual(srv.get("/", {"X-Request-Id": "given-1"})[1]["x-request-id"], "given-1")
            srv.wait_line('"reqId":"given-1"')
            _, headers, _ = srv.get("/")
            srv.wait_line('"reqId":"%s"' % headers["x-request-id"])
            line = [line for line in json_lines(srv.output) if line.get("reqId") == "given-1"][0]
            self.assertEqual(line["req"]["url"], "/")


def refused(srv):
    try:
        srv.connect(timeout=1).close()
        return False
    except OSError:
        return True


if __name__ == "__main__":
    unittest.main()
