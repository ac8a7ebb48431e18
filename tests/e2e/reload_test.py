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
app:get("/slow", function() srv.log.info "the slow one is taken" srv.sleep(1) return answer end)
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
            srv.wait_line("the slow one is taken")
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

    def test_event_streams_end_with_their_generation_and_come_back_to_the_next(self):
        write_app(self.app, {"app.lua": APP.replace("return app", "app:get('/events', function(_, res)\n"
                             "local events = res:sse()\nevents:send(answer)\nsrv.sleep('10m') end)\nreturn app")})
        with Srv(self.app, workers=2) as srv:
            replace_at = threading.Timer(0.3, replace, (self.answer, 'return "v1"'))
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=10)
            connection.request("GET", "/events")
            stream = connection.getresponse()
            self.assertEqual(stream.readline(), b"data: v0\n")
            replace_at.start()
            stream.read()  # whole: raises where the chunks have no end
            connection.request("GET", "/events")  # the connection is as good as before
            self.assertEqual(connection.getresponse().readline(), b"data: v1\n")
            connection.close()
            srv.wait_line("app reloaded")

    def test_what_the_app_writes_and_serves_is_no_edit(self):
        app = ("local srv = require 'srv'\nlocal app = srv.app()\napp:static('/', 'public')\n"
               "app:get('/generation', function() return { n = srv.worker.generation } end)\n"
               "app:get('/css', function(_, res) res:render('page') end)\n"
               "app:post('/write', function(req) local to = req.query.to\n"
               "assert(srv.fs.mkdir(to:match('^(.+)/')))\nassert(srv.fs.write(to, 'x'))\nreturn 'ok' end)\n"
               "return app")
        write_app(self.app, {"app.lua": app, "public/a.css": "a{}", "data/old.txt": "x",
                             "views/page.html": "{{ asset '/a.css' }}"})
        with Srv(self.app) as srv:
            before = srv.get("/css")[2]
            self.assertRegex(before, rb"^/a\.css\?v=")
            for path in ("data/old.txt", "data/new/note.txt", "uploads/a.jpg", "tmp/x", "public/i.png"):
                self.assertEqual(srv.request("POST", "/write?to=" + path)[2], b"ok", srv.output)
            replace(os.path.join(self.app, "public/a.css"), "b{}")
            self.assertEqual(srv.get("/a.css")[2], b"b{}")
            self.assertNotEqual(srv.get("/css")[2], before)
            os.rename(os.path.join(self.app, "uploads"), os.path.join(self.app, "data/uploads"))
            seen = len(srv.lines)
            replace(os.path.join(self.app, "views/page.html"), "new")
            srv.wait_line("app reloaded", seen)
            self.assertEqual(srv.get("/generation")[2], b'{"n":2}')

    def test_what_the_app_names_is_an_edit(self):
        app = ("local srv = require 'srv'\nlocal app = srv.app()\nsrv.watch('locales')\n"
               "srv.sqlite('sqlite::memory:', { migrations = 'changes' })\n"
               "app:get('/', function() return 'ok' end)\nreturn app")
        write_app(self.app, {"app.lua": app, "locales/de.json": "{}", "changes/001_a.sql": "create table a (x)"})
        with Srv(self.app) as srv:
            for path, text in (("locales/de.json", "[]"), ("locales/en.json", "[]"),
                               ("changes/002_b.sql", "create table b (x)")):
                seen = len(srv.lines)
                replace(os.path.join(self.app, path), text)
                srv.wait_line("app reloaded", seen)

    def test_code_that_moves_away_is_an_edit(self):
        write_app(self.app, {"app.lua": APP.replace('"answer"', '"lib.answer"'), "lib/answer.lua": 'return "v0"'})
        with Srv(self.app) as srv, tempfile.TemporaryDirectory() as elsewhere:
            os.rename(os.path.join(self.app, "lib"), os.path.join(elsewhere, "lib"))
            srv.wait_line("not reloaded.*lib.answer")
            self.assertEqual(srv.get("/")[2], b"v0")

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
