"""srv doctor: apps with one mistake each, and what it says of them; and the command `vitals` below it."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import chromium
from certificates import Certificates
from srv_process import BIN, PATIENCE, ROOT, Srv, wait_until, write_app

PAGE_BYTES_MAX = 150 * 1024
LOAD = "[ -c 20 -d 2 / ]"

HEALTHY = {"app.lua": """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return { hello = "world" } end)
app:get("/users/:id", function(req) return { id = req.params.id } end)
return app
"""}

# The search is in a file of its own: the line is not that of the route.
SEARCHES = {"app.lua": """
local srv = require "srv"
local search = require "search"
local app = srv.app()
app:get("/", function() return { found = search "key 19999" } end)
return app
""", "search.lua": """
local list = {}
for i = 1, 20000 do list[i] = { key = "key " .. i } end

return function(key)
  local found
  for i, entry in ipairs(list) do
    if entry.key:rep(3, ","):match "^[^,]+" == key then found = i end
  end
  return found
end
"""}

EXECUTES = {"app.lua": """
local srv = require "srv"
local app = srv.app()
app:get("/", function()
  os.execute "sleep 0.15"
  return "done"
end)
return app
"""}

SLEEPS = {"app.lua": """
local srv = require "srv"
local app = srv.app()
app:get("/", function()
  srv.sleep(0.1)
  return "rested"
end)
return app
"""}

LEAKS = {"app.lua": """
local srv = require "srv"
local app = srv.app()
local never = srv.channel()
app:get("/", function()
  app:spawn(function() never:receive() end)
  return "started"
end)
return app
"""}


def children_of(pid):
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, tid), encoding="ascii") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            pass
    return found


def first_child_of(pid):
    """In the moment when there is one: before its parent knows."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = children_of(pid)
        if found:
            return found[0]
    raise AssertionError("in vain: process %d starts another" % pid)


class Done:
    def __init__(self, process, out, err):
        self.status, self.out, self.err = process.returncode, out, err

    @property
    def result(self):
        return json.loads(self.out)["result"]

    @property
    def findings(self):
        return self.result["findings"]


class DoctorCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def tearDown(self):
        self.folder.cleanup()

    def app(self, files):
        return write_app(os.path.join(self.folder.name, "app"), files)

    def start(self, *args):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SRV_") or k == "SRV_LUA_PATH"}
        environment.pop("PORT", None)
        return subprocess.Popen([BIN, "doctor", *map(str, args)], cwd=self.folder.name, env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    def doctor(self, *args):
        process = self.start(*args)
        try:
            out, err = process.communicate(timeout=3 * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return Done(process, out, err)

    def look(self, files, *args):
        done = self.doctor(self.app(files), "--json", "--no-page", *(args or ("--load", LOAD)))
        self.assertEqual(done.status, 0, done.err)
        return done


class Findings(DoctorCase):
    def test_a_search_that_blocks_the_loop_is_the_first_finding_with_its_line(self):
        first = self.look(SEARCHES).findings[0]
        self.assertEqual((first["id"], first["site"]["file"]), ("blocked", "search.lua"), first)
        self.assertIn(first["site"]["line"], (7, 8), first)
        self.assertIn("search.lua:", first["title"])
        self.assertIn("srv flame", first["next"][0])

    def test_a_call_that_sleeps_in_C_is_found_though_no_processor_is_used(self):
        first = self.look(EXECUTES, "--load", "[ -c 4 -d 2 / ]").findings[0]
        self.assertEqual((first["id"], first["site"]["file"], first["site"]["line"]), ("blocked", "app.lua", 5), first)
        self.assertIn("srv.exec", first["advice"])

    def test_a_healthy_app_has_no_finding(self):
        self.assertEqual(self.look(HEALTHY).findings, [])

    def test_requests_that_wait_are_told_by_what_for_and_where(self):
        first = self.look(SLEEPS).findings[0]
        self.assertEqual((first["id"], first["wait"], first["site"]["file"], first["site"]["line"]),
                         ("io", "sleep", "app.lua", 5), first)

    def test_tasks_that_nobody_ends_are_found_when_the_load_is_over(self):
        found = self.look(LEAKS, "--load", "[ -c 2 -R 300 -d 3 / ]").findings
        self.assertIn("tasks", [one["id"] for one in found])

    def test_without_a_load_all_routes_without_parameters_are_asked(self):
        files = dict(HEALTHY)
        files["app.lua"] = files["app.lua"].replace("return app\n", 'app:get("/b", function() return "b" end)\n'
                                                    'app:ws("/live", function() end)\nreturn app\n')
        result = self.look(files, "-d", "1").result
        self.assertIn("[ -c 100 -d 1 / /b ]", result["command"])
        self.assertGreater(result["requests"], 0)

    def test_an_app_with_a_certificate_is_loaded_over_TLS(self):
        certs = Certificates(os.path.join(self.folder.name, "tls"))
        result = self.look(HEALTHY, "--load", "[ -c 4 -d 1 / ]", "--", "--cert", certs.cert, "--key", certs.key).result
        self.assertGreater(result["requests"], 0)
        self.assertEqual([note for note in result["notes"] if "400 to 499" in note], [])

    def test_a_load_of_the_users_own_gets_the_port(self):
        result = self.look(HEALTHY, "--on-port", "%s bench -n -d 1 /" % BIN).result
        self.assertGreater(result["requests"], 0)


class Commands(DoctorCase):
    def test_check_fails_with_findings_alone(self):
        ill = self.doctor(self.app(SEARCHES), "--check", "--no-page", "-q", "--load", LOAD)
        self.assertEqual(ill.status, 1, ill.err)
        self.assertIn("search.lua:", ill.out)
        well = self.doctor(self.app(HEALTHY), "--check", "--no-page", "-q", "--load", LOAD)
        self.assertEqual(well.status, 0, well.out)
        self.assertIn("Nothing found", well.out)

    def test_a_line_that_nobody_can_mean_is_refused(self):
        for line in ([], ["app", "--attach", "1"], ["app", "--load", LOAD, "--on-port", "true"], ["app", "--sample-interval", "5"],
                     ["app", "-d", "0"], ["--attach", "1", "--load", LOAD]):
            done = self.doctor(*line)
            self.assertEqual(done.status, 2, line)
            self.assertIn("srv doctor --help", done.err)

    def test_what_cannot_be_looked_at_is_said(self):
        nobody = self.doctor("--attach", os.getpid())
        self.assertEqual(nobody.status, 1)
        self.assertIn("answers as process %d" % os.getpid(), nobody.err)
        broken = self.doctor(self.app({"app.lua": "return nil + 1"}))
        self.assertEqual(broken.status, 1)
        self.assertIn("app.lua:1", broken.err)
        unloaded = self.doctor(self.app(HEALTHY), "--load", "[ --nonsense ]")
        self.assertEqual(unloaded.status, 1)
        self.assertIn("nonsense", unloaded.err)

    def test_ctrl_c_ends_the_recording_and_reports(self):
        loaded = os.path.join(self.folder.name, "loaded")
        counts = 'count = (count or 0) + 1 if count == 200 then assert(io.open("%s", "w")):close() end' % loaded
        files = dict(SEARCHES, **{"search.lua": "local count\n" + SEARCHES["search.lua"].replace("  local found\n", "  local found\n  %s\n" % counts)})
        process = self.start(self.app(files), "--no-page", "--json", "--load", "[ -c 20 -d 600 / ]")
        try:
            wait_until(lambda: os.path.exists(loaded), "a load that is enough to be found", 3 * PATIENCE)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertLess(json.loads(out)["result"]["seconds"], 60)

    def interrupt_at_the_start(self):
        process = self.start(self.app(HEALTHY), "--no-page", "--load", "[ -c 1 -d 600 / ]")
        try:
            server = first_child_of(process.pid)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return server

    def test_ctrl_c_at_the_start_leaves_nothing_running(self):
        for _ in range(12):  # it comes amid the start of the server, at another point each time
            server = self.interrupt_at_the_start()
            wait_until(lambda: not os.path.exists("/proc/%d" % server), "the server ends")

    def test_a_server_that_runs_is_looked_at_and_goes_on(self):
        with Srv(self.app(SEARCHES)) as srv:
            load = subprocess.Popen([BIN, "bench", "-n", "-j", "-c", "20", "-d", "600", srv.url + "/"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                done = self.doctor("--attach", srv.process.pid, "-d", "2", "--json", "--no-page")
            finally:
                load.terminate()
                load.wait(PATIENCE)
            self.assertEqual(done.status, 0, done.err)
            self.assertEqual(done.findings[0]["site"]["file"], "search.lua")
            self.assertEqual(srv.get("/")[0], 200)


@unittest.skipUnless(chromium.CHROMIUM, "no Chromium here (apt-get install chromium)")
class Page(DoctorCase):
    JUMP = """(page, view) => {
      const cards = [...page.querySelectorAll(".finding")], button = cards[0].querySelector("button");
      button.click();
      const shown = page.querySelector("section.shown");
      return {
        titles: cards.map(card => card.querySelector("h3").textContent),
        shown: shown.id, focused: shown.contains(page.activeElement),
        said: shown.querySelector("figcaption").textContent,
        other: page.querySelector("#cpu figcaption").textContent,
        bands: shown.querySelectorAll("rect.band").length,
        charts: page.querySelectorAll("figure.chart svg path.line").length,
      };
    }"""

    def test_it_is_one_file_whose_findings_lead_to_their_charts(self):
        path = os.path.join(self.folder.name, "page.html")
        done = self.doctor(self.app(SEARCHES), "-q", "--dest", path, "--title", "</script><b>x", "--load", LOAD)
        self.assertEqual(done.status, 0, done.err)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(os.path.getsize(path), PAGE_BYTES_MAX)
        self.assertIn("default-src 'none'", text)
        self.assertIsNone(re.search(r"\b(src|href)=|@import|url\(|fetch\(|XMLHttpRequest", text))
        for width in (390, 1280):
            found, console = chromium.probe(path, width)
            self.assertEqual((found["overflow"], found["loaded"], console), (0, [], []), "at %d" % width)
        found, console = chromium.probe(path, 1280, self.JUMP)
        self.assertEqual(console, [])
        self.assertIn("search.lua:", found["titles"][0])
        self.assertEqual((found["shown"], found["focused"], found["bands"]), ("delay", True, 2), found)
        self.assertRegex(found["said"], r"the longest: \d")
        self.assertRegex(found["other"], r"worker 0: \d")
        self.assertGreater(found["charts"], 12)

    def test_a_healthy_app_has_a_page_too(self):
        path = os.path.join(self.folder.name, "app-doctor.html")
        self.assertEqual(self.doctor(self.app(HEALTHY), "-q", "--load", LOAD).status, 0)
        found, console = chromium.probe(path, 390, "page => page.querySelector('.findings').textContent")
        self.assertEqual(console, [])
        self.assertIn("Nothing found", found)


class Vitals(DoctorCase):
    """The admin socket's command: docs/internals/tools.md."""

    def ask(self, srv, command):
        folder = os.environ.get("XDG_RUNTIME_DIR")
        folder = folder + "/srv" if folder else "/tmp/srv-%d" % os.getuid()
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect("%s/%d.sock" % (folder, srv.process.pid))
        client.sendall((command + "\n").encode())
        return client, client.makefile("r")

    def refused(self, srv, command):
        client, lines = self.ask(srv, command)
        with client, lines:
            return json.loads(lines.readline()).get("error")

    def test_its_interval_has_bounds(self):
        with Srv(self.app(HEALTHY)) as srv:
            for wrong in ("19", "10001", "x", "-1"):
                self.assertIn("20 to 10000", self.refused(srv, "vitals " + wrong))

    def test_lines_come_until_stop_and_then_the_end(self):
        with Srv(self.app(HEALTHY), workers=2) as srv:
            client, lines = self.ask(srv, "vitals 20")
            with client, lines:
                self.assertEqual(json.loads(lines.readline())["workers"], 2)
                for _ in range(20):
                    srv.get("/")
                seen = []
                while sum("ms" in line for line in seen) < 5:
                    seen.append(json.loads(lines.readline()))
                client.sendall(b"stop\n")
                seen += [json.loads(line) for line in lines]
        told = [line for line in seen if "t" in line and "ms" in line]
        self.assertGreaterEqual(len(told), 5)
        self.assertEqual(sum(worker["requests"] for line in told for worker in line["workers"]), 20)
        self.assertEqual((seen[-1]["done"], seen[-1]["silent"], seen[-1]["dropped"]), (True, 0, 0))

    def test_one_looks_at_a_time_and_who_leaves_makes_room(self):
        with Srv(self.app(HEALTHY)) as srv:
            client, lines = self.ask(srv, "vitals")
            with client, lines:
                lines.readline()
                self.assertIn("busy", self.refused(srv, "vitals"))
                self.assertIn("busy", self.refused(srv, "profile"))
            wait_until(lambda: self.refused(srv, "vitals") is None, "room for the next one")

    def test_a_worker_that_is_stuck_is_seen_while_it_is(self):
        release = os.path.join(self.folder.name, "release")
        stuck = {"app.lua": 'local srv = require "srv"\nlocal app = srv.app()\napp:get("/", function()\n'
                            'os.execute "while [ ! -e %s ]; do sleep 0.05; done" return "" end)\nreturn app\n' % release}
        with Srv(self.app(stuck)) as srv:
            client, lines = self.ask(srv, "vitals 50")
            with client, lines:
                asking = threading.Thread(target=srv.get, args=("/",))
                asking.start()
                latest = 0
                while latest < 1000:  # the loop is still blocked: nothing has ended its turn
                    line = json.loads(lines.readline())
                    latest = line["workers"][0]["delay_max"] if "t" in line and "ms" in line else latest
                with open(release, "w", encoding="ascii"):
                    pass
                asking.join()

    def test_the_server_ends_while_somebody_looks(self):
        with Srv(self.app(HEALTHY)) as srv:
            client, lines = self.ask(srv, "vitals 20")
            with client, lines:
                lines.readline()
                srv.process.terminate()
                for _ in lines:
                    pass
                self.assertEqual(srv.process.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
