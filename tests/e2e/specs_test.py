"""`srv test`: reports, filters, exit statuses, limits, the watch mode."""
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from srv_process import BIN, Srv, run_to_end, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:get("/loop", function() while true do end end)
return app
"""

SPECS = """
local srv = require "srv"
describe("greetings", function()
  it("are polite #quick", function() srv.test(require "app"):get("/"):expect "hello" end)
  it("are short #slow", function() assert.equal(1, 1) end)
end)
"""

FAULTY = """
it("fails", function() assert.equal(1, 2) end)
it("raises", function() error("on purpose") end)
"""


class Specs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, {"app.lua": APP, "spec/a_spec.lua": SPECS})

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        write_app(self.app, {name: text})

    def test_tap_counts_what_ran(self):
        status, text = run_to_end("test", self.app, "-o", "TAP")
        self.assertEqual(status, 0, text)
        self.assertIn("ok 1 - greetings are polite", text)
        self.assertIn("1..2", text)

    def test_specs_know_the_version_as_served_apps_do(self):
        self.write("spec/a_spec.lua", 'it("knows", function() assert.matches("^%d+%.%d+", require("srv").version) end)')
        status, text = run_to_end("test", self.app, "-o", "TAP")
        self.assertEqual(status, 0, text)

    def test_junit_is_xml_with_each_test(self):
        report = os.path.join(self.folder.name, "report.xml")
        self.write("spec/b_spec.lua", FAULTY)
        status, text = run_to_end("test", self.app, "--output=junit", f"-Xoutput={report}")
        self.assertEqual(status, 1, text)
        root = ElementTree.parse(report).getroot()
        self.assertEqual((root.get("tests"), root.get("failures"), root.get("errors")), ("4", "1", "1"))
        self.assertEqual(len(list(root.iter("testcase"))), 4)

    def test_filters_by_name_and_by_tag(self):
        _, text = run_to_end("test", self.app, "-o", "TAP", "--filter=polite")
        self.assertIn("1..1", text)
        self.assertNotIn("short", text)
        _, text = run_to_end("test", self.app, "-o", "TAP", "--tags=slow")
        self.assertIn("1..1", text)
        self.assertIn("short", text)

    def test_one_file_is_named_as_such(self):
        self.write("spec/b_spec.lua", FAULTY)
        status, text = run_to_end("test", self.app, os.path.join(self.app, "spec/a_spec.lua"), "-o", "TAP")
        self.assertEqual(status, 0, text)
        self.assertIn("1..2", text)

    def test_the_status_is_one_however_many_fail(self):
        self.write("spec/b_spec.lua", "for i = 1, 256 do it('f' .. i, function() error 'x' end) end")
        self.assertEqual(run_to_end("test", self.app, "-o", "TAP")[0], 1)

    def test_coverage_without_luacov_says_what_to_install(self):
        status, text = run_to_end("test", self.app, "--coverage")
        if status != 0:
            self.assertIn("luacov is not installed: `luarocks install", text)

    def test_coverage_sees_lines_and_is_written_at_the_end(self):
        """With a stand-in that has luacov's seams: called to start, hooks of lines, os.exit, shutdown()."""
        self.write("lua_modules/luacov/runner.lua", """
local runner = { configuration = { exclude = {} } }
local before, lines = os.exit, 0
function runner.shutdown() debug.sethook() io.stdout:write("seen ", lines, "\\n") end
return setmetatable(runner, { __call = function()
  os.exit = function(...) before(...) end
  debug.sethook(function(_, line)
    if debug.getinfo(2, "S").source:find "a_spec" and line == 5 then lines = lines + 1 end
  end, "l")
end })
""")
        self.write("spec/a_spec.lua", """
describe("sums", function()
  it("are counted", function()
    for _ = 1, 1000 do
      local _ = 1 + 1
    end
    error "on purpose"
  end)
end)
""")
        status, text = run_to_end("test", self.app, "--coverage", "-o", "TAP")
        self.assertEqual(status, 1, text)
        self.assertIn("seen 1000\n", text)

    def test_code_that_loops_is_ended_with_its_place(self):
        self.write("spec/a_spec.lua", """
local srv = require "srv"
it("ends the handler", function() srv.test(require "app"):get("/loop"):expect(503) end)
it("ends itself", function() local n = 0 while true do n = n + 1 end end)
""")
        status, text = run_to_end("test", self.app, env={"SRV_SLICE_LIMIT": "300ms"})
        self.assertEqual(status, 1)
        self.assertIn("app.lua:5: ran longer than slice_limit", text)
        self.assertRegex(text, r"srv: .*a_spec\.lua:4: ran longer than slice_limit")

    def test_a_test_that_waits_for_ever_is_ended_and_named(self):
        self.write("spec/a_spec.lua", """
local srv = require "srv"
it("waits", function() srv.sleep("1h") end)
""")
        status, text = run_to_end("test", self.app, "--timeout", "200ms")
        self.assertEqual(status, 1)
        self.assertRegex(text, r'a_spec\.lua:3: the test "waits" has not ended after 200ms')
        self.write("spec/a_spec.lua", """
local srv = require "srv"
it("stands", function() srv.test.clock() srv.sleep("1s") end)
""")
        status, text = run_to_end("test", self.app, "--timeout=200ms")
        self.assertIn("sleeps and time limits end by clock:advance() alone", text)
        status, text = run_to_end("test", self.app, "--timeout=soon")
        self.assertEqual(status, 1)
        self.assertIn("is no duration", text)

    def test_a_server_does_not_let_its_clock_be_held(self):
        self.write("app.lua", """
local srv = require "srv"
local app = srv.app()
app:get("/", function() local ok, err = pcall(srv.test.clock) return tostring(err) end)
return app
""")
        with Srv(self.app) as srv:
            self.assertIn(b"a running server's clock cannot be held", srv.get("/")[2])
            self.assertIn(b"app.lua:4", srv.get("/")[2])

    def test_what_a_setup_stubs_lasts_as_long_as_its_block(self):
        self.write("spec/setup_spec.lua", '''
local srv = require "srv"
local t = { of_file = "real", of_block = "real", of_each = "real", of_test = "real" }
srv.test.stub(t, "of_file", "stub")
describe("a block", function()
  setup(function()
    srv.test.stub(t, "of_block", "stub")
    srv.test.env { SET_UP = "yes" }
    srv.test.clock()
  end)
  before_each(function()
    assert.equal("real", t.of_each)
    srv.test.stub(t, "of_each", "stub")
  end)
  for i = 1, 2 do
    it("sees them in test " .. i, function()
      assert.same({ "stub", "stub", "stub", "real" }, { t.of_file, t.of_block, t.of_each, t.of_test })
      assert.equal("yes", srv.env.SET_UP)
      local before = srv.monotonic()
      srv.test.clock():advance "1h"
      assert.near(3600, srv.monotonic() - before, 1e-6)
      srv.test.stub(t, "of_test", "stub")
      srv.test.stub(t, "of_block", "over")
    end)
  end
  describe("an inner one", function()
    setup(function() srv.test.stub(t, "of_block", "inner") end)
    it("sees its own", function() assert.equal("inner", t.of_block) end)
  end)
  it("sees its own again", function() assert.equal("stub", t.of_block) end)
end)
it("does not see them behind it", function()
  assert.same({ "stub", "real", "real", "real" }, { t.of_file, t.of_block, t.of_each, t.of_test })
  assert.is_nil(srv.env.SET_UP)
  srv.sleep "1ms"
end)
''')
        status, text = run_to_end("test", self.app, "-o", "TAP", self.app + "/spec/setup_spec.lua")
        self.assertEqual(status, 0, text)
        self.assertIn("1..5", text)

    def test_each_file_has_a_database_of_its_own_where_the_app_has_a_file(self):
        self.write("app.lua", """
            local srv = require "srv"
            local app, db = srv.app(), srv.db "sqlite:notes.db"
            app:post("/", function() return assert(db:insert("notes", { text = "x" }, "id")) end)
            return app""")
        self.write("migrations/001_notes.sql", "create table notes (id integer primary key, text text);")
        for name in "ab":
            self.write(f"spec/{name}_spec.lua", """
                it("adds the first", function()
                  require "srv".test(require "app"):post("/"):expect(200):expect { id = 1 }
                end)""")
        status, text = run_to_end("test", self.app)
        self.assertEqual(status, 0, text)
        self.assertIn("2 successes", text)
        self.assertNotIn("notes.db", os.listdir(self.app))

    def test_watching_runs_the_specs_again_when_a_file_changes(self):
        log = os.path.join(self.folder.name, "log.txt")
        with open(log, "wb") as out:
            watch = subprocess.Popen([BIN, "test", self.app, "--watch", "-o", "TAP"], stdout=out,
                                     stderr=subprocess.STDOUT)
        try:
            def text():
                with open(log, encoding="utf-8") as file:
                    return file.read()

            wait_until(lambda: "1..2" in text(), "the first run")
            self.write("spec/b_spec.lua", "it('is new', function() end)")
            wait_until(lambda: "is new" in text() and "1..3" in text(), "the second run")
            self.assertIn("b_spec.lua has changed", text())
        finally:
            watch.terminate()
            watch.wait()


if __name__ == "__main__":
    unittest.main()
