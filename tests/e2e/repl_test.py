"""srv repl: texts in a running server's VM, over its admin socket."""
import contextlib
import json
import os
import pty
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

from srv_process import BIN, PATIENCE, Srv, wait_until, write_app

APP = """local srv = require "srv"
local app = srv.app()
app:get("/", function() return { n = 1 } end)
app:get("/secret", function() return srv.shared "repl":get "word" or "none" end)
app:get("/stuck", function() local t = os.clock() while os.clock() - t < 20 do end return 1 end)
return app
"""


class Repl(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.runtime = os.path.join(self.temp.name, "run")
        os.mkdir(self.runtime, 0o700)
        self.env = {"XDG_RUNTIME_DIR": self.runtime}
        self.app = write_app(os.path.join(self.temp.name, "app"), {"app.lua": APP})

    def tearDown(self):
        self.temp.cleanup()

    def serve(self, *flags, workers=1):
        return Srv(self.app, *flags, env=self.env, workers=workers)

    def repl(self, *args, text=None):
        """(exit status, stdout, stderr)"""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SRV_") or k == "SRV_LUA_PATH"}
        done = subprocess.run([BIN, "repl", *args], env={**environment, **self.env}, input=text if text is not None else "",
                              text=True, timeout=2 * PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def evaluate(self, text, *args):
        return self.repl(*args, "--eval", text)

    def connect(self, srv):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(2 * PATIENCE)
        s.connect(os.path.join(self.runtime, "srv", "%d.sock" % srv.process.pid))
        return s

    def ask(self, srv, data):
        """The lines that come back, as objects."""
        with self.connect(srv) as s:
            s.sendall(data)
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
        return [json.loads(line) for line in answer.splitlines()]

    def test_values_are_shown_and_prints_come_first(self):
        with self.serve():
            self.assertEqual(self.evaluate("1 + 1, 'a\\nb', nil, { 1, 2, x = { y = true } }"),
                             (0, '2\n"a\\nb"\nnil\n{ 1, 2, x = { y = true } }\n', ""))
            self.assertEqual(self.evaluate("print('seen', 7) return 8")[1], "seen\t7\n8\n")
            self.assertEqual(self.evaluate("= 3")[1], "3\n")

    def test_print_goes_to_the_prompt_and_not_to_the_log(self):
        with self.serve() as srv:
            self.evaluate("print 'a word of mine'")
            self.assertNotIn("a word of mine", srv.output)

    def test_names_stay_and_are_the_texts_own(self):
        with self.serve():
            self.evaluate("n = 41")
            self.assertEqual(self.evaluate("n + 1")[1], "42\n")
            self.assertEqual(self.evaluate("_ + 1")[1], "43\n")
            self.assertEqual(self.evaluate("rawget(_G, 'n')")[1], "nil\n")

    def test_it_is_the_running_app(self):
        with self.serve() as srv:
            self.evaluate("srv.shared 'repl':set('word', 'tea')")
            self.assertEqual(srv.get("/secret")[2], b"tea")

    def test_texts_may_wait(self):
        with self.serve():
            self.assertEqual(self.evaluate("srv.sleep('50ms') return #srv.fs.read 'app.lua' > 10")[1], "true\n")

    def test_errors_have_a_traceback_and_status_1(self):
        with self.serve():
            status, out, err = self.evaluate("local function f() error 'boom' end f() return 1")
            self.assertEqual((status, out), (1, ""))
            self.assertIn("repl:1: boom\nstack traceback:\n", err)
            self.assertIn("in function 'f'", err)
            self.assertNotIn("srv/async", err)
            status, _, err = self.evaluate("local = 1")
            self.assertEqual((status, err.startswith("repl:1: ")), (1, True), err)
            self.assertIn("no such thing", self.evaluate("srv.error(404, 'no such thing')")[2])

    @unittest.skipIf(os.environ.get("SRV_TEST_NO_STOP"), "no signal arrives amid Lua")
    def test_what_never_ends_is_ended_and_others_are_served(self):
        with self.serve("--slice-limit", "300ms") as srv:
            status, _, err = self.evaluate("while true do end")
            self.assertEqual(status, 1)
            self.assertIn("ran longer than slice_limit", err)
            self.assertEqual(srv.get("/")[0], 200)

    def test_a_text_has_a_time_limit_and_waits_hold_up_nobody(self):
        with self.serve() as srv:
            results = []
            waiting = threading.Thread(target=lambda: results.append(self.evaluate("print 'begun' srv.sleep(3600)")))
            waiting.start()
            self.assertEqual(srv.get("/")[0], 200)
            self.assertEqual(self.evaluate("1")[1], "1\n")
            waiting.join(2 * PATIENCE)
            status, out, err = results[0]
            self.assertEqual((status, out), (1, "begun\n"))
            self.assertIn("longer than it may", err)

    def test_what_is_printed_is_bounded(self):
        with self.serve():
            _, out, _ = self.evaluate("for i = 1, 100000 do print(('x'):rep(100)) end return 'end'")
            self.assertLess(len(out), 1100000)
            self.assertTrue(out.endswith('(it prints more than is shown)\n"end"\n'), out[-200:])

    def test_what_is_shown_is_bounded(self):
        with self.serve():
            out = self.evaluate("local t = {} for i = 1, 1e5 do t[i] = { i } end t.t = t return t, ('x'):rep(1e7), _G")[1]
            self.assertLess(len(out), 400000)
            self.assertIn("more)", out)

    def test_a_worker_is_asked_by_its_number(self):
        with self.serve(workers=2):
            for worker in ("0", "1"):
                self.assertEqual(self.evaluate("srv.worker.id", "--worker", worker)[1], worker + "\n")
            status, _, err = self.evaluate("1", "--worker", "2")
            self.assertEqual(status, 1)
            self.assertIn("0 to 1", err)

    def test_a_stuck_worker_does_not_silence_the_others(self):
        with self.serve("--slice-limit", "0", workers=2) as srv:
            with srv.connect() as one:
                one.sendall(b"GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n")
                srv.wait_line(r"slice too long")
                worker = int(srv.wait_line(r"worker[\"=:]+(\d)").group(1))
                self.assertEqual(self.evaluate("srv.worker.id", "--worker", str(1 - worker))[1], "%d\n" % (1 - worker))
                status, _, err = self.evaluate("1", "--worker", str(worker))
                self.assertEqual(status, 1)
                self.assertIn("does not answer", err)

    def test_lines_are_read_until_they_are_complete(self):
        with self.serve():
            text = "function f(x)\n\n  return x * 2\nend\nf(\n21)\n:history\n:2\n1 +\n1\n"
            status, out, err = self.repl(text=text)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("42\n   1  function f(x)\n"), out)
            self.assertTrue(out.endswith("f(\n21)\n42\n2\n"), out)

    def test_on_a_terminal_it_greets_prompts_and_ends_with_ctrl_d(self):
        with self.serve() as srv:
            keyboard, terminal = pty.openpty()
            environment = {k: v for k, v in os.environ.items() if not k.startswith("SRV_") or k == "SRV_LUA_PATH"}
            process = subprocess.Popen([BIN, "repl"], env={**environment, **self.env, "NO_COLOR": "1"}, stdin=terminal,
                                       stdout=terminal, stderr=terminal, start_new_session=True)
            os.close(terminal)
            seen = b""

            def wait_for(text):
                nonlocal seen
                while text not in seen:
                    self.assertTrue(select.select([keyboard], [], [], PATIENCE)[0], seen)
                    seen += os.read(keyboard, 4096)
                seen = seen[seen.index(text) + len(text):]

            try:
                wait_for(b"process %d, worker 0 of 1" % srv.process.pid)
                wait_for(b"\n0> ")
                os.write(keyboard, b"6 *\n")
                wait_for(b"...> ")
                os.write(keyboard, b"7\n")
                wait_for(b"42\r\n0> ")
                os.write(keyboard, b"no_such_thing()\n")
                wait_for(b"repl:1: attempt to call")
                wait_for(b"0> ")
                os.write(keyboard, b"\x04")
                self.assertEqual(process.wait(PATIENCE), 0)
            finally:
                process.kill()
                process.wait()
                os.close(keyboard)

    def test_a_failed_line_of_a_script_gives_status_1_and_the_rest_runs(self):
        with self.serve():
            status, out, err = self.repl(text="error 'x'\n2\n:nope\n")
            self.assertEqual((status, out), (1, "2\n"))
            self.assertIn(":nope is no command", err)

    def test_lines_that_begin_with_dots_arrive(self):
        with self.serve():
            self.assertEqual(self.evaluate("[[\n.\n..x\n]]")[1], '".\\n..x\\n"\n')

    def test_the_only_server_is_found_and_several_are_listed(self):
        status, _, err = self.evaluate("1")
        self.assertEqual(status, 1)
        self.assertIn("no server of yours runs", err)
        with self.serve() as one, self.serve() as other:
            status, _, err = self.evaluate("1")
            self.assertEqual(status, 1)
            for srv in (one, other):
                self.assertIn("srv repl %d" % srv.process.pid, err)
            self.assertEqual(self.evaluate("2", str(other.process.pid))[1], "2\n")

    def test_wrong_lines_are_told(self):
        self.assertEqual(self.repl("x")[0], 1)
        self.assertEqual(self.repl("1", "2")[0], 2)
        self.assertEqual(self.repl("--wrker", "2")[0], 2)
        status, out, _ = self.repl("--help")
        self.assertEqual(status, 0)
        self.assertIn("--worker", out)

    def test_names_go_with_the_version_of_the_app(self):
        with self.serve() as srv:
            self.evaluate("n = 1")
            write_app(self.app, {"app.lua": APP.replace("n = 1", "n = 2")})
            srv.wait_line(r"app reloaded")
            self.assertEqual(self.evaluate("n")[1], "nil\n")

    def test_a_text_ends_with_the_version_that_it_runs_in(self):
        with self.serve() as srv, self.connect(srv) as s:
            s.sendall(b"eval 0\nprint 'begun' srv.sleep(3600)\n.\n")
            answers = s.makefile("rb")
            self.assertEqual(json.loads(answers.readline()), {"print": "begun"})
            write_app(self.app, {"app.lua": APP.replace("n = 1", "n = 2")})
            self.assertIn("version of the app", json.loads(answers.readline())["error"])

    def test_a_client_that_leaves_ends_its_text(self):
        with self.serve() as srv:
            with self.connect(srv) as s:
                s.sendall(b"eval 0\nsrv.defer(function() srv.log.warn 'it was ended' end) print 'begun' srv.sleep(3600)\n.\n")
                self.assertIn(b"begun", s.recv(1000))
            srv.wait_line("it was ended")

    def test_a_printer_that_outlives_its_text_prints_nowhere(self):
        with self.serve():
            self.evaluate("old = print")
            self.assertEqual(self.evaluate("old 'x' collectgarbage() return 1")[1], "1\n")

    def test_clients_that_leave_at_any_moment_do_no_harm(self):
        with self.serve(workers=2) as srv:
            for cut in (b"", b"eval", b"eval 0\n", b"eval 1\nreturn 1\n", b"eval 1\nprint(1) srv.sleep(9)\n.\n",
                        b"eval 0\nfor i = 1, 1e4 do print(i) end\n.\nmore\n.\n"):
                for _ in range(5):
                    # While it has yet to see that others left, a new one may be one too many.
                    with self.connect(srv) as s, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        s.sendall(cut)
            wait_until(lambda: self.evaluate("1 + 1")[1] == "2\n", "an answer")
            self.assertEqual(srv.stop(), 0)

    def test_one_client_too_many_is_told(self):
        with self.serve() as srv, contextlib.ExitStack() as stack:
            for _ in range(8):
                s = stack.enter_context(self.connect(srv))
                s.sendall(b"eval 0\nprint 'begun' srv.sleep(3600)\n.\n")
                self.assertIn(b"begun", s.recv(1000))
            with self.connect(srv) as s:
                self.assertIn("try again", json.loads(s.makefile("rb").readline())["error"])
            for which in ([], [str(srv.process.pid)]):
                status, _, fault = self.evaluate("1", *which)
                self.assertEqual(status, 1)
                self.assertIn("try again", fault)

    def test_a_server_that_ends_amid_a_text_ends_in_time(self):
        with self.serve() as srv, self.connect(srv) as s:
            s.sendall(b"eval 0\nprint 'begun' srv.sleep(3600)\n.\n")
            self.assertIn(b"begun", s.recv(1000))
            self.assertEqual(srv.stop(), 0)

    def test_wrong_commands_of_the_socket_are_refused(self):
        with self.serve() as srv:
            for line in (b"eval x\n", b"eval -1\n", b"eval 99999999999999999999\n", b"eval 1 2\n", b"nope\n"):
                self.assertIn("error", self.ask(srv, line)[0], line)
            self.assertEqual(self.ask(srv, b"eval\n1\n.\n"), [{"values": ["1"]}])
            many = b"eval\n" + (b"-- " + b"x" * 1000 + b"\n") * 3000 + b".\n"
            self.assertIn("may have", self.ask(srv, many)[0]["error"])

    def test_a_folder_that_is_not_the_users_alone_costs_the_socket_and_not_the_server(self):
        os.mkdir(os.path.join(self.runtime, "srv"))
        os.chmod(os.path.join(self.runtime, "srv"), 0o777)
        self.is_served_without_a_socket("is not a folder of this user's alone")

    def test_a_folder_that_cannot_be_made_costs_the_socket_and_not_the_server(self):
        os.rmdir(self.runtime)
        self.is_served_without_a_socket("No such file or directory")

    def is_served_without_a_socket(self, why):
        with self.serve() as srv:
            srv.wait_line("no admin socket")
            self.assertIn(why, srv.output)
            self.assertEqual(srv.get("/")[0], 200)
            status, _, said = self.evaluate("1")
            self.assertEqual(status, 1, said)

    def test_sockets_of_servers_that_were_killed_are_swept_by_the_next(self):
        folder = os.path.join(self.runtime, "srv")
        os.mkdir(folder, 0o700)
        ended = subprocess.Popen(["true"])
        ended.wait()
        for name in ("%d.sock" % ended.pid, "%d.sock" % os.getpid(), "notes.txt"):
            open(os.path.join(folder, name), "w").close()
        with self.serve() as srv:
            self.assertEqual(self.evaluate("1", str(srv.process.pid))[1], "1\n")
            self.assertEqual(sorted(os.listdir(folder)), sorted(
                ["%d.sock" % os.getpid(), "%d.sock" % srv.process.pid, "notes.txt"]))

    def test_a_folder_in_tmp_that_others_may_change_is_not_asked(self):
        self.runtime = tempfile.mkdtemp(prefix="srv-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.runtime)
        self.env = {"XDG_RUNTIME_DIR": self.runtime}
        with self.serve() as srv:
            pid = str(srv.process.pid)
            self.assertEqual(self.evaluate("1", pid)[1], "1\n")
            os.chmod(os.path.join(self.runtime, "srv"), 0o777)
            status, _, err = self.evaluate("1", pid)
            self.assertEqual(status, 1)
            self.assertIn("is not a folder of this user's alone", err)

    def test_without_admin_there_is_nobody_to_ask(self):
        with self.serve("--no-admin") as srv:
            status, _, err = self.evaluate("1", str(srv.process.pid))
            self.assertEqual(status, 1)
            self.assertIn("--no-admin", err)


if __name__ == "__main__":
    unittest.main()
