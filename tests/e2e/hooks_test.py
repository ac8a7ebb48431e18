"""Hooks of a real server: start and stop in each worker and version, abort when a client leaves."""
import os
import re
import socket
import tempfile
import unittest

from srv_process import Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:hook("start", function() srv.log.info("starts", { version = %d, worker = srv.worker.id }) end)
app:hook("start", function() srv.log.info("starts once", { version = %d }) end, { once = true })
app:hook("stop", function() srv.log.info("stops", { version = %d, worker = srv.worker.id }) end)
app:hook("stop", function() srv.log.info("stops once", { version = %d }) end, { once = true })
app:hook("abort", function(req) srv.log.info("abort hook", { path = req.path }) end)
app:hook("sent", function(req, res) srv.log.info("sent hook", { path = req.path, status = res:status() }) end)
app:get("/", function() return "version %d" end)
app:get("/ticks", function(_, res)
  while true do
    res:write("tick")
    srv.sleep("10ms")
  end
end)
app:get("/file", function(_, res) return res:file "large.bin" end)
return app
"""


def app_text(version):
    return APP.replace("%d", str(version))


class HooksTest(unittest.TestCase):
    def count(self, srv, text):
        return len(re.findall(text, srv.output))

    def wait_count(self, srv, text, number):
        wait_until(lambda: self.count(srv, text) >= number, "%d x %s" % (number, text))
        self.assertEqual(self.count(srv, text), number)

    def test_start_and_stop_run_in_each_worker_and_version_and_once_in_one(self):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"app.lua": app_text(1)})
            with Srv(folder, workers=2) as srv:
                self.wait_count(srv, '"starts","version":1', 2)
                self.wait_count(srv, '"starts once","version":1', 1)
                write_app(folder, {"app.lua": app_text(2)})
                wait_until(lambda: srv.get("/")[2] == b"version 2", "the second version")
                self.wait_count(srv, '"starts","version":2', 2)
                self.wait_count(srv, '"starts once","version":2', 1)
                self.wait_count(srv, '"stops","version":1', 2)
                self.wait_count(srv, '"stops once","version":1', 1)
                self.assertEqual(self.count(srv, '"stops","version":2'), 0)
                srv.stop()
                self.wait_count(srv, '"stops","version":2', 2)
                self.wait_count(srv, '"stops once","version":2', 1)

    def test_a_client_that_leaves_is_told_of_by_abort_and_not_by_sent(self):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"app.lua": app_text(1)})
            with Srv(folder) as srv:
                with socket.create_connection(("127.0.0.1", srv.port)) as client:
                    client.sendall(b"GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertIn(b"200", client.recv(4096))
                srv.wait_line('"abort hook".*"path":"/ticks"')
                srv.get("/")
                srv.wait_line('"sent hook".*"path":"/","status":200')
                self.assertNotIn('"sent hook","path":"/ticks"', srv.output)

    def test_a_file_that_was_not_taken_whole_is_aborted_also_in_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"app.lua": app_text(1)})
            with open(os.path.join(folder, "large.bin"), "wb") as large:
                large.truncate(64 * 1024 * 1024)  # more than sockets hold
            with Srv(folder) as srv:
                with socket.create_connection(("127.0.0.1", srv.port)) as client:
                    client.sendall(b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertIn(b"200", client.recv(4096))
                srv.wait_line('"abort hook".*"path":"/file"')
                srv.wait_line('"url":"/file".*"request aborted"')
                self.assertNotIn('"sent hook","path":"/file"', srv.output)


if __name__ == "__main__":
    unittest.main()
