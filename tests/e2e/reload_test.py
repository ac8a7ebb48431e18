"""Hot reload by generation: edits go live, no request is lost, a broken app never replaces a
working one."""
import http.client
import os
import tempfile
import threading
import unittest

from srv_process import PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local answer = require "answer"
local app = srv.app()
app:get("/", function() return answer end)
app:get("/slow", function() srv.sleep(1) return answer end)
app:get("/generation", function() return { n = srv.worker.generation } end)
return app
"""


def replace(path, text):
    """As editors save: a new file under the old name."""
    with open(path + ".new~", "w", encoding="utf-8") as out:
        out.write(text)
    os.rename(path + ".new~", path)


class Load(threading.Thread):
    """Requests in a row until told to stop: keep-alive, or a fresh connection for each."""

    def __init__(self, srv, fresh):
        super().__init__(daemon=True)
        self.srv, self.fresh, self.ending = srv, fresh, threading.Event()
        self.answered, self.failed = 0, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.srv.port, timeout=PATIENCE)
        while not self.ending.is_set():
            try:
                connection.request("GET", "/")
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200 or not body.startswith(b"v"):
                    self.failed.append((answer.status, body))
                self.answered += 1
            except Exception as error:  # every kind is a lost request
                self.failed.append(repr(error))
                connection.close()
            if self.fresh:
                connection.close()
        connection.close()

    def end(self):
        self.ending.set()
        self.join()


class Reload(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, {"app.lua": APP, "answer.lua": 'return "v0"'})
        self.answer = os.path.join(self.app, "answer.lua")

    def tearDown(self):
        self.folder.cleanup()

    def wait_answer(self, srv, want):
        wait_until(lambda: srv.get("/")[2] == want, "the answer %r" % want)

    def test_an_edit_goes_live(self):
        with Srv(self.app, workers=2) as srv:
            self.assertEqual(srv.get("/")[2], b"v0")
            replace(self.answer, 'return "v1"')
            self.wait_answer(srv, b"v1")

    def test_a_request_in_hand_ends_with_the_code_it_began_with(self):
        with Srv(self.app) as srv:
            answers = []
            slow = threading.Thread(target=lambda: answers.append(srv.get("/slow")[2]))
            slow.start()
            connection = http.client.HTTPConnection("127.0.0.1", srv.port)
            connection.request("GET", "/")  # answered after the slow one was taken
            connection.getresponse().read()
            replace(self.answer, 'return "v1"')
            self.wait_answer(srv, b"v1")
            slow.join()
            self.assertEqual(answers, [b"v0"])

    def test_a_broken_app_never_replaces_a_working_one(self):
        with Srv(self.app, workers=2) as srv:
            seen = len(srv.lines)
            replace(self.answer, "return = 1")
            srv.wait_line(r"answer\.lua:1:", seen)
            self.assertEqual(srv.get("/")[2], b"v0")
            replace(self.answer, 'return "v2"')
            self.wait_answer(srv, b"v2")

    def test_an_edit_of_the_settings_says_when_they_hold(self):
        with Srv(self.app) as srv:
            write_app(self.app, {"config.lua": "return { timeout = '3s' }"})
            srv.wait_line(r"config\.lua has changed")

    def test_a_reload_that_waits_says_for_whom(self):
        write_app(self.app, {"spin.lua": "local srv = require 'srv'\nreturn function()\n"
                             "local stop = srv.monotonic() + 4\nwhile srv.monotonic() < stop do end\n"
                             "return 'spun' end",
                             "app.lua": APP.replace("return app", "app:get('/spin', require 'spin')\nreturn app")})
        with Srv(self.app, "--slice-warn", "200ms") as srv:
            spinning = threading.Thread(target=lambda: srv.get("/spin"))
            spinning.start()
            srv.wait_line("slice")
            replace(self.answer, 'return "v1"')
            srv.wait_line("the reload waits for a worker")
            spinning.join()
            self.wait_answer(srv, b"v1")

    def test_no_watch_leaves_edits_alone(self):
        with Srv(self.app, "--no-watch") as srv:
            replace(self.answer, 'return "v1"')
            self.assertEqual(srv.get("/generation")[2], b'{"n":1}')
            self.assertEqual(srv.get("/")[2], b"v0")

    def test_fifty_reloads_under_load_lose_no_request(self):
        with Srv(self.app, workers=2) as srv:
            load = [Load(srv, fresh) for fresh in (False, True, False, True)]
            for thread in load:
                thread.start()
            for n in range(1, 51):
                replace(self.answer, 'return "v%d"' % n)
                self.wait_answer(srv, b"v%d" % n)
            for thread in load:
                thread.end()
            self.assertEqual([thread.failed for thread in load], [[], [], [], []])
            self.assertGreater(sum(thread.answered for thread in load), 500)
            self.assertEqual(srv.stop(), 0)


if __name__ == "__main__":
    unittest.main()
