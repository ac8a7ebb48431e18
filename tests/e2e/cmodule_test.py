"""Lua modules written in C: from the app's folder, in every generation, with clear errors."""
import os
import subprocess
import tempfile
import unittest

from srv_process import ROOT, Srv, run_to_end, wait_until, write_app

MODULE = """
#include <lua.h>
#include <lauxlib.h>

static int calls; /* one for each loaded copy of the file */

static int answer(lua_State *L)
{
    calls++;
    lua_pushinteger(L, %d);
    lua_pushinteger(L, calls);
    return 2;
}

__attribute__((visibility("default"))) int luaopen_answer(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, answer);
    lua_setfield(L, -2, "answer");
    return 1;
}
"""

FAULTS = """
#include <lua.h>
#include <lauxlib.h>
#include <stdlib.h>

static int fault(lua_State *L)
{
    return *(volatile int *)8;
}

static int fall(lua_State *L)
{
    volatile char room[4096] = { 0 };

    return fall(L) + room[0];
}

static int give_up(lua_State *L)
{
    abort();
}

__attribute__((visibility("default"))) int luaopen_answer(lua_State *L)
{
    lua_newtable(L);
    lua_pushcfunction(L, fault);
    lua_setfield(L, -2, "fault");
    lua_pushcfunction(L, fall);
    lua_setfield(L, -2, "fall");
    lua_pushcfunction(L, give_up);
    lua_setfield(L, -2, "give-up");
    return 1;
}
"""

FAULTS_APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
for name, fn in pairs(require "answer") do
  app:get("/" .. name, function() fn() end)
end
return app
"""

APP = """
local srv = require "srv"
local answer = require "answer"
local app = srv.app()
app:get("/", function()
  local value, calls = answer.answer()
  return { value = value, calls = calls }
end)
app:get("/expat", function() return { name = require("lxp")._NAME or "lxp" } end)
return app
"""


def include_folder():
    own = os.path.join(ROOT, "build", "luajit", "include")
    if os.path.isdir(own):
        return ["-I" + own]
    return subprocess.check_output(["pkg-config", "--cflags", "luajit"], text=True).split()


class CModule(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, {"app.lua": APP})
        self.library = os.path.join(self.app, "answer.so")

    def tearDown(self):
        self.folder.cleanup()

    def build(self, value):
        self.build_text(MODULE % value)

    def build_text(self, text):
        """As a build does it: a new file takes the old one's name."""
        with tempfile.TemporaryDirectory() as work:
            source = os.path.join(work, "answer.c")
            with open(source, "w", encoding="utf-8") as out:
                out.write(text)
            made = self.library + ".tmp~"
            subprocess.check_call(["cc", "-shared", "-fPIC", "-O1", "-o", made, source,
                                   *include_folder()])
            os.rename(made, self.library)

    def test_a_module_in_the_apps_folder_loads(self):
        self.build(1)
        with Srv(self.app) as srv:
            self.assertEqual(srv.get("/")[2], b'{"calls":1,"value":1}')

    def test_a_rebuilt_module_is_new_code_in_the_next_generation(self):
        self.build(1)
        with Srv(self.app) as srv:
            self.assertEqual(srv.get("/")[2], b'{"calls":1,"value":1}')
            self.build(2)
            wait_until(lambda: b'"value":2' in srv.get("/")[2], "the new code")

    def test_a_crash_in_c_names_its_route_and_costs_only_what_was_in_hand(self):
        self.build_text(FAULTS)
        write_app(self.folder.name, {"app.lua": FAULTS_APP})
        with Srv(self.app) as srv:
            for name in ("fault", "fall", "give-up"):
                with self.assertRaises(OSError):
                    srv.get("/" + name)
                srv.wait_line(r'crashed, .*route="GET /%s"' % name)
                self.assertEqual(srv.get("/")[2], b"hello")  # waits in the listener's queue

    def test_debians_expat_loads(self):
        self.build(1)
        with Srv(self.app, workers=2) as srv:
            self.assertEqual(srv.get("/expat")[0], 200)

    def test_what_is_no_library_is_told_so(self):
        write_app(self.app, {"answer.so": "this is a text"})
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertIn("answer.so", text)

    def test_a_wrong_architecture_is_named(self):
        self.build(1)
        with open(self.library, "r+b") as library:
            library.seek(18)  # e_machine: 8 is MIPS
            library.write(b"\x08\x00")
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertIn("built for MIPS", text)

    def test_a_module_without_its_open_function_is_told_which(self):
        with tempfile.TemporaryDirectory() as work:
            source = os.path.join(work, "empty.c")
            with open(source, "w", encoding="utf-8") as out:
                out.write("int nothing;\n")
            subprocess.check_call(["cc", "-shared", "-fPIC", "-o", self.library, source])
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertIn("luaopen_answer", text)


if __name__ == "__main__":
    unittest.main()
