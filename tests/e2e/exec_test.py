"""srv.exec in a server: what a request has started ends with it, whatever ends the request."""
import os
import signal
import tempfile
import threading
import unittest

from srv_process import PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()

local SCRIPT = "echo $$ > %s; sleep 1000 & echo $! >> %s; wait"

local function command(name)
  local path = srv.root .. "/" .. name
  return { "sh", "-c", SCRIPT:format(path, path) }
end

app:get("/run/:name", { timeout = "30s" }, function(req) return assert(srv.exec(command(req.params.name))) end)
app:get("/late/:name", { timeout = "3s" }, function(req) return assert(srv.exec(command(req.params.name))) end)
app:get("/quick", function() return srv.exec({ "tr", "a-z", "A-Z" }, { input = "hello" }).stdout end)
app:get("/save", function(req)
  assert(srv.fs.mkdir "data")
  assert(srv.fs.write("data/note", "kept"))
  return srv.fs.read "data/note"
end)
app:get("/hash", function() return srv.crypto.password_hash "secret" end)
return app
"""


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def is_alive(pid):
    """A zombie counts: it was not reaped."""
    return os.path.exists("/proc/%d" % pid)


class Started:
    """The processes that one request has started: the shell, and what that has started in turn."""

    def __init__(self, app, name):
        path = os.path.join(app, name)
        wait_until(lambda: os.path.exists(path) and len(text_of(path).split()) == 2, "two processes")
        self.pids = [int(pid) for pid in text_of(path).split()]

    def await_end(self, patience=PATIENCE):
        wait_until(lambda: not any(is_alive(pid) for pid in self.pids), "the end of %s" % self.pids, patience)


class Exec(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.app = self.folder.name
        write_app(self.app, {"app.lua": APP})

    def ask(self, srv, path):
        """A request that is left open."""
        connection = srv.connect()
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode())
        self.addCleanup(connection.close)
        return connection

    def test_a_client_that_has_gone_ends_it(self):
        with Srv(self.app) as srv:
            connection = self.ask(srv, "/run/a")
            started = Started(self.app, "a")
            connection.close()
            started.await_end()
            self.assertEqual(b"HELLO", srv.get("/quick")[2])

    def test_a_deadline_ends_it(self):
        with Srv(self.app) as srv:
            self.assertEqual(503, srv.get("/late/a")[0])
            Started(self.app, "a").await_end()

    def test_the_server_s_end_is_its_end(self):
        with Srv(self.app, "--drain-timeout", "200ms") as srv:
            self.ask(srv, "/run/a")
            started = Started(self.app, "a")
            srv.signal(signal.SIGTERM)
            started.await_end()

    def test_others_are_answered_meanwhile(self):
        with Srv(self.app) as srv:
            connection = self.ask(srv, "/run/a")
            started = Started(self.app, "a")
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(srv.get("/quick"))) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual([b"HELLO"] * 20, [answer[2] for answer in answers])
            connection.close()
            started.await_end()

    def test_files_lie_in_the_app_s_folder_and_passwords_do_not_stop_the_loop(self):
        with Srv(self.app) as srv:
            self.assertEqual(b"kept", srv.get("/save")[2])
            self.assertEqual("kept", text_of(self.app, "data", "note"))
            self.assertTrue(srv.get("/hash")[2].startswith(b"$argon2id$v=19$m=19456,t=2,p=1$"))


if __name__ == "__main__":
    unittest.main()
