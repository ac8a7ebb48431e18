"""Code that loops for ever is stopped at slice_limit, and everything else on its worker goes on."""
import http.client
import os
import tempfile
import threading
import time
import unittest

from srv_process import Srv, json_lines, run_to_end, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:get("/wait", function() srv.sleep(0.2) return "waited" end)
app:get("/loop", function()
  while true do end
end)
app:get("/sum", function() local n = 0 while true do n = n + 1 end end)
app:get("/pcall", function() while true do pcall(function() while true do end end) end end)
app:get("/generator", function()
  local gen = coroutine.wrap(function() while true do coroutine.yield(1) end end)
  while true do pcall(gen) end
end)
app:get("/generator-inside", function()
  coroutine.wrap(function() srv.sleep(0) while true do end end)()
end)
app:get("/sort", function()
  while true do pcall(table.sort, { 3, 1, 2 }, function() while true do end end) end
end)
app:get("/child", function()
  local _, err = srv.all({ srv.sleep, 30 }, function() while true do end end)
  return { code = err.code }
end)
app:get("/deferred", function()
  srv.defer(function(err) srv.log.info("left", { code = err.code, message = err.message }) end)
  while true do end
end)
app:get("/page", function(req, res)
  res:type("text/plain")
  res:write("begun")
  while true do end
end)
app:get("/lazy", function() return require "endless" end)
app:get("/c", function() return (("a?"):rep(24) .. ("a"):rep(24)) end)
app:get("/pattern", function()
  local a = ("a"):rep(24)
  return tostring(a:find(("a?"):rep(24) .. a .. "b"))
end)
app:get("/broken-formatter", function() error "broken" end)
app:get("/ticks", function() return { ticks = ticks } end)
srv.global("ticks", 0)
app:every("20ms", function()
  ticks = ticks + 1
  if ticks == 2 then while true do end end
end)
app:error(function(err, req)
  if req.path == "/broken-formatter" then while true do end end
end)
return app
"""
ENDLESS = "local n = 0\nwhile true do\n  n = n + 1\nend\n"
LIMIT = ("--slice-limit", "300ms", "--slice-warn", "10s")


class Runaway(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.app = write_app(cls.folder.name, {"app.lua": APP, "endless.lua": ENDLESS})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check_503(self, srv, path):
        started = time.monotonic()
        status, headers, body = srv.get(path)
        self.assertEqual(status, 503, path)
        self.assertIn(b"Service Unavailable", body)
        self.assertNotIn(b"app.lua", body)  # where it was is for the log
        self.assertGreaterEqual(time.monotonic() - started, 0.25, path)
        self.assertEqual(srv.get("/")[2], b"hello", path)

    def test_every_kind_of_loop_is_answered_503_and_its_worker_goes_on(self):
        with Srv(self.app, *LIMIT) as srv:
            for path in ("/loop", "/sum", "/pcall", "/generator", "/generator-inside", "/sort"):
                self.check_503(srv, path)

    def test_the_log_has_route_stack_and_time(self):
        with Srv(self.app, *LIMIT) as srv:
            self.check_503(srv, "/loop")
            srv.wait_line(r"slice stopped.*GET /loop")
            line = next(line for line in json_lines(srv.output)
                        if line["msg"] == "slice stopped" and line["route"] == "GET /loop")
            self.assertIn("app.lua:7", line["stack"])
            self.assertGreaterEqual(int(line["took_ms"]), 300)
            self.assertLess(int(line["took_ms"]), 3000)
            srv.wait_line(r"request cancelled.*app\.lua:7: ran longer than slice_limit")

    def test_what_waits_on_the_same_worker_is_answered(self):
        with Srv(self.app, *LIMIT) as srv:
            answers = []

            def get(path):
                answers.append((path, srv.get(path)[0]))

            threads = [threading.Thread(target=get, args=(path,))
                       for path in ["/wait"] * 5 + ["/loop"] + ["/"] * 5]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(answers),
                             [("/", 200)] * 5 + [("/loop", 503)] + [("/wait", 200)] * 5)

    def test_a_child_that_loops_is_stopped_alone(self):
        with Srv(self.app, *LIMIT) as srv:
            self.assertEqual(srv.get("/child")[2], b'{"code":"cancelled"}')
            srv.wait_line(r"slice stopped.*GET /child")

    def test_defers_run_with_the_cause(self):
        with Srv(self.app, *LIMIT) as srv:
            self.check_503(srv, "/deferred")
            srv.wait_line(r'"left".*cancelled.*ran longer than slice_limit')

    def test_an_answer_that_is_out_is_cut(self):
        with Srv(self.app, *LIMIT) as srv:
            with self.assertRaises(http.client.IncompleteRead):
                srv.get("/page")
            self.assertEqual(srv.get("/")[2], b"hello")

    def test_an_error_handler_that_loops_is_stopped_too(self):
        with Srv(self.app, *LIMIT) as srv:
            self.assertEqual(srv.get("/broken-formatter")[0], 503)
            self.assertEqual(srv.get("/")[2], b"hello")

    def test_a_timer_comes_again_after_a_run_that_was_stopped(self):
        with Srv(self.app, *LIMIT) as srv:
            srv.wait_line("slice stopped")
            wait_until(lambda: b'"ticks":1' not in srv.get("/ticks")[2]
                       and b'"ticks":2' not in srv.get("/ticks")[2], "a third run")

    def test_a_module_that_loops_fails_to_load_and_nobody_waits_for_it(self):
        with Srv(self.app, *LIMIT) as srv:
            for _ in range(2):
                self.assertEqual(srv.get("/lazy")[0], 500)
            srv.wait_line(r"request failed.*endless\.lua:[234]: ran longer than slice_limit")
            self.assertEqual(srv.get("/")[2], b"hello")

    def test_code_in_c_is_told_of_and_goes_on(self):
        with Srv(self.app, *LIMIT) as srv:
            first = srv.children()
            answer = threading.Thread(target=lambda: srv.get("/pattern"))
            answer.start()
            srv.wait_line(r"slice cannot be stopped yet.*GET /pattern")
            answer.join()
            self.assertEqual(srv.get("/")[2], b"hello")
            self.assertEqual(srv.output.count("cannot be stopped yet"), 1)
            self.assertEqual(srv.children(), first)

    def test_without_a_limit_nothing_is_stopped(self):
        with Srv(self.app, "--slice-limit", "0", "--slice-warn", "10ms") as srv:
            with srv.connect() as s:
                s.sendall(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
                srv.wait_line("slice too long")
                time.sleep(1)  # that nothing happens has no event
                self.assertNotIn("slice stopped", srv.output)

    # --- loading ---------------------------------------------------------------------------------

    def test_an_app_that_loops_is_refused_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            app = write_app(folder, {"app.lua": ENDLESS})
            status, output = run_to_end(app, "--workers", "1", *LIMIT)
            self.assertNotEqual(status, 0)
            self.assertRegex(output, r"app\.lua:[234]: ran longer than slice_limit")

    def test_a_module_that_loops_is_refused_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            app = write_app(folder, {"app.lua": 'return require "endless"', "endless.lua": ENDLESS})
            status, output = run_to_end(app, "--workers", "1", *LIMIT)
            self.assertNotEqual(status, 0)
            self.assertRegex(output, r"endless\.lua:[234]: ran longer than slice_limit")

    def test_an_edit_that_loops_is_refused_and_the_old_app_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            app = write_app(folder, {"app.lua": APP})
            with Srv(app, *LIMIT) as srv:
                write_app(folder, {"app.lua": ENDLESS})
                srv.wait_line(r"app not reloaded.*app\.lua:[234]: ran longer than slice_limit")
                self.assertEqual(srv.get("/")[2], b"hello")
                write_app(folder, {"app.lua": APP.replace('"hello"', '"mended"')})
                srv.wait_line("app reloaded")
                self.assertEqual(srv.get("/")[2], b"mended")


if __name__ == "__main__":
    unittest.main()
