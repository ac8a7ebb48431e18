"""Answers in pieces over a real wire: trailers, early hints, events, slow clients, cuts."""
import socket
import tempfile
import time
import unittest

from srv_process import PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:use(srv.compress())
local gate = srv.event()

local function told(what)
  srv.defer(function(err) srv.log.info(what .. " left", { code = err and err.code, why = err and err.message }) end)
end

app:get("/trailers", function(_, res)
  local sum = 0
  res:trailer("X-Sum", function() return sum end)
  for i = 1, 3 do
    res:write(tostring(i))
    sum = sum + i
  end
end)
app:get("/hints", function(_, res)
  res:early_hints { Link = { "</a.css>; rel=preload", "</b.js>; rel=preload" } }
  srv.sleep "5ms"
  res:early_hints { Link = "</c.css>; rel=preload" }
  return "done"
end)
app:get("/events", function(_, res)
  told "events"
  local events = res:sse()
  gate:wait()
  events:send("opened", { id = 1 })
  srv.sleep "1h"
end)
app:get("/bye", function(_, res) res:sse():send "bye" end)
app:get("/forward/*path", function(req)
  return srv.http.forward(req, "http://" .. req.host, { path = "/" .. req.params.path })
end)
app:post("/open", function()
  gate:set()
  return "open"
end)
local written = 0
app:get("/flood", function(_, res)
  told "flood"
  while res:write(("x"):rep(64 * 1024)) do written = written + 64 * 1024 end
end)
app:get("/event-flood", function(_, res)
  told "event flood"
  local events = res:sse()
  while events:send(("x"):rep(64 * 1024)) do written = written + 64 * 1024 end
end)
app:get("/written", function() return { bytes = written } end)
app:get("/child", function(_, res)
  res:write "begin "
  srv.spawn(res.write, res, ("x"):rep(20000000))
  srv.sleep "10ms"
end)
app:get("/torn", function(_, res)
  res:write "begin "
  local _, err = srv.timeout("50ms", res.write, res, ("x"):rep(20000000))
  srv.log.info("torn", { code = err and err.code })
  res:write "end"
end)
app:get("/short", function(_, res)
  res:header("Content-Length", 4)
  return coroutine.wrap(function() coroutine.yield "abc" end)
end)
app:get("/long", function(_, res)
  res:header("Content-Length", 2)
  return coroutine.wrap(function() coroutine.yield "ab" coroutine.yield "c" end)
end)
app:get("/fails", function(_, res)
  res:write "begin"
  srv.sleep "1ms"
  error "in the middle"
end)
app:get("/none", function(_, res)
  res:status(205):write "x"
end)
return app
"""


class Streams(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        write_app(self.folder.name, {"app.lua": APP})
        self.srv = Srv(self.folder.name)

    def tearDown(self):
        self.srv.kill()
        self.folder.cleanup()

    def ask(self, line, last="Connection: close"):
        """All that comes until the connection closes."""
        with self.srv.connect() as s:
            fields = [line, "Host: a"] + ([last] if last else [])
            s.sendall(("\r\n".join(fields) + "\r\n\r\n").encode())
            return self.read(s)

    @staticmethod
    def read(s, until=None):
        data = b""
        while until is None or until not in data:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            data += piece
        return data

    def slow(self, path):
        """A connection that has asked and reads nothing, with a small window."""
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.settimeout(PATIENCE)
        s.connect(("127.0.0.1", self.srv.port))
        s.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % path.encode())
        return s

    def written(self):
        """What the flood has come to, once it is held."""
        def held():
            before = self.srv.get("/written")[2]
            time.sleep(0.05)
            return before == self.srv.get("/written")[2] and before
        return wait_until(held, "the writer is held")

    # --- trailers, hints -----------------------------------------------------------------------

    def test_trailers_stand_behind_the_last_chunk_and_are_announced(self):
        answer = self.ask("GET /trailers HTTP/1.1")
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertIn(b"\r\nTrailer: X-Sum", head)
        self.assertTrue(body.endswith(b"0\r\nX-Sum: 6\r\n\r\n"), body)

    def test_a_client_of_http_1_0_gets_no_trailers(self):
        answer = self.ask("GET /trailers HTTP/1.0", last=None)
        self.assertTrue(answer.endswith(b"\r\n\r\n123"), answer)
        self.assertNotIn(b"Trailer", answer)

    def test_hints_go_out_before_the_answer_that_each_belongs_to(self):
        with self.srv.connect() as s:
            s.sendall(b"GET /hints HTTP/1.1\r\nHost: a\r\n\r\nGET /hints HTTP/1.1\r\nHost: a\r\n"
                      b"Connection: close\r\n\r\n")
            answers = self.read(s)
        hint = (b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n"
                b"Link: </b.js>; rel=preload\r\n\r\n"
                b"HTTP/1.1 103 Early Hints\r\nLink: </c.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n")
        self.assertEqual(answers.count(hint), 2, answers)
        self.assertTrue(answers.startswith(hint))
        self.assertIn(b"done" + hint, answers)

    def test_a_client_of_http_1_0_gets_no_hints(self):
        self.assertTrue(self.ask("GET /hints HTTP/1.0", last=None).startswith(b"HTTP/1.1 200 OK\r\n"))

    # --- events ----------------------------------------------------------------------------------

    def test_the_head_of_events_is_there_before_the_first_of_them(self):
        with self.srv.connect() as s:
            s.sendall(b"GET /events HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            head = self.read(s, b"\r\n\r\n")
            self.assertIn(b"text/event-stream", head)
            self.assertIn(b"X-Accel-Buffering: no", head)
            self.assertNotIn(b"Content-Encoding", head)
            self.srv.request("POST", "/open")
            self.assertIn(b"id: 1\ndata: opened\n\n", self.read(s, b"opened\n\n"))
        self.srv.wait_line("events left.*client gone")

    def test_events_pass_a_proxy_and_compression_as_they_come(self):
        with self.srv.connect() as s:
            s.sendall(b"GET /forward/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: gzip\r\n\r\n"
                      % self.srv.port)
            self.assertIn(b"text/event-stream", self.read(s, b"\r\n\r\n"))
            self.srv.request("POST", "/open")
            self.assertIn(b"data: opened", self.read(s, b"opened\n\n"))
        self.srv.wait_line("events left")

    def test_head_gets_the_head_and_ends_the_handler(self):
        with self.srv.connect() as s:
            s.sendall(b"HEAD /events HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\n")
            answers = self.read(s, b"0\r\n\r\n")  # the connection is as good as before
        first, second = answers.split(b"\r\n\r\n", 1)
        self.assertIn(b"text/event-stream", first)
        self.assertIn(b"Cache-Control: no-cache", first)
        self.assertTrue(second.startswith(b"HTTP/1.1 200 OK\r\n"), second)
        self.srv.wait_line("events left")
        self.assertNotRegex(self.srv.output, r"\"level\":[45]0|aborted")

    def test_events_for_http_1_0_end_with_the_connection(self):
        answer = self.ask("GET /bye HTTP/1.0", last=None)
        self.assertNotIn(b"Transfer-Encoding", answer)
        self.assertTrue(answer.endswith(b"\r\n\r\ndata: bye\n\n"), answer)

    # --- slow clients ------------------------------------------------------------------------------

    def test_a_writer_waits_for_a_client_that_does_not_read(self):
        for path, left in (("/flood", "flood left"), ("/event-flood", "event flood left")):
            with self.subTest(path), self.slow(path) as s:
                held = self.written()
                self.assertEqual(held, self.srv.get("/written")[2])
                s.recv(1)
            self.srv.wait_line(left)

    def test_who_takes_nothing_for_the_time_of_writes_is_left(self):
        self.srv.kill()
        self.srv = Srv(self.folder.name, "--write-timeout", "200ms")
        with self.slow("/event-flood"):
            self.srv.wait_line("event flood left.*cancelled")

    def test_what_a_child_has_begun_to_write_goes_out_whole(self):
        with self.slow("/child") as s:
            time.sleep(0.1)  # the handler has returned, the wire is full
            answer = self.read(s)
        self.assertTrue(answer.endswith(b"0\r\n\r\n"))
        self.assertEqual(answer.count(b"x"), 20000000 + answer.split(b"\r\n\r\n")[0].count(b"x"))

    def test_a_write_that_is_called_off_half_way_cuts_the_answer(self):
        with self.slow("/torn") as s:
            self.srv.wait_line("torn.*timeout")
            answer = self.read(s)
        self.assertLess(answer.count(b"x"), 20000000)
        self.assertNotIn(b"end", answer.split(b"\r\n\r\n", 1)[1])
        self.assertFalse(answer.endswith(b"0\r\n\r\n"))

    # --- cuts --------------------------------------------------------------------------------------

    def test_a_length_that_does_not_come_true_cuts_and_is_logged(self):
        short = self.ask("GET /short HTTP/1.1", last=None)
        self.assertTrue(short.endswith(b"\r\n\r\nabc"), short)
        self.srv.wait_line("the body is shorter than its Content-Length")
        long = self.ask("GET /long HTTP/1.1", last=None)
        self.assertTrue(long.endswith(b"\r\n\r\nab"), long)
        self.srv.wait_line("the body is longer than its Content-Length")

    def test_an_error_in_the_middle_cuts_and_is_logged(self):
        answer = self.ask("GET /fails HTTP/1.1", last=None)
        self.assertTrue(answer.endswith(b"\r\n5\r\nbegin\r\n"), answer)
        self.srv.wait_line("in the middle")

    def test_a_status_without_a_body_has_none_when_it_is_written(self):
        answer = self.ask("GET /none HTTP/1.1")
        self.assertTrue(answer.startswith(b"HTTP/1.1 205 "), answer)
        self.assertIn(b"Content-Length: 0\r\n", answer)
        self.assertTrue(answer.endswith(b"\r\n\r\n"), answer)


if __name__ == "__main__":
    unittest.main()
