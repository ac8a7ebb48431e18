"""The command line: help, version, usage errors, settings and where they came from."""
import json
import os
import socket
import tempfile
import unittest

from srv_process import Srv, run_to_end, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:get("/config", function() return { timeout = srv.config.timeout, limit = srv.config.body_limit } end)
return app
"""


class Cli(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, {"app.lua": APP})

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        write_app(self.app, {name: text})

    def test_help_lists_commands_and_flags(self):
        status, text = run_to_end("--help")
        self.assertEqual(status, 0)
        for word in ("srv run", "srv test", "--body-limit", "--no-watch", "--drain-timeout"):
            self.assertIn(word, text)

    def test_version_names_luajit(self):
        status, text = run_to_end("--version")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"srv \d+\.\d+\.\d+")
        self.assertIn("LuaJIT", text)

    def test_no_argument_is_a_usage_error(self):
        self.assertEqual(run_to_end()[0], 2)

    def test_unknown_flag_names_the_nearest(self):
        status, text = run_to_end(self.app, "--time-out", "3s")
        self.assertEqual(status, 2)
        self.assertIn('did you mean --timeout?', text)
        status, text = run_to_end(self.app, "--dve")  # nothing behind it that could be its value
        self.assertEqual(status, 2)
        self.assertIn('did you mean --dev?', text)

    def test_a_setting_far_from_all_suggests_none(self):
        for name in ("colour", "db"):
            self.write("config.lua", "return { %s = true }" % name)
            text = run_to_end("routes", self.app)[1]
            self.assertIn('config.lua: unknown setting "%s": srv --help lists all' % name, text)
            self.assertNotIn("did you mean", text)

    def test_who_calls_certificates_otherwise_is_told_their_name(self):
        for name in ("ssl", "https"):
            self.write("config.lua", "return { %s = true }" % name)
            self.assertIn('unknown setting "%s": certificates are tls in config.lua' % name, run_to_end("routes", self.app)[1])

    def test_a_variable_that_is_nearly_a_setting_is_an_error(self):
        status, text = run_to_end("routes", self.app, env={"SRV_BODY_LIMT": "1"})
        self.assertEqual(status, 1)
        self.assertIn("SRV_BODY_LIMT: unknown setting, did you mean SRV_BODY_LIMIT?", text)
        text = run_to_end("routes", self.app, env={"SRV_PROT": "1"})[1]
        self.assertIn("SRV_PROT: unknown setting, did you mean SRV_PORT?", text)
        self.assertIn("SRV_port: unknown setting, did you mean SRV_PORT?", run_to_end("routes", self.app, env={"SRV_port": "1"})[1])

    def test_another_variable_of_that_kind_is_warned_of(self):
        status, text = run_to_end("routes", self.app, env={"SRV_OF_MY_OWN": "1", "SRV_DNS_SERVERS": "127.0.0.1"})
        self.assertEqual(status, 0, text)
        self.assertIn("warning: the variable SRV_OF_MY_OWN is no setting of srv", text)
        self.assertNotIn("SRV_DNS_SERVERS", text)

    def test_a_value_out_of_range_is_told_the_range(self):
        status, text = run_to_end(self.app, "--port", "65536")
        self.assertEqual(status, 2)
        self.assertIn("expected 0 to 65535\n", text)
        status, text = run_to_end(self.app, "--half-close", "2h")
        self.assertIn("expected 0 to 3600000 ms\n", text)

    def test_a_word_that_is_none_of_a_setting_is_told_them(self):
        for word in ("require", "optional required", ""):
            status, text = run_to_end(self.app, "--client-cert", word)
            self.assertEqual(status, 2)
            self.assertIn("expected one of none optional required\n", text)

    def test_specs_run_with_what_they_print(self):
        self.write("spec/a_spec.lua", "it('a', function() print('seen', nil, 7) end)\n"
                   "it('b', function() require('srv').test(require 'app'):get('/none'):expect(404) end)\n")
        status, text = run_to_end("test", self.app)
        self.assertEqual(status, 0, text)
        self.assertIn("seen\tnil\t7\n", text)
        self.write("spec/b_spec.lua", "it('c', function() error('on purpose') end)")
        status, text = run_to_end("test", self.app)
        self.assertEqual(status, 1)
        self.assertIn("b_spec.lua:1: on purpose", text)

    def test_missing_app_is_one_clear_error(self):
        status, text = run_to_end("run", "no/such/app")
        self.assertEqual(status, 1)
        self.assertIn("no/such/app", text)

    def test_broken_app_names_file_and_line(self):
        self.write("app.lua", "local srv = require 'srv'\nlocal x = = 1\n")
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"^srv: app\.lua:2: .*\n$")  # no trace of what never ran

    def test_an_error_while_loading_names_file_and_line(self):
        self.write("app.lua", "local srv = require 'srv'\nlocal t = nil\nreturn t.x\n")
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"app\.lua:3:")

    def test_taken_port_is_one_clear_error(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            status, text = run_to_end(self.app, "--port", str(port))
        self.assertEqual(status, 1)
        self.assertIn(str(port), text)
        self.assertIn("in use", text)

    def test_wrong_values_say_which_and_where_from(self):
        status, text = run_to_end(self.app, env={"SRV_BODY_LIMIT": "lots"})
        self.assertEqual(status, 1)
        self.assertIn("SRV_BODY_LIMIT", text)
        self.write("config.lua", "return { timeout = 'soon' }")
        status, text = run_to_end(self.app, "--port", "0")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"config\.lua: timeout is \"soon\"")
        status, text = run_to_end(self.app, "--workers", "many")
        self.assertEqual(status, 2)
        self.assertIn("--workers", text)

    def test_a_wrong_host_says_where_it_came_from(self):
        status, text = run_to_end(self.app, env={"HOST": "999.1.1.1"})
        self.assertEqual(status, 1)
        self.assertIn('srv: HOST: "999.1.1.1" is ', text)

    def test_a_setting_is_named_once_as_it_was_given(self):
        for flags, words in ((["--port", "x"], '--port is "x", expected a whole number'),
                             (["--port=70000"], "--port is 70000, expected 0 to 65535"),
                             (["--log-level=loud"], '--log-level is "loud", expected one of'),
                             (["--host", "here"], '--host: "here" is not'),
                             (["--body-limt", "1"], "--body-limt: unknown setting, did you mean --body-limit?"),
                             (["--body-limt"], "--body-limt: unknown setting, did you mean --body-limit?"),
                             (["--nothing-like-it"], "--nothing-like-it: unknown setting: srv --help lists all"),
                             (["--ssl", "a.pem"], "--ssl: unknown setting: certificates are"),
                             (["--no-watch=3"], "--no-watch takes no value")):
            status, text = run_to_end(self.app, *flags)
            self.assertNotEqual(status, 0, text)
            self.assertTrue(text.startswith("srv: " + words), text)
        status, text = run_to_end(self.app, env={"SRV_PORT": "x"})
        self.assertEqual((status, text), (1, 'srv: SRV_PORT is "x", expected a whole number\n'))
        self.write("config.lua", "return { host = 'here' }")
        status, text = run_to_end(self.app)
        self.assertRegex(text, r'^srv: /\S+/config\.lua: host: "here" is not')

    def test_flag_beats_environment_beats_file_beats_default(self):
        self.write("config.lua", "return { timeout = '3s', body_limit = '2KiB' }")

        def config(*flags, env=None):
            with Srv(self.app, *flags, env=env) as srv:
                return srv.get("/config")[2]

        self.assertEqual(config(), b'{"limit":2048,"timeout":3}')
        self.assertEqual(config(env={"SRV_TIMEOUT": "4s"}), b'{"limit":2048,"timeout":4}')
        self.assertEqual(config("--timeout", "5s", env={"SRV_TIMEOUT": "4s"}),
                         b'{"limit":2048,"timeout":5}')

    def test_one_file_is_an_app(self):
        with Srv(os.path.join(self.app, "app.lua")) as srv:
            self.assertEqual(srv.get("/")[2], b"hello")

    def test_a_folder_without_app_serves_files(self):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"index.html": "<p>hi", "a.txt": "text", ".secret": "no"})
            with Srv(folder) as srv:
                self.assertEqual(srv.get("/a.txt")[2], b"text")
                self.assertEqual(srv.get("/")[2], b"<p>hi")
                self.assertEqual(srv.get("/.secret")[0], 404)

    def test_types_are_written_for_the_editor_once_told_of(self):
        status, text = run_to_end("types", self.app)
        self.assertEqual((status, "made" in text), (0, True), text)
        types = os.path.join(self.app, ".srv", "types")
        with open(os.path.join(types, "srv.d.lua"), encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("---@meta srv\n"))
        self.assertGreater(len(os.listdir(types)), 10)
        with open(os.path.join(self.app, ".luarc.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["workspace.library"], [".srv/types"])
        self.assertNotIn(".luarc.json", run_to_end("types", self.app)[1])
        self.write(".luarc.json", "{}")
        self.assertIn("add \".srv/types\"", run_to_end("types", self.app)[1])
        os.remove(os.path.join(self.app, ".luarc.json"))
        os.mkdir(os.path.join(self.app, ".luarc.json"))
        status, text = run_to_end("types", self.app)
        self.assertEqual(status, 1)
        self.assertRegex(text, r"srv types: .*\.luarc\.json: is a folder\n")

    def test_unix_socket_instead_of_a_port(self):
        path = os.path.join(self.folder.name, "srv.sock")
        with Srv(self.app, "--unix", path) as srv:
            self.assertIn(path, srv.url)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                data = b""
                while chunk := s.recv(4096):
                    data += chunk
            self.assertTrue(data.endswith(b"hello"))


if __name__ == "__main__":
    unittest.main()
