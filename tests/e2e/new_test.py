"""srv new: each template is made, tested, checked and served."""
import json
import os
import subprocess
import tempfile
import unittest

from srv_process import BIN, PATIENCE, Srv, run_to_end
from websocket_client import WebSocket

TEMPLATES = ("minimal", "api", "site", "chat")


def run_in(folder, *args):
    """Runs the binary in FOLDER: (exit status, output)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SRV_") or k == "SRV_LUA_PATH"}
    done = subprocess.run([BIN, *args], cwd=folder, env=environment, text=True, timeout=4 * PATIENCE,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


class New(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder = self.temp.name

    def tearDown(self):
        self.temp.cleanup()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def make(self, name, *flags):
        status, text = run_in(self.folder, "new", name, *flags)
        self.assertEqual(status, 0, text)
        return text

    def test_it_says_what_to_do_next(self):
        text = self.make("tea-house")
        for line in ("cd tea-house", "srv .", "srv test"):
            self.assertIn(line, text)

    def test_a_new_app_has_git_files_and_no_repository(self):
        self.make("a")
        for name in (".gitignore", ".gitattributes", ".luacheckrc", ".luarc.json", "README.md"):
            self.assertTrue(os.path.exists(self.path("a", name)), name)
        self.assertFalse(os.path.exists(self.path("a", ".git")))

    def test_the_name_stands_where_it_belongs(self):
        for template in TEMPLATES:
            self.make("shop-" + template, "--template", template)
            for folder, _, names in os.walk(self.path("shop-" + template)):
                for name in names:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        self.assertNotIn("@NAME@", file.read(), name)
            with open(self.path("shop-" + template, "README.md"), encoding="utf-8") as file:
                self.assertTrue(file.read().startswith("# shop-%s\n" % template))

    def test_the_specs_of_each_pass(self):
        for template in TEMPLATES:
            self.make(template, "--template", template)
            status, text = run_in(self.path(template), "test")
            self.assertEqual(status, 0, text)
            self.assertRegex(text, r"\b[2-9] successes / 0 failures / 0 errors")

    def test_each_is_clean(self):
        for template in TEMPLATES:
            self.make(template, "--template", template)
            status, text = run_in(self.path(template), "check")
            self.assertEqual((status, text.splitlines()[0][:13]), (0, "nothing found"), text)

    def test_each_has_types_for_the_editor(self):
        for template in TEMPLATES:
            self.make(template, "--template", template)
            status, text = run_in(self.path(template), "types")
            self.assertEqual((status, "add" in text), (0, False), text)

    def test_minimal_serves(self):
        self.make("m")
        with Srv(self.path("m")) as srv:
            self.assertEqual(json.loads(srv.get("/?name=Ann")[2]), {"hello": "Ann"})

    def test_api_serves_items_and_its_description(self):
        self.make("shop", "--template", "api")
        with Srv(self.path("shop")) as srv:
            body = json.dumps({"title": "Water"})
            status, headers, answer = srv.request("POST", "/items", body, {"Content-Type": "application/json"})
            self.assertEqual((status, headers["location"]), (201, "/items/1"), answer)
            item = json.loads(srv.get("/items/1")[2])
            self.assertEqual((item["title"], item["done"]), ("Water", False))
            self.assertIn("/items/{id}", json.loads(srv.get("/openapi.json")[2])["paths"])
            self.assertEqual(srv.get("/docs")[0], 200)
        self.assertTrue(os.path.exists(self.path("shop", "shop.db")))

    def test_site_serves_pages_and_keeps_a_visitors_notes(self):
        self.make("pages", "--template", "site")
        with Srv(self.path("pages"), "--workers", "2") as srv:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            status, answered, _ = srv.request("POST", "/notes", "text=tea+%3Cb%3E", headers)
            self.assertEqual(status, 303)
            cookie = answered["set-cookie"].split(";")[0]
            self.assertIn(b"<li>tea &lt;b&gt;</li>", srv.get("/", {"Cookie": cookie})[2])
            self.assertNotIn(b"<li>", srv.get("/")[2])
            self.assertEqual(srv.get("/style.css")[0], 200)
            self.assertEqual(srv.request("POST", "/notes", "text=x", {**headers, "Origin": "https://b.example"})[0], 403)

    def test_chat_brings_what_is_said_to_all(self):
        self.make("talk", "--template", "chat")
        with Srv(self.path("talk"), workers=2) as srv:
            listeners = [WebSocket(srv, "/socket") for _ in range(4)]
            listeners[0].send(json.dumps({"name": "Ann", "text": "hello"}))
            for listener in listeners:
                said = json.loads(listener.receive())
                self.assertEqual((said["name"], said["text"]), ("Ann", "hello"))
                listener.cut()
            self.assertIn(b"new WebSocket", srv.get("/chat.js")[2])

    def test_what_is_there_is_not_written_over(self):
        self.make("a")
        status, text = run_in(self.folder, "new", "a")
        self.assertEqual(status, 1)
        self.assertIn("a is there and not empty", text)
        status, text = run_in(self.folder, "new", "a", "--force")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"a/\S+ is there, and is not written over")

    def test_an_empty_folder_will_do_and_force_takes_others(self):
        os.mkdir(self.path("empty"))
        self.make("empty")
        os.mkdir(self.path("full"))
        with open(self.path("full", "notes.txt"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.make("full", "--force")
        self.assertTrue(os.path.exists(self.path("full", "app.lua")))
        with open(self.path("full", "notes.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_name_is_one_everywhere(self):
        for name in ("Shop", "7up", "a b", "a'b", "..", "-x", "ä", "x" * 65, "a.b"):
            status, text = run_in(self.folder, "new", name)
            self.assertEqual(status, 2, name + ": " + text)
        self.assertEqual(os.listdir(self.folder), [])
        self.make("sub/folder/shop")
        with open(self.path("sub/folder/shop/README.md"), encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("# shop\n"))

    def test_wrong_lines_say_what_is_meant(self):
        status, text = run_in(self.folder, "new", "a", "--template", "apo")
        self.assertEqual(status, 2)
        self.assertIn('did you mean "api"?', text)
        self.assertEqual(run_in(self.folder, "new")[0], 2)
        self.assertEqual(run_in(self.folder, "new", "a", "b")[0], 2)
        status, text = run_to_end("new", "--help")
        self.assertEqual(status, 0)
        for template in TEMPLATES:
            self.assertIn("\n  %s " % template, text)

    def test_a_folder_that_cannot_be_made_is_one_clear_error(self):
        with open(self.path("file"), "w", encoding="utf-8") as file:
            file.write("")
        self.assertEqual(run_in(self.folder, "new", "file")[0], 1)
        status, text = run_in(self.folder, "new", "file/a")
        self.assertEqual(status, 1)
        self.assertEqual(len(text.splitlines()), 1, text)


if __name__ == "__main__":
    unittest.main()
