"""A server's life: draining, a second signal, a crash, many waits at once, the deadline."""
import os
import resource
import signal
import socket
import tempfile
import threading
import time
import unittest

from srv_process import Srv, json_lines, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:get("/wait/:ms<int>", function(req) srv.sleep(req.params.ms / 1000) return "waited" end)
app:get("/for-ever", { timeout = "200ms" }, function(req)
  srv.defer(function(err) srv.log.info("deferred", { code = err and err.code }) end)
  while true do pcall(srv.sleep, 5) end
end)
app:get("/spin/:ms<int>", function(req)
  local stop = srv.monotonic() + req.params.ms / 1000
  while srv.monotonic() < stop do end
  return "spun"
end)
app:get("/held", function()
  local file
  repeat file = io.open(srv.env.RELEASE) until file
  file:close()
  return "released"
end)
app:get("/loop", function() while true do end end)
app:get("/until-released", function()
  srv.log.info("waits for its release")
  local file
  repeat
    srv.sleep("10ms")
    file = io.open(srv.env.RELEASE)
  until file
  file:close()
  return "released"
end)
local arrived = 0
app:get("/together/:count<int>", function(req)
  arrived = arrived + 1
  repeat srv.sleep("10ms") until arrived >= req.params.count
  return "waited"
end)
app:get("/worker", function() return { id = srv.worker.id } end)
app:get("/sign", function(req, res) res:cookie("c", "v", { signed = true }) return "" end)
app:get("/signed", function(req) return req:cookie("c", { signed = true }) or "no" end)
app:get("/crowd", function()
  for _ = 1, 200000 do srv.spawn(function() srv.sleep("1m") end) end
  srv.sleep("1ms")
  return "spawned"
end)
app:get("/parts/:ms<int>", function(req, res)
  srv.defer(function(err) srv.log.info("stream left", { code = err and err.code }) end)
  res:write("part 1")
  for n = 2, 3 do
    srv.sleep(req.params.ms * (n == 3 and 4 or 1) / 1000)
    res:write("part " .. n)
  end
end)
app:get("/nap/:ms<int>", function(req)
  srv.log.info("naps")
  srv.sleep(req.params.ms / 1000)
  return "rested"
end)
app:get("/endless", function(_, res)
  while true do res:write(("x"):rep(4000)) end
end)
app:get("/heap", function(_, res)
  res:write(("x"):rep(200000))
  srv.log.info("heap is written")
  srv.sleep("1s")
  res:write("heap end")
end)
app:get("/events", function(_, res)
  srv.defer(function(err) srv.log.info("events left", { code = err and err.code, message = err and err.message }) end)
  local events = res:sse()
  events:send("1")
  srv.sleep("10m")
end)
app:get("/gone", function()
  srv.defer(function(err) srv.log.info("left", { code = err and err.code }) end)
  srv.log.info("begun")
  srv.sleep(30)
  srv.log.info("resumed")
end)
return app
"""


def read_until(s, end):
    """What the socket says, up to END or its end."""
    said = b""
    while end not in said:
        chunk = s.recv(65536)
        if not chunk:
            break
        said += chunk
    return said


def many(count, fn):
    """fn(i) in COUNT threads at once; the results."""
    results = [None] * count

    def run(i):
        results[i] = fn(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Held(Srv):
    """A server some of whose workers compute until the test is over: what is answered meanwhile has not waited for
    them."""

    def __init__(self, app, workers):
        self.folder = tempfile.TemporaryDirectory()
        self.release = os.path.join(self.folder.name, "release")
        self.held = []
        super().__init__(app, "--slice-warn", "100ms", "--slice-limit", "0", env={"RELEASE": self.release}, workers=workers)

    def hold(self, workers):
        self.held = one_on_each_worker(self.connect, workers)
        for s in self.held:
            s.sendall(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        for worker in workers:
            self.wait_line(r'"slice too long.*"worker":%d\b' % worker)  # it is late, and known to be

    def __exit__(self, *error):
        with open(self.release, "w", encoding="ascii"):
            pass
        for s in self.held:
            assert b"released" in s.recv(4096)
            s.close()
        super().__exit__(*error)
        self.folder.cleanup()


class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # for many connections at once
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        cls.folder = tempfile.TemporaryDirectory()
        cls.app = write_app(cls.folder.name, {"app.lua": APP})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_sigterm_answers_what_it_has_and_exits_0(self):
        with Srv(self.app, workers=2) as srv:
            answers = []
            thread = threading.Thread(target=lambda: answers.append(srv.get("/nap/400")))
            thread.start()
            srv.wait_line("naps")
            self.assertEqual(srv.stop(), 0)
            thread.join()
            self.assertEqual(answers[0][0], 200)
            self.assertEqual(answers[0][2], b"rested")

    def test_who_comes_while_the_server_drains_is_refused_at_once(self):
        for workers in (1, 4):
            release = os.path.join(self.folder.name, "release-%d" % workers)
            with Srv(self.app, env={"RELEASE": release}, workers=workers) as srv, srv.connect() as s:
                s.sendall(b"GET /until-released HTTP/1.1\r\nHost: a\r\n\r\n")
                srv.wait_line("waits for its release")
                srv.signal(signal.SIGTERM)
                srv.wait_line("draining")
                wait_until(lambda: is_refused(srv.port), "a refusal")
                with open(release, "w", encoding="ascii"):
                    pass
                self.assertIn(b"released", s.recv(4096))  # so the refusal came before the end of the drain
                self.assertEqual(srv.wait_exit(), 0)

    def test_an_idle_connection_is_ended_at_once(self):
        with Srv(self.app) as srv, srv.connect() as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"hello", s.recv(4096))
            srv.signal(signal.SIGTERM)
            self.assertEqual(s.recv(4096), b"")
            self.assertEqual(srv.wait_exit(), 0)

    def test_drain_timeout_bounds_the_end(self):
        with Srv(self.app, "--drain-timeout", "200ms") as srv, srv.connect() as s:
            s.sendall(b"GET /nap/20000 HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line("naps")
            started = time.monotonic()
            srv.signal(signal.SIGTERM)
            self.assertEqual(srv.wait_exit(), 0)
            self.assertLess(time.monotonic() - started, 10)

    def test_a_second_signal_ends_at_once(self):
        with Srv(self.app) as srv, srv.connect() as s:
            s.sendall(b"GET /nap/20000 HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line("naps")
            srv.signal(signal.SIGTERM)
            srv.wait_line("draining|drain")
            srv.signal(signal.SIGINT)
            srv.wait_exit(10)

    def test_a_handler_that_never_waits_cannot_hold_up_the_end(self):
        with Srv(self.app, "--drain-timeout", "200ms", "--slice-limit", "0", workers=2) as srv, \
                srv.connect() as s:
            s.sendall(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line(r"slice too long.*GET /loop")
            srv.signal(signal.SIGTERM)
            self.assertEqual(srv.wait_exit(), 0)
            srv.wait_line("worker is stuck")

    def test_killed_server_comes_back_on_the_same_port(self):
        with Srv(self.app) as srv:
            first = srv.children()
            os.kill(first[0], signal.SIGKILL)
            srv.wait_line("crashed")
            wait_until(lambda: srv.children() not in ([], first), "a new server")
            self.assertEqual(srv.get("/")[2], b"hello")  # waits in the listener's queue at worst
            self.assertEqual(srv.stop(), 0)

    def test_who_comes_while_a_killed_servers_app_loads_waits_for_it(self):
        loads_slowly = "local stop = os.clock() + 0.3 while os.clock() < stop do end\n" + APP
        with tempfile.TemporaryDirectory() as folder:
            app = write_app(folder, {"app.lua": loads_slowly})
            with Srv(app, workers=3) as srv:  # the watchdog takes those that load for late
                first = srv.children()
                os.kill(first[0], signal.SIGKILL)
                wait_until(lambda: srv.children() not in ([], first), "a new server")
                self.assertEqual(many(12, lambda i: srv.get("/")[2]), [b"hello"] * 12)
                self.assertEqual(srv.stop(), 0)

    def test_a_server_killed_while_it_starts_again_comes_back_too(self):
        with Srv(self.app) as srv:
            killed = set()
            for _ in range(4):
                child = wait_until(lambda: set(srv.children()) - killed, "a server").pop()
                os.kill(child, signal.SIGKILL)
                killed.add(child)
            self.assertEqual(srv.get("/")[2], b"hello")
            self.assertEqual(srv.stop(), 0)

    def test_an_app_broken_on_the_disk_is_tried_again_after_a_crash(self):
        with tempfile.TemporaryDirectory() as folder:
            app = write_app(folder, {"app.lua": APP})
            with Srv(app, "--no-watch") as srv:
                write_app(folder, {"app.lua": "return = 1"})
                os.kill(srv.children()[0], signal.SIGKILL)
                srv.wait_line(r"app\.lua:1:")
                srv.wait_line("did not start, trying again")
                write_app(folder, {"app.lua": APP})
                self.assertEqual(srv.get("/")[2], b"hello")  # waits in the listener's queue
                self.assertEqual(srv.stop(), 0)

    def test_ten_wait_at_once(self):
        with Srv(self.app) as srv:
            # None is answered before all ten are there; bench/run waits measures their time.
            self.assertEqual(many(10, lambda i: srv.get("/together/10")[2]), [b"waited"] * 10)

    def test_a_signed_cookie_outlives_a_crash_and_holds_for_all_workers(self):
        with Srv(self.app, workers=2) as srv:
            cookie = srv.get("/sign")[1]["set-cookie"].split(";")[0]
            for _ in range(10):
                self.assertEqual(srv.get("/signed", {"Cookie": cookie})[2], b"v")
            first = srv.children()
            os.kill(first[0], signal.SIGKILL)
            wait_until(lambda: srv.children() not in ([], first), "a new server")
            self.assertEqual(srv.get("/signed", {"Cookie": cookie})[2], b"v")

    def test_the_soft_limit_of_descriptors_is_raised(self):
        with Srv(self.app) as srv:
            with open("/proc/%d/limits" % srv.children()[0]) as limits:
                line = next(text for text in limits if text.startswith("Max open files"))
            soft, hard = line.split()[3:5]
            self.assertEqual(soft, hard)

    def test_memory_comes_back_after_a_burst(self):
        with Srv(self.app, "--log-level", "warn") as srv:
            process = srv.children()[0]
            with open("/proc/%d/maps" % process) as maps:
                if "libasan" in maps.read():
                    self.skipTest("ASan keeps what is freed")
            srv.get("/")
            before = resident_kb(process)
            burst = [srv.connect() for _ in range(3000)]
            for s in burst:
                s.sendall(b"GET /wait/250 HTTP/1.1\r\nHost: a\r\n\r\n")
            for s in burst:
                self.assertIn(b"waited", s.recv(4096))
            grown = resident_kb(process) - before
            for s in burst:
                s.close()
            wait_until(lambda: resident_kb(process) < before + grown * 0.7, "the memory")

    def test_thousands_of_tasks_that_find_no_memory_do_not_stop_the_worker(self):
        with Srv(self.app, "--lua-memory", "128MiB", "--log-level", "fatal") as srv:
            srv.get("/crowd")  # whatever the answer: there is one, and others get theirs
            self.assertEqual(srv.get("/")[2], b"hello")

    def test_deadline_answers_503_and_cancels_even_a_pcall_loop(self):
        with Srv(self.app) as srv:
            status, headers, body = srv.get("/for-ever")
            self.assertEqual(status, 503)
            self.assertIn(b"Service Unavailable", body)
            srv.wait_line(r"deferred")
            line = srv.wait_line(r"deadline.*|.*for-ever")
            self.assertEqual(srv.get("/")[2], b"hello")
            self.assertIn("/for-ever", srv.output)

    def test_client_gone_cancels_and_never_resumes(self):
        with Srv(self.app) as srv:
            s = srv.connect()
            s.sendall(b"GET /gone HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line("begun")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()  # a reset
            srv.wait_line("left")
            self.assertNotIn("resumed", srv.output)

    def test_a_hundred_half_closed_clients_get_all_of_their_streams(self):
        def ask(_):
            with srv.connect() as s:
                s.sendall(b"GET /parts/20 HTTP/1.1\r\nHost: a\r\n\r\n")
                s.shutdown(socket.SHUT_WR)
                return read_until(s, b"0\r\n\r\n").endswith(b"part 3\r\n0\r\n\r\n")

        with Srv(self.app) as srv:
            self.assertEqual(many(100, ask).count(True), 100)

    def test_event_streams_end_in_order_when_the_process_drains(self):
        with Srv(self.app) as srv:
            s = srv.connect()
            s.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
            read_until(s, b"data: 1")
            began = time.monotonic()
            self.assertEqual(srv.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)  # drain_timeout is 30 s
            self.assertTrue(read_until(s, b"0\r\n\r\n").endswith(b"0\r\n\r\n"))
            self.assertIn("events left", srv.output)
            self.assertRegex(srv.output, r"shutdown")
            s.close()

    def test_other_streams_have_their_drain_timeout(self):
        with Srv(self.app) as srv:
            s = srv.connect()
            s.sendall(b"GET /parts/200 HTTP/1.1\r\nHost: a\r\n\r\n")
            read_until(s, b"part 1")
            self.assertEqual(srv.stop(), 0)
            self.assertIn(b"part 3", read_until(s, b"0\r\n\r\n"))
            s.close()

    def test_a_client_that_closes_inside_a_stream_is_gone_after_half_close(self):
        with Srv(self.app) as srv:
            s = srv.connect()
            s.sendall(b"GET /parts/30000 HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"200 OK", read_until(s, b"part 1"))
            s.close()  # a FIN, as browsers send it
            srv.wait_line("stream left", patience=25)  # the next part comes after 30 s
            self.assertNotIn("resumed", srv.output)

    def test_a_stream_to_a_half_closed_client_is_finished(self):
        with Srv(self.app, "--half-close", "600ms") as srv:
            s = srv.connect()
            s.sendall(b"GET /parts/200 HTTP/1.1\r\nHost: a\r\n\r\n")
            read_until(s, b"part 1")
            s.shutdown(socket.SHUT_WR)
            self.assertTrue(read_until(s, b"0\r\n\r\n").endswith(b"part 3\r\n0\r\n\r\n"))
            s.close()

    def test_a_half_closed_client_that_reads_slowly_gets_all_of_a_stream_that_pauses(self):
        with Srv(self.app, "--half-close", "200ms") as srv:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the rest waits in the server's kernel
            s.connect(("127.0.0.1", srv.port))
            s.settimeout(30)
            s.sendall(b"GET /heap HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line("heap is written")
            s.shutdown(socket.SHUT_WR)
            time.sleep(0.1)
            self.assertTrue(read_until(s, b"0\r\n\r\n").endswith(b"heap end\r\n0\r\n\r\n"))
            s.close()

    def test_an_answer_that_is_there_when_a_busy_worker_looks_is_sent_to_a_half_closed_client(self):
        with Srv(self.app, "--half-close", "100ms") as srv:
            s = srv.connect()
            s.sendall(b"GET /nap/50 HTTP/1.1\r\nHost: a\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            srv.wait_line("naps")
            busy = threading.Thread(target=srv.get, args=("/spin/400",))  # both times end meanwhile
            busy.start()
            self.assertTrue(read_until(s, b"rested").endswith(b"rested"))
            busy.join()
            s.close()

    def test_who_asks_for_the_head_of_an_endless_stream_holds_up_nobody(self):
        with Srv(self.app, "--slice-limit", "0") as srv:  # nothing else would end it
            s = srv.connect()
            s.sendall(b"HEAD /endless HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"200 OK", read_until(s, b"\r\n\r\n"))
            for _ in range(3):
                self.assertEqual(srv.get("/spin/1")[2], b"spun")
            s.close()
            self.assertEqual(srv.stop(), 0)

    def test_a_cut_stream_of_http_1_0_does_not_look_whole(self):
        with Srv(self.app, "--half-close", "100ms") as srv:
            s = srv.connect()
            s.sendall(b"GET /parts/30000 HTTP/1.0\r\n\r\n")
            read_until(s, b"part 1")
            s.shutdown(socket.SHUT_WR)
            with self.assertRaises(ConnectionResetError):
                read_until(s, b"part 2")
            s.close()

    def test_long_slice_is_named_with_its_lua_stack(self):
        with Srv(self.app) as srv:
            self.assertEqual(srv.get("/spin/400")[2], b"spun")
            srv.wait_line(r"slice too long.*GET /spin/:ms")
            srv.wait_line(r"stack traceback.*app\.lua:\d+")

    def test_an_endless_loop_is_named_while_it_lasts(self):
        """A compiled one: it never ends, and still says where it is."""
        with Srv(self.app) as srv, srv.connect() as s:
            s.sendall(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
            srv.wait_line(r"slice too long.*GET /loop")
            srv.wait_line(r"stack traceback.*app\.lua:\d+")

    def test_neighbour_takes_the_connections_of_a_late_worker(self):
        with Held(self.app, workers=2) as srv:
            srv.hold((0,))
            self.assertEqual(many(20, lambda i: srv.get("/")[2]), [b"hello"] * 20)

    def test_four_hundred_queued_connections_are_taken_over(self):
        with Held(self.app, workers=2) as srv:
            srv.hold((0,))
            queued = [srv.connect() for _ in range(400)]
            for connection in queued:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answers = [connection.recv(4096) for connection in queued]
            for connection in queued:
                connection.close()
            self.assertTrue(all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers))

    def test_neighbours_of_neighbours_take_over_where_several_are_late(self):
        with Held(self.app, workers=4) as srv:
            srv.hold((0, 1, 2))
            self.assertEqual(many(40, lambda i: srv.get("/")[2]), [b"hello"] * 40)

    def test_a_unix_socket_is_still_served_after_all_were_late(self):
        path = os.path.join(self.folder.name, "socket")

        def connect():
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(10)
            s.connect(path)
            return s

        flags = ("--unix", path, "--slice-warn", "10s", "--log-level", "debug")
        with Srv(self.app, *flags, workers=2) as srv:
            held = one_on_each_worker(connect, (0, 1))
            for s in held:
                s.sendall(b"GET /spin/1000 HTTP/1.1\r\nHost: a\r\n\r\n")
            for s in held:
                self.assertIn(b"spun", s.recv(4096))
                s.close()
            for worker in (0, 1):
                srv.wait_line(r'"worker was late","worker":%d' % worker)
            for _ in range(4):
                with connect() as s:
                    s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    self.assertIn(b"hello", s.recv(4096))


def one_on_each_worker(connect, workers):
    """Open connections, one on each of WORKERS."""
    held = {}
    while set(held) != set(workers):
        s = connect()
        s.sendall(b"GET /worker HTTP/1.1\r\nHost: a\r\n\r\n")
        worker = int(s.recv(4096).rsplit(b":", 1)[1].rstrip(b"}"))
        if worker in workers and worker not in held:
            held[worker] = s
        else:
            s.close()
    return list(held.values())


def resident_kb(process):
    with open("/proc/%d/smaps_rollup" % process) as f:
        return int(next(line for line in f if line.startswith("Rss:")).split()[1])


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # it came in the very moment
    return False


if __name__ == "__main__":
    unittest.main()
