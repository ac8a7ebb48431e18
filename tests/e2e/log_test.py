"""The log as an operator meets it: a line for each request, rotation, a disk that is full."""
import json
import os
import re
import signal
import tempfile
import unittest

from srv_process import Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:get("/say/:word", function(req)
  srv.log.info("said", { word = req.params.word, password = "geheim", nested = { api_token = "geheim" } })
  print("printed", 1)
  return { id = req.id }
end)
app:get("/fails", function() error("the handler's own fault") end)
return app
"""


class Log(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.app = write_app(os.path.join(folder.name, "app"), {"app.lua": APP})
        self.path = os.path.join(folder.name, "srv.log")

    def serve(self, *flags):
        return Srv(self.app, "--log-format", "json", *flags)

    def lines(self, path=None):
        """The log file's lines, each of which must be a whole JSON object; one that is being written is none yet."""
        with open(path or self.path, "rb") as file:
            return [json.loads(line) for line in file.read().split(b"\n")[:-1]]

    def await_line(self, path=None, **fields):
        """The first line with these fields, once it is there."""
        def find():
            if os.path.exists(path or self.path):
                return next((line for line in self.lines(path)
                             if all(line.get(k) == v for k, v in fields.items())), None)
        return wait_until(find, "a line with %r" % fields)

    def test_each_request_is_a_line_in_pinos_fields(self):
        with self.serve("--log-file", self.path) as srv:
            srv.get("/?a=1")
            line = self.await_line(msg="request completed")
            srv.get("/nothing")
            other = wait_until(lambda: next((l for l in self.lines() if l.get("res", {}).get("statusCode") == 404),
                                            None), "the line of the 404")
            self.assertEqual(srv.stop(), 0)
        self.assertEqual(line["level"], 30)
        self.assertEqual(line["req"]["method"], "GET")
        self.assertEqual(line["req"]["url"], "/?a=1")
        self.assertEqual(line["req"]["protocol"], "HTTP/1.1")
        self.assertEqual(line["req"]["remoteAddress"], "127.0.0.1")
        self.assertEqual(line["res"], {"statusCode": 200, "contentLength": 5})
        self.assertLess(line["responseTime"], 30000)
        self.assertNotEqual(line["reqId"], other["reqId"])

    def test_lines_of_a_handler_bear_the_requests_id_and_mask_secrets(self):
        with self.serve("--log-file", self.path) as srv:
            identity = json.loads(srv.get("/say/hello")[2])["id"]
            said = self.await_line(msg="said")
            printed = self.await_line(msg="printed\t1")
            finished = self.await_line(msg="request completed")
            self.assertEqual(srv.stop(), 0)
        self.assertEqual([said["reqId"], printed["reqId"], finished["reqId"]], [identity] * 3)
        self.assertEqual(said["word"], "hello")
        self.assertEqual(said["password"], "[masked]")
        self.assertEqual(said["nested"], {"api_token": "[masked]"})
        with open(self.path, encoding="utf-8") as file:
            self.assertNotIn("geheim", file.read())

    def test_an_error_is_a_line_with_its_traceback_and_the_requests_id(self):
        with self.serve("--log-file", self.path) as srv:
            self.assertEqual(srv.get("/fails")[0], 500)
            finished = wait_until(lambda: next((l for l in self.lines() if l.get("res")), None), "the request's line")
            error = wait_until(lambda: next((l for l in self.lines() if l["level"] == 50), None), "the error's line")
            self.assertEqual(srv.stop(), 0)
        self.assertEqual(finished["res"]["statusCode"], 500)
        self.assertIn("the handler's own fault", json.dumps(error))
        self.assertRegex(json.dumps(error), r"app\.lua:10")
        self.assertEqual(error["reqId"], finished["reqId"])

    def test_rotation_by_sigusr1_loses_no_line(self):
        moved = self.path + ".1"
        with self.serve("--log-file", self.path) as srv:
            srv.get("/say/before")
            self.await_line(msg="said", word="before")
            os.rename(self.path, moved)
            srv.signal(signal.SIGUSR1)
            wait_until(lambda: os.path.exists(self.path), "the new file")
            srv.get("/say/after")
            self.await_line(msg="said", word="after")
            self.assertEqual(srv.stop(), 0)
        words = [line["word"] for path in (moved, self.path) for line in self.lines(path) if line.get("word")]
        self.assertEqual(words, ["before", "after"])

    def test_a_full_disk_hinders_no_request(self):
        with self.serve("--log-file", "/dev/full") as srv:
            for _ in range(200):
                self.assertEqual(srv.get("/")[0], 200)
            self.assertEqual(srv.stop(), 0)
            self.assertRegex(srv.output, r"log: cannot write to /dev/full: No space left")

    def test_what_was_logged_before_the_end_is_written(self):
        with self.serve("--log-file", self.path) as srv:
            for i in range(50):
                srv.get("/say/%d" % i)
            self.assertEqual(srv.stop(), 0)
        self.assertEqual([l["word"] for l in self.lines() if l["msg"] == "said"], [str(i) for i in range(50)])

    def test_the_level_is_a_setting_and_a_pretty_line_is_for_people(self):
        with Srv(self.app, "--log-format", "pretty", "--log-level", "info", "--log-file", self.path) as srv:
            srv.get("/say/hi")
            text = wait_until(lambda: re.search(r"GET /say/hi 200 .*\n", self.read()), "the request's line")
            self.assertEqual(srv.stop(), 0)
        self.assertRegex(text.group(), r"GET /say/hi 200 \d+\.\d{3} ms \d+ B")
        self.assertRegex(self.read(), r"\d\d:\d\d:\d\d\.\d{3} INFO  said .*word=hi")
        os.unlink(self.path)
        with Srv(self.app, "--log-level", "warn", "--log-file", self.path) as srv:
            srv.get("/say/hi")
            self.assertEqual(srv.stop(), 0)
        self.assertNotIn("said", self.read())

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()
