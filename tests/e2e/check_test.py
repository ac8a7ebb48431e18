"""srv check and srv routes: what they find, where, and with which exit status."""
import glob
import json
import os
import shutil
import tempfile
import unittest

from srv_process import ROOT, run_to_end, write_app

GOOD = """local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
return app
"""


class Check(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.app = self.temp.name

    def tearDown(self):
        self.temp.cleanup()

    def check(self, files, *flags, env=None):
        """Writes FILES, checks: {(file, line, code): finding}."""
        write_app(self.app, {"app.lua": GOOD, **files})
        status, text = run_to_end("check", self.app, "--json", *flags, env=env)
        findings = json.loads(text)["findings"]
        self.assertEqual(status, 1 if findings else 0, text)
        return {(one["file"], one.get("line"), one["code"]): one for one in findings}

    def test_a_clean_app_has_no_findings(self):
        write_app(self.app, {"app.lua": GOOD})
        status, text = run_to_end("check", self.app)
        self.assertEqual((status, text.splitlines()[0][:23]), (0, "nothing found in 1 file"), text)

    def test_apps_of_the_repository_are_clean(self):
        for app in sorted(glob.glob(os.path.join(ROOT, "apps", "*", "app.lua"))):
            status, text = run_to_end("check", os.path.dirname(app))
            self.assertEqual(status, 0, text)

    def test_a_finding_has_its_place_and_the_way_out(self):
        write_app(self.app, {"app.lua": GOOD.replace('return "hello"', 'return io.open("a"):read "*a"')})
        status, text = run_to_end("check", self.app)
        self.assertEqual(status, 1)
        self.assertRegex(text, r"app\.lua:3: io\.open holds up the worker, .*\(blocking\)\n    srv\.fs\.read")
        self.assertIn("1 finding in 1 file\n", text)

    def test_files_that_do_not_compile_are_found_though_nobody_loads_them(self):
        found = self.check({"a.lua": "local x = = 1\n", "spec/b_spec.lua": "\nit('x' function() end)\n"})
        self.assertIn(("a.lua", 1, "syntax"), found)
        self.assertIn(("spec/b_spec.lua", 2, "syntax"), found)

    def test_a_folder_that_cannot_be_read_is_a_finding(self):
        deep = "/".join("d" * 20) + "/x.lua"
        self.assertIn(("d", None, "folder"), self.check({deep: "return 1\n"}))

    def test_links_that_lead_back_are_passed_over(self):
        write_app(self.app, {"lib/a.lua": "return 1\n"})
        os.symlink("..", os.path.join(self.app, "lib", "up"))
        os.symlink(".", os.path.join(self.app, "here"))
        os.symlink("/nowhere", os.path.join(self.app, "b.lua"))
        found = self.check({"app.lua": 'require "lib.a"\n' + GOOD, "odd.lua": "return 1\n"})
        self.assertEqual(list(found), [("odd.lua", None, "unused_file")])

    def test_an_app_that_never_ends_to_load_is_ended(self):
        write_app(self.app, {"app.lua": "while true do end\n"})
        for command in "check", "routes":
            status, text = run_to_end(command, self.app, env={"SRV_SLICE_LIMIT": "200ms"})
            self.assertEqual(status, 1, text)
            self.assertIn("app.lua:1: ran longer than slice_limit", text)

    def test_undeclared_globals_are_found(self):
        found = self.check({"app.lua": GOOD.replace('return "hello"', "count = 1\n return nme")})
        self.assertIn('local count', found[("app.lua", 3, "global_set")]["fix"])
        self.assertIn('"nme"', found[("app.lua", 4, "global_read")]["message"])

    def test_declared_globals_are_none(self):
        declared = 'srv.global("counter", 0)\nlocal app = srv.app()'
        app = GOOD.replace("local app = srv.app()", declared).replace('return "hello"', "counter = counter + 1 return counter")
        self.assertEqual(self.check({"app.lua": app}, "--no-luacheck"), {})

    def test_specs_have_busteds_globals(self):
        self.assertEqual(self.check({"spec/a_spec.lua": "describe('a', function() it('b', function() assert.equal(1, 1) end) end)"}), {})

    def test_blocking_calls_are_found_in_functions_and_not_at_load(self):
        at_load = GOOD.replace("local app", 'local file = io.open "README.md"\nif file then file:close() end\nlocal app')
        self.assertEqual(self.check({"app.lua": at_load}), {})
        for call, way in (('io.popen "ls"', "srv.exec"), ('os.execute "ls"', "srv.exec"), ('os.remove "a"', "srv.fs.remove"),
                          ("io.read()", "req"), ('io.lines "a"', "srv.fs.open"), ("os.exit()", "app:stop")):
            found = self.check({"app.lua": GOOD.replace('return "hello"', "return " + call)})
            self.assertIn(way, found[("app.lua", 3, "blocking")]["fix"], call)

    def test_a_blocking_call_under_a_name_of_its_own_is_found(self):
        found = self.check({"app.lua": GOOD.replace("local app =", "local open, io = io.open, io\nlocal app =").replace(
            'return "hello"', "return open, io.popen")})
        self.assertIn(("app.lua", 2, "blocking"), found)
        self.assertIn(("app.lua", 4, "blocking"), found)

    def test_modules_that_block_are_found_and_the_apps_own_are_not(self):
        self.check({"app.lua": GOOD.replace("return app", 'function app.x() return require "socket.http" end\nreturn app')})
        found = self.check({"app.lua": GOOD.replace('return "hello"', 'return require "socket.http"')})
        self.assertIn("srv.http", found[("app.lua", 3, "blocking")]["fix"])
        own = {"app.lua": GOOD.replace('return "hello"', 'return require "redis"'), "redis.lua": "return 1\n"}
        self.assertEqual(self.check(own), {})

    def test_a_line_may_say_that_it_is_meant_so(self):
        app = GOOD.replace('return "hello" end)', "return os.tmpname() end) -- check: ignore")
        self.assertEqual(self.check({"app.lua": app}), {})

    def test_parts_that_srv_has_not_are_found(self):
        found = self.check({"app.lua": GOOD.replace('return "hello"', "return srv.slep(1)")})
        self.assertIn('did you mean "sleep"', found[("app.lua", 3, "no_part")]["message"])

    def test_what_raises_at_load_is_found_with_its_place(self):
        found = self.check({"app.lua": GOOD.replace('get("/"', 'post("/", { body = { a = "string ..x" } }')})
        self.assertIn("..x", found[("app.lua", 3, "load")]["message"])
        found = self.check({"app.lua": GOOD.replace("return app", 'local limit = srv.env("NO_SUCH_LIMIT", "integer")\nreturn app')},
                           "--no-luacheck")
        self.assertIn("NO_SUCH_LIMIT is required", found[("app.lua", 4, "load")]["message"])

    def test_a_module_that_raises_is_blamed_where_it_is(self):
        found = self.check({"app.lua": GOOD.replace("return app", 'require "routes.a"\nreturn app'),
                            "routes/a.lua": "local t = nil\nreturn t.x\n"}, "--no-luacheck")
        self.assertIn(("routes/a.lua", 2, "load"), found)

    def test_an_app_that_loops_for_ever_is_ended_with_its_place(self):
        write_app(self.app, {"app.lua": "local n = 0\nwhile true do n = n + 1 end\n"})
        for command in ("check", "routes"):
            status, text = run_to_end(command, self.app, env={"SRV_SLICE_LIMIT": "200ms"})
            self.assertEqual(status, 1)
            self.assertIn("app.lua:2: ran longer than slice_limit", text)

    def test_duplicates_and_folders_that_are_missing_are_found(self):
        found = self.check({"app.lua": GOOD.replace("return app", 'app:get("/", function() return 2 end)\nreturn app')})
        self.assertIn("declared already, at app.lua:3", found[("app.lua", 4, "load")]["message"])
        found = self.check({"app.lua": GOOD.replace("return app", 'app:static("/", "none")\nreturn app')})
        self.assertIn(("app.lua", 4, "load"), found)

    def test_hooks_do_not_run(self):
        hook = 'app:hook("start", function() error "it ran" end)\nreturn app'
        self.assertEqual(self.check({"app.lua": GOOD.replace("return app", hook)}), {})

    def test_what_no_request_reaches_is_found(self):
        found = self.check({
            "app.lua": GOOD.replace("return app", """app:get("/", { fallback = true }, function() return 2 end)
app:get("/files/*rest", function() return 1 end)
app:static("/files", "public")
local lost = srv.router()
lost:get("/x", function() return 1 end)
return app"""),
            "public/a.txt": "a", "unused.lua": "return {}\n", "used.lua": "return {}\n",
            "routes/a.lua": 'return function() return require "used" end\n'})
        self.assertEqual({("app.lua", 4, "unreachable"), ("app.lua", 6, "unreachable"), ("app.lua", 7, "unmounted"),
                          ("unused.lua", None, "unused_file"), ("routes/a.lua", None, "unused_file")}, set(found))

    def test_an_app_within_the_app_has_modules_of_its_own(self):
        inner = GOOD.replace("return app", 'require "part"\nreturn app')
        self.assertEqual(self.check({"step1/app.lua": inner, "step1/part.lua": "return 1\n"}), {})

    def test_routes_that_may_pass_hide_nothing(self):
        self.assertEqual(self.check({"app.lua": GOOD.replace("return app", """app:get("/files/*rest", function(_, _, next) return next() end)
app:static("/files", "public")
return app"""), "public/a.txt": "a"}), {})

    def test_all_views_are_compiled(self):
        found = self.check({"views/a.html": "x\n{% if %}", "views/b.html": "{{ x"})
        self.assertIn(("views/a.html", 2, "view"), found)
        self.assertIn(("views/b.html", 1, "view"), found)

    def test_migrations_with_wrong_names_are_found(self):
        found = self.check({"migrations/first.sql": "select 1;"})
        self.assertIn("NNN_name", found[("migrations/first.sql", None, "migration")]["message"])

    def test_settings_that_srv_has_not_are_found_beside_the_rest(self):
        found = self.check({"config.lua": "return { time_out = 3 }", "a.lua": "= 1"})
        self.assertIn('did you mean "timeout"', found[("config.lua", None, "setting")]["message"])
        self.assertIn(("a.lua", 1, "syntax"), found)

    @unittest.skipUnless(shutil.which("luacheck"), "luacheck is not installed")
    def test_luachecks_findings_are_there_with_their_columns(self):
        files = {"app.lua": GOOD.replace("return app", "local unused = 1\nreturn app")}
        found = self.check(files)
        self.assertEqual(found[("app.lua", 4, "luacheck_211")]["column"], 7)
        self.assertEqual(self.check(files, "--no-luacheck"), {})
        self.assertEqual(self.check({**files, ".luacheckrc": 'ignore = { "211" }\nstd = "luajit"\n'}), {})

    def test_without_luacheck_it_says_so(self):
        write_app(self.app, {"app.lua": GOOD})
        status, text = run_to_end("check", self.app, env={"PATH": "/nonexistent"})
        self.assertEqual(status, 0, text)
        self.assertIn("luacheck is not installed", text)

    def test_no_app_is_an_error_and_a_wrong_line_is_another(self):
        self.assertEqual(run_to_end("check", self.app)[0], 1)
        self.assertEqual(run_to_end("check", self.app, "--jsn")[0], 2)
        status, text = run_to_end("check", "--help")
        self.assertEqual(status, 0)
        self.assertIn("--json", text)


class Routes(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.app = self.temp.name
        write_app(self.app, {"public/a.txt": "a", "app.lua": """local srv = require "srv"
local app = srv.app()
local function guard(_, _, next) return next() end
local api = srv.router { host = "api.example" }
api:get("/:id", { name = "show" }, guard, function() return 1 end)
app:use(srv.csrf())
app:mount("/api", api)
app:post("/", function() return 1 end)
app:static("/", "public")
app:hook("start", function() error "it ran" end)
return app
"""})

    def tearDown(self):
        self.temp.cleanup()

    def test_a_table_shows_middleware_names_hosts_and_folders(self):
        status, text = run_to_end("routes", self.app)
        self.assertEqual(status, 0, text)
        rows = [line.split() for line in text.splitlines()]
        self.assertIn(["POST", "/", "csrf", "app.lua:8"], rows)
        self.assertIn(["GET", "/api/:id", "name=show", "host=api.example", "csrf,", "app.lua:3", "app.lua:5"], rows)
        self.assertIn(["FILES", "/...", "public", "app.lua:9"], rows)
        ends = {line.rindex("app.lua:") for line in text.splitlines()}
        self.assertEqual(len(ends), 1, text)  # the columns stand under each other
        self.assertNotIn("\x1b", text)

    def test_sockets_are_told_from_what_a_plain_request_reaches(self):
        write_app(self.app, {"app.lua": GOOD.replace("return app", 'app:ws("/live", function() end)\nreturn app')})
        rows = [line.split() for line in run_to_end("routes", self.app)[1].splitlines()]
        self.assertEqual([row[:3] for row in rows if row[1] == "/live"], [["GET", "/live", "websocket"]])
        told = json.loads(run_to_end("routes", self.app, "--json")[1])["routes"]
        self.assertEqual({r["path"] for r in told if r.get("websocket")}, {"/live"})

    def test_json_has_routes_folders_and_mounts(self):
        status, text = run_to_end("routes", self.app, "--json")
        told = json.loads(text)
        self.assertEqual(status, 0)
        self.assertEqual([(r["method"], r["path"]) for r in told["routes"]], [("POST", "/"), ("GET", "/api/:id")])
        self.assertEqual(told["routes"][1]["host"], "api.example")
        self.assertEqual(told["routes"][1]["middleware"], ["csrf", "app.lua:3"])
        self.assertEqual(told["folders"], [{"path": "/", "folder": "public", "file": "app.lua", "line": 9}])
        self.assertEqual(told["mounts"], [{"path": "/api", "host": "api.example", "file": "app.lua", "line": 7}])

    def test_an_app_that_does_not_load_is_told_with_its_place(self):
        write_app(self.app, {"app.lua": "local srv = require 'srv'\nsrv.app():get('x', function() end)\n"})
        status, text = run_to_end("routes", self.app)
        self.assertEqual(status, 1)
        self.assertRegex(text, r"^app\.lua:2: ")
        write_app(self.app, {"app.lua": "return 1"})
        status, text = run_to_end("routes", self.app)
        self.assertEqual(status, 1)
        self.assertIn("return app", text)


if __name__ == "__main__":
    unittest.main()
