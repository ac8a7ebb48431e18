"""WebSockets of an app over a real wire: the conversations of tests/ws, and what clients see of ends, reloads and topics
of several workers."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from srv_process import ROOT, Srv, wait_until, write_app
from websocket_client import Refused, WebSocket

CASES = os.path.join(ROOT, "tests", "ws", "run_ws.py")

APP = """
local srv = require "srv"
local version = require "version"
local app = srv.app()

app:ws("/table", {
  open = function(ws)
    ws:subscribe "room"
    ws:send(version .. " " .. srv.worker.id)
  end,
  message = function(ws, message)
    if message == "break" then error "broken on purpose" end
    ws:publish("room", message)
    ws:send "published"
  end,
  close = function(ws, code)
    srv.sleep "50ms"
    srv.log.info("table closed", { code = code, was = ws.req.path })
  end,
})
app:ws("/linear", function(ws)
  srv.defer(function() srv.log.info "linear left" end)
  ws:send(version)
  for message in ws:messages() do ws:send(message) end
  srv.log.info("linear closed", { code = ws.close_code })
end)
app:get("/publish", function(req)
  srv.bus.publish("room", { text = req.query.text })
  return srv.worker.id .. ""
end)
app:use(srv.metrics())
return app
"""


GATEWAY = """
local srv = require "srv"
local app = srv.app()
app:get("/*path", function(req) return srv.http.forward(req, "%s") end)
return app
"""

FICKLE = """
local srv = require "srv"
local app = srv.app()
app:use(function(_, res, next)
  next()
  res:status(409)
end)
app:get("/*path", function(req) return srv.http.forward(req, "%s") end)
return app
"""


class Conversations(unittest.TestCase):
    """tests/apps/ws passes what the bare wire does (tests/ws), in both forms of a handler."""

    def hold(self, path):
        with Srv("tests/apps/ws") as srv:
            done = subprocess.run([sys.executable, CASES, "127.0.0.1", str(srv.port), "--path", path],
                                  stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("skipped", done.stdout)

    def test_a_table_of_handlers_holds_every_conversation(self):
        self.hold("/ws")

    def test_a_linear_handler_holds_every_conversation(self):
        self.hold("/linear")


    def test_a_gateway_passes_every_conversation_on(self):
        with tempfile.TemporaryDirectory() as folder, Srv("tests/apps/ws") as behind:
            write_app(folder, {"app.lua": GATEWAY % behind.url, "config.lua": 'return { log_level = "fatal" }'})
            with Srv(folder, "--no-watch") as srv:
                done = subprocess.run([sys.executable, CASES, "127.0.0.1", str(srv.port)], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("skipped", done.stdout)

    def test_a_gateway_that_answers_otherwise_forgets_the_switch(self):
        with tempfile.TemporaryDirectory() as folder, Srv("tests/apps/ws") as behind:
            write_app(folder, {"app.lua": FICKLE % behind.url, "config.lua": 'return { log_level = "fatal" }'})
            with Srv(folder, "--no-watch") as srv:
                with self.assertRaises(Refused) as refused:
                    WebSocket(srv, "/ws")
                self.assertEqual(refused.exception.args[0], 409)
                self.assertEqual(srv.stop(), 0)  # with it on its hands


class Life(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, {"app.lua": APP, "version.lua": 'return "v1"'})

    def tearDown(self):
        self.folder.cleanup()

    def test_an_edit_closes_sockets_with_1012_and_the_next_meet_the_new_version(self):
        with Srv(self.app) as srv:
            table, linear = WebSocket(srv, "/table"), WebSocket(srv, "/linear")
            self.assertEqual(table.receive(), "v1 0")
            self.assertEqual(linear.receive(), "v1")
            write_app(self.app, {"version.lua": 'return "v2"'})
            self.assertEqual(table.closed(), (1012, "service restart"))
            self.assertEqual(linear.closed(), (1012, "service restart"))
            srv.wait_line(r'"table closed".*"code":1012\b')
            srv.wait_line(r'"linear closed","reqId":"\w+","code":1012\b')
            srv.wait_line(r"linear left")
            self.assertEqual(WebSocket(srv, "/linear").receive(), "v2")

    def test_a_server_that_ends_closes_sockets_with_1001_and_lets_their_handlers_end(self):
        with Srv(self.app) as srv:
            table, linear = WebSocket(srv, "/table"), WebSocket(srv, "/linear")
            table.receive()
            linear.receive()
            srv.signal(signal.SIGTERM)
            self.assertEqual(table.closed(), (1001, "shutdown"))
            self.assertEqual(linear.closed(), (1001, "shutdown"))
            self.assertEqual(srv.wait_exit(), 0)
            srv.wait_line(r'"table closed".*"code":1001\b')
            srv.wait_line(r'"linear closed".*"code":1001\b')

    def test_a_client_that_vanishes_is_1006(self):
        with Srv(self.app) as srv:
            table = WebSocket(srv, "/table")
            table.receive()
            table.cut()
            srv.wait_line(r'"table closed".*"code":1006\b')

    def test_an_error_is_1011_and_in_the_log_with_route_and_line(self):
        with Srv(self.app) as srv:
            table = WebSocket(srv, "/table")
            table.receive()
            table.send("break")
            self.assertEqual(table.closed(), (1011, ""))
            srv.wait_line(r'"socket failed","route":"GET /table".*app\.lua:\d+: broken on purpose')
            srv.wait_line(r'"table closed".*"code":1011\b')

    def test_the_access_log_has_the_switch(self):
        with Srv(self.app) as srv:
            WebSocket(srv, "/linear").receive()
            srv.wait_line(r'"url":"/linear".*"statusCode":101')

    def test_a_page_of_another_site_is_refused(self):
        with Srv(self.app) as srv:
            with self.assertRaises(Refused) as refused:
                WebSocket(srv, "/linear", {"Origin": "https://evil.example"})
            self.assertEqual(refused.exception.args[0], 403)
            self.assertEqual(WebSocket(srv, "/linear", {"Origin": "http://localhost"}).receive(), "v1")

    def test_pages_that_are_refused_are_told_once_a_second_with_how_many_there_were(self):
        with Srv(self.app) as srv:
            refusals = 0

            def told():
                return [json.loads(line) for line in list(srv.lines) if "socket of another site refused" in line]

            def refuse_and_look():
                nonlocal refusals
                with self.assertRaises(Refused):
                    WebSocket(srv, "/linear", {"Origin": "https://evil.example"})
                refusals += 1
                return len(told()) == 2

            began = time.monotonic()
            wait_until(refuse_and_look, "the second line")
            self.assertGreater(time.monotonic() - began, 0.9)
            first, second = told()
            self.assertEqual((first["untold"], first["origin"]), (0, "https://evil.example"))
            self.assertGreater(second["untold"], 0)
            self.assertLessEqual(second["untold"], refusals - 2)

    def test_topics_reach_the_sockets_of_all_workers_but_not_who_publishes(self):
        with Srv(self.app, workers=2) as srv:
            sockets = [WebSocket(srv, "/table") for _ in range(12)]
            workers = {socket.receive() for socket in sockets}
            self.assertEqual(workers, {"v1 0", "v1 1"})
            srv.get("/publish?text=hello")
            for socket in sockets:
                self.assertEqual(socket.receive(), '{"text":"hello"}')
            sockets[0].send("from the first")
            self.assertEqual(sockets[0].receive(), "published")
            for socket in sockets[1:]:
                self.assertEqual(socket.receive(), "from the first")
            srv.get("/publish?text=last")
            self.assertEqual(sockets[0].receive(), '{"text":"last"}')

    def test_they_are_counted(self):
        with Srv(self.app) as srv:
            linear = WebSocket(srv, "/linear")
            linear.receive()
            linear.send("x")
            linear.receive()

            def numbers():
                text = srv.get("/metrics")[2].decode()
                return 'srv_websockets{worker="0"} 1\n' in text and "srv_websocket_sent_total 2\n" in text and \
                    "srv_websocket_received_total 1\n" in text
            wait_until(numbers, "the numbers of one socket")


if __name__ == "__main__":
    unittest.main()
