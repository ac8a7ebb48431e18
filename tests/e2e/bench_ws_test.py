"""srv bench with messages: a server that echoes them, one that does not, and none at all."""
import tempfile
import unittest

from bench_test import BenchCase, bench
from certificates import Certificates
from srv_process import Srv, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:ws("/echo", { message = function(ws, message, kind) ws:send(message) end, limit = "1MiB" })
app:ws("/lie", { message = function(ws, message) ws:send(message .. "!") end })
app:ws("/twice", { message = function(ws, message) ws:send(message) ws:send(message) end })
app:ws("/leave", { message = function(ws) ws:close(1000, "enough") end })
app:ws("/silent", { message = function() end })
app:get("/", function() return "hello" end)
return app
"""


class Messages(BenchCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        write_app(folder.name, {"app.lua": APP})
        cls.certs = Certificates(folder.name + "/certs")
        cls.srv = Srv(folder.name)
        cls.addClassCleanup(cls.srv.kill)
        cls.secure = Srv(folder.name, "--cert", cls.certs.cert, "--key", cls.certs.key)
        cls.addClassCleanup(cls.secure.kill)

    def url(self, path):
        return "ws://127.0.0.1:%d%s" % (self.srv.port, path)

    def test_each_message_comes_back(self):
        for size, pipelining in ((1, 1), (126, 1), (5, 20), (70000, 3)):
            result = self.load("-c", 5, "-a", 500, "-p", pipelining, "-w", 2, "-b", "x" * size, self.url("/echo"))
            self.assertEqual((result["answered"], result["mismatches"], result["errors"]), (500, 0, 0))
            self.assertEqual((result["protocol"], result["connections_made"]), ("WebSocket", 5))
            self.assertEqual(result["latency"]["totalCount"], 500)

    def test_messages_can_have_ids_and_come_at_a_rate(self):
        result = self.load("-c", 2, "-a", 40, "-R", 400, "-I", "-b", "[<id>]", self.url("/echo"))
        self.assertEqual((result["answered"], result["errors"]), (40, 0))
        self.assertGreaterEqual(result["duration"], 0.09)

    def test_over_tls_too(self):
        url = "wss://localhost:%d/echo" % self.secure.port
        result = self.load("-c", 3, "-a", 300, "--ca", self.certs.ca, url)
        self.assertEqual((result["answered"], result["mismatches"]), (300, 0))
        self.assertIn("not signed by a known authority", bench("-d", 60, url).err)

    def test_what_is_no_echo_is_a_mismatch_and_what_nobody_asked_for_is_counted(self):
        self.assertEqual(self.load("-c", 2, "-a", 20, self.url("/lie"))["mismatches"], 20)
        self.assertGreaterEqual(self.load("-c", 1, "-a", 5, "-d", 1, self.url("/twice"))["answered"], 5)

    def test_a_server_that_leaves_or_keeps_silent_is_a_fault(self):
        result = self.load("-c", 2, "-a", 4, self.url("/leave"), status=1)
        self.assertEqual(result["faults"]["closed"], 4)
        result = self.load("-c", 1, "-a", 1, "-t", "200ms", self.url("/silent"), status=1)
        self.assertEqual(result["faults"]["timeout"], 1)

    def test_a_server_without_websocket_is_an_error_at_once(self):
        for path, status in (("/", 200), ("/none", 404)):
            done = bench("-d", 60, self.url(path))
            self.assertEqual(done.status, 1)
            self.assertIn("answers %d instead of switching to WebSocket" % status, done.err)

    def test_what_does_not_go_with_messages_is_refused(self):
        for words, args in (("do not go into one load", ["http://127.0.0.1:1/"]), ("--method are not for that", ["-m", "PUT"])):
            done = bench(*args, self.url("/echo"))
            self.assertEqual(done.status, 1)
            self.assertIn(words, done.err)


if __name__ == "__main__":
    unittest.main()
