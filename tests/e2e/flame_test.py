"""srv flame: what it writes of a running app, and its page in a real browser (headless Chromium).

Pages come from tests/support/profile_sample.jsonl, through a spec that `srv test` runs. A script that is put behind the
page presses keys and writes down what it finds. The browser's part is skipped where there is no Chromium.
"""
import html
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from srv_process import BIN, PATIENCE, ROOT, Srv, run_to_end, wait_until, write_app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SAMPLE = os.path.join(ROOT, "tests", "support", "profile_sample.jsonl")
PAGE_BYTES_MAX = 150 * 1024

MAKE = """
local flame_diff, flame_page = require "srv.cli.flame_diff", require "srv.cli.flame_page"
local flame_profile = require "srv.cli.flame_profile"
local json = require "srv.base.json"
local function read(path)
  local profile = flame_profile.new()
  for text in io.lines(path) do assert(profile:take(assert(json.decode(text)))) end
  profile.app = "/srv/apps/slow"
  return profile
end
it("writes the page", function()
  local old = OLD and read(OLD)
  local profile = read(NEW)
  if old then flame_diff.align(old, profile) end
  local file = assert(io.open(PAGE, "wb"))
  file:write(flame_page.write(profile, old, WHOLE and math.huge))
  file:close()
end)
"""

TRAP = """<script>
window.faults = [];
addEventListener("error", event => faults.push(String(event.message)));
addEventListener("unhandledrejection", event => faults.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => faults.push(event.violatedDirective + " " + event.blockedURI));
for (const name of ["error", "warn"]) console[name] = (...words) => faults.push(words.join(" "));
</script>"""

SCRIPT = """<script>
(async () => {
  // Without a screen no frame is due, so what was to be drawn is drawn here.
  const settled = async () => { await new Promise(done => setTimeout(done, 20)); graph.draw(); };
  const ready = () => new Promise(done => {
    const look = () => (document.documentElement.dataset.ready || faults.length) && done();
    new MutationObserver(look).observe(document, { attributes: true, childList: true, subtree: true });
    look();
  });
  const $ = id => document.getElementById(id), text = id => $(id).textContent.replace(/\\s+/g, " ").trim();
  const press = async (key, on = document.body) => {
    on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await settled();
  };
  const type = async (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event($(id).tagName === "SELECT" ? "change" : "input")); await settled(); };
  const names = () => graph.drawn.map(({ node }) => shown.fns[tree.fn[node]].name);
  const chosen = () => graph.selected ? shown.fns[tree.fn[graph.selected]].name : null;
  const rows = id => [...$(id).querySelectorAll("tbody tr")].map(row => [...row.cells].map(cell => cell.textContent.trim()));
  const found = {};
  await ready();
  try { await settled(); %s } catch (error) { faults.push("in the test: " + error.message); }
  found.faults = faults;
  found.loaded = performance.getEntriesByType("resource").map(entry => entry.name);
  document.body.append(Object.assign(document.createElement("pre"), { id: "result", textContent: JSON.stringify(found) }));
})();
</script>"""

FRAME = """<!doctype html><meta charset="utf-8"><iframe id="frame" style="border:0;width:%(width)dpx;height:2400px"></iframe><script>
frame.onload = () => {
  const page = frame.contentDocument;
  const look = () => {
    if (!page.documentElement.dataset.ready || document.getElementById("result")) return;
    const inBox = e => e.closest(".scroll, canvas, [hidden]");
    document.body.append(Object.assign(document.createElement("pre"), { id: "result", textContent: JSON.stringify({
      overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      wide: [...page.body.querySelectorAll("*")].filter(e => !inBox(e) && e.getBoundingClientRect().right > %(width)d + 1).map(e => e.tagName + "#" + e.id),
      unlabelled: [...page.querySelectorAll("input, select")].filter(e => !e.labels.length && !e.getAttribute("aria-label")).map(e => e.id),
      nameless: [...page.querySelectorAll("button")].filter(e => !e.textContent.trim() && !e.getAttribute("aria-label")).length,
    }) }));
  };
  new MutationObserver(look).observe(page.documentElement, { attributes: true });
  look();
};
frame.src = "page.html";
</script>"""


def wide_sample(path, stacks):
    """STACKS distinct stacks of 3 to 30 frames, as a server tells them."""
    state = 1
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"profiling":true,"hz":1000,"workers":2}\n')
        for i in range(800):
            out.write('{"frame":%d,"name":"f%d","file":"m%d.lua","line":%d,"defined":1,"kind":"%s"}\n' % (
                i, i, i % 50, i + 2, ("app", "srv", "c")[i % 3]))
        for i in range(stacks):
            depth, stack = 3 + i % 28, []
            for level in range(depth):
                state = (state * 1103515245 + 12345) % 2 ** 31
                stack.append((level * 25 + (state >> 16) % (2 if level < 12 else 6)) % 800)
            out.write('{"worker":%d,"state":"lua","stack":%s,"count":%d}\n' % (i % 2, json.dumps(stack), 1 + i % 7))
        out.write('{"done":true,"samples":%d,"waits":0,"lost":0,"seconds":9,"hz":1000,"wait_ms":10,"silent":[]}\n' % (stacks * 4))


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="srv-flame-", ignore_cleanup_errors=True)
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class Page(Folder):
    def make(self, new=SAMPLE, old=None, whole=False):
        """The page of NEW beside OLD. WHOLE: nothing is put together to keep it small."""
        spec = "local PAGE, NEW, OLD, WHOLE = %s, %s, %s, %s\n" % tuple(
            json.dumps(value) if value else "nil" for value in (self.path("plain.html"), new, old, whole)) + MAKE
        write_app(self.folder, {"app.lua": "return require('srv').app()", "spec/make_spec.lua": spec})
        status, output = run_to_end("test", self.folder, patience=4 * PATIENCE)
        self.assertEqual(status, 0, output)
        return self.read("plain.html")

    def dump(self, name, hash_text=""):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--allow-file-access-from-files",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,1000",
                   "--virtual-time-budget=20000", "--user-data-dir=" + self.path("profile"), "--dump-dom",
                   "file://" + self.path(name) + hash_text]
        done = subprocess.run(command, text=True, errors="replace", timeout=4 * PATIENCE, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        result = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.S)
        self.assertIsNotNone(result, done.stdout[-2000:])
        return json.loads(html.unescape(result.group(1)))

    def look(self, page, script, hash_text=""):
        """What SCRIPT puts into `found`."""
        page = page.replace("<head>", "<head>" + TRAP, 1).replace("</body>", SCRIPT % script + "</body>")
        with open(self.path("page.html"), "w", encoding="utf-8") as out:
            out.write(page)
        found = self.dump("page.html", hash_text)
        self.assertEqual(found["faults"], [])
        self.assertEqual(found["loaded"], [])
        return found

    def look_live(self, page, script):
        """The same with a clock that runs, for times: the page goes to us when it is done, and takes what it found along."""
        told = []

        class Listener(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                told.append(json.loads(urllib.parse.unquote(self.path.split("?", 1)[1])))

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server:
            goes = "location.href = `http://127.0.0.1:%d/?` + encodeURIComponent(JSON.stringify(found));" % server.server_port
            page = page.replace("<head>", "<head>" + TRAP, 1).replace("</body>", (SCRIPT % script).replace(
                "document.body.append", goes + " document.body.append") + "</body>")
            with open(self.path("page.html"), "w", encoding="utf-8") as out:
                out.write(page)
            browser = subprocess.Popen(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1280,1000",
                 "--remote-debugging-port=0", "--user-data-dir=" + self.path("profile"), "file://" + self.path("page.html")],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            self.addCleanup(browser.wait)
            self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)
            server.timeout = 4 * PATIENCE
            server.handle_request()
        self.assertTrue(told, "the page told nothing")
        return told[0]

    def test_it_is_small_asks_nobody_and_points_at_the_guilty_line(self):
        page = self.make()
        self.assertLess(len(page), PAGE_BYTES_MAX)
        found = self.look(page, """
          found.title = document.title;
          found.tiles = [...document.querySelectorAll(".tile")].map(tile => tile.textContent);
          found.sites = rows("sites");
          found.chosen = [chosen(), text("chosen")];
          found.link = $("sites").querySelector("a").href;
        """)
        self.assertEqual(found["title"], "slow - srv flame")
        self.assertTrue(found["tiles"][0].startswith("cache.lua:17 in find73.2 %"), found["tiles"])
        self.assertTrue(found["tiles"][1].startswith("find cache.lua:1478.5 %"), found["tiles"])
        self.assertEqual(found["chosen"][0], "find")
        self.assertIn("Its lines, with what they call: :17 73.2 % :18 9.1 %", found["chosen"][1])
        self.assertEqual(found["sites"][0], ["73.2 %", "2.8 s", "cache.lua:17", "find"])
        self.assertEqual(found["link"], "vscode://file/srv/apps/slow/cache.lua:17")

    def test_the_hottest_functions_are_walked_by_keys(self):
        found = self.look(self.make(), """
          await press("n"); found.first = [chosen(), text("walked"), text("chosen")];
          await press("n"); found.second = chosen();
          await press("p"); found.back = chosen();
          await press("p"); found.end = chosen();
        """)
        self.assertEqual((found["first"][0], found["first"][1]), ("find", "hottest 1 of 6"))
        self.assertIn("self 78.5 % (3 s, 3,004 samples)", found["first"][2])
        self.assertIn(":17 73.2 %", found["first"][2])
        self.assertEqual((found["second"], found["back"], found["end"]), ("writev", "find", "find"))

    def test_keys_move_and_zoom_in_the_graph_and_the_address_remembers(self):
        found = self.look(self.make(), """
          const canvas = $("graph");
          choose(0); canvas.focus(); await settled(); found.start = chosen();
          await press("ArrowDown", canvas); found.down = chosen();
          await press("ArrowUp", canvas); await press("ArrowRight", canvas); found.right = chosen();
          await press("ArrowLeft", canvas); await press("ArrowDown", canvas); await press("Enter", canvas);
          found.zoomed = [text("crumbs"), location.hash, graph.drawn.filter(({ wide }) => wide === graph.wide).length];
          await press("Backspace", canvas); found.out = text("crumbs");
          await press("Escape", canvas); found.all = [text("crumbs"), location.hash];
          history.back(); await settled(); await settled(); found.back = graph.zoomed > 0;
        """)
        self.assertEqual((found["start"], found["down"], found["right"]), ("GET /a", "call", "loop_run"))
        self.assertEqual(found["zoomed"][0], "all› GET /a› call")
        self.assertRegex(found["zoomed"][1], r"#zoom=\d+\.\d+$")
        self.assertGreaterEqual(found["zoomed"][2], 2)
        self.assertEqual(found["out"], "all› GET /a")
        self.assertEqual(found["all"], ["all", ""])
        self.assertTrue(found["back"])

    def test_search_marks_and_counts_by_text_and_by_regex(self):
        found = self.look(self.make(), """
          await press("/"); found.focus = document.activeElement.id;
          await type("search", "FIND"); found.text = [text("matched"), rows("functions").map(row => row[0])];
          await type("search", "/^(json|gc_)/"); found.regex = text("matched");
          await type("search", "/(/"); found.broken = text("matched");
          await press("Escape", $("search")); found.ended = [text("matched"), $("search").value, document.activeElement.id];
        """)
        self.assertEqual(found["focus"], "search")
        self.assertEqual(found["text"], ["82.3 % in 1 function", ["find"]])
        self.assertEqual(found["regex"], "2.7 % in 2 functions")
        self.assertEqual(found["broken"], "no regular expression")
        self.assertEqual(found["ended"], ["", "", "graph"])

    def test_a_kind_that_is_off_gives_its_time_to_its_caller(self):
        found = self.look(self.make(), """
          const box = kind => document.querySelector(`#kinds input[value=${kind}]`);
          found.before = names().includes("gc_sweep");
          box("gc").click(); await settled();
          found.after = [names().includes("gc_sweep"), location.hash, shown.all[0], rows("functions")[0].slice(0, 2)];
          box("c").click(); box("compile").click(); await settled();
          found.lua = [...new Set(shown.functions.filter(one => one.self[0]).map(one => one.fn.name))].sort();
        """)
        self.assertTrue(found["before"])
        self.assertEqual(found["after"], [False, "#hide=gc", 3826, ["find", "79.7 %"]])
        self.assertEqual(found["lua"], ["GET /a", "find"])

    def test_what_the_address_says_is_shown(self):
        found = self.look(self.make(), """
          found.state = [state.view, state.worker, [...state.hidden], $("inverted").checked, $("search").value, $("worker").value];
          found.roots = tree.children[0].map(node => shown.fns[tree.fn[node]].name);
          found.samples = shown.all[0];
        """, "#worker=1&hide=gc,nonsense&inverted=1&search=find&zoom=99.x")
        self.assertEqual(found["state"], ["cpu", 1, ["gc"], True, "find", "1"])
        self.assertEqual(found["roots"], ["find", "writev"])
        self.assertEqual(found["samples"], 1689)

    def test_waiting_is_told_by_what_is_waited_for_and_where(self):
        found = self.look(self.make(), """
          await press("w");
          found.sites = rows("sites"); found.names = names(); found.tab = $("tab-waiting").getAttribute("aria-selected");
          await press("ArrowLeft", $("tab-waiting")); found.back = state.view;
        """)
        self.assertEqual(found["sites"][0], ["95.0 %", "23 s", "postgres", "routes/b.lua:7", "routes/b.lua:5", "GET /b"])
        self.assertTrue({"postgres", "sleep", "query"} <= set(found["names"]))
        self.assertEqual((found["tab"], found["back"]), ("true", "cpu"))

    def test_lines_are_frames_of_their_own_when_asked_for(self):
        found = self.look(self.make(), """
          found.before = shown.functions.filter(one => one.fn.name === "find" && one.total[0]).length;
          await press("l");
          found.after = rows("functions").filter(row => row[0] === "find").map(row => row.slice(1, 4));
        """)
        self.assertEqual(found["before"], 1)
        self.assertEqual(found["after"], [["73.2 %", "73.2 %", "cache.lua:17"], ["5.3 %", "9.1 %", "cache.lua:18"]])

    def test_the_table_is_sorted_and_chooses_without_a_pointer(self):
        found = self.look(self.make(), """
          const head = key => $("functions").querySelector(`[data-key=${key}]`);
          head("total").click(); await settled();
          found.sorted = [head("total").closest("th").getAttribute("aria-sort"), document.activeElement.dataset.key, rows("functions")[0][0]];
          $("functions").querySelector("tbody button").click(); await settled();
          found.chosen = [chosen(), $("functions").querySelectorAll(".is-chosen").length];
          found.focusable = [...document.querySelectorAll("#functions tbody tr")].every(row => row.querySelector("button"));
        """)
        self.assertEqual(found["sorted"], ["descending", "total", "GET /a"])
        self.assertEqual(found["chosen"], ["GET /a", 1])
        self.assertTrue(found["focusable"])

    def test_a_comparison_shows_what_is_more_less_new_and_gone(self):
        old = self.path("old.jsonl")
        with open(SAMPLE, encoding="utf-8") as sample, open(old, "w", encoding="utf-8") as out:
            out.write(sample.read().replace('"count":1411', '"count":141').replace('"gc_sweep"', '"gc_other"'))
        page = self.make(old=old)
        self.assertLess(len(page), PAGE_BYTES_MAX)
        found = self.look(page, """
          const node = name => tree.nodesOf(shown.functions.find(one => one.fn.name === name && (one.total[0] || one.total[1])).number)[0];
          const hue = name => Number(nodeColour(node(name)).match(/hsl\\((\\d+)/)[1]);
          found.colours = $("colours").value;
          found.hues = [hue("find"), hue("writev")];
          found.labels = [nodeLabel(node("gc_sweep")), nodeLabel(node("gc_other"))];
          found.rows = rows("functions").filter(row => ["find", "gc_other"].includes(row[0]));
          found.width = graph.width(node("gc_other"));
          await type("widths", "1"); found.before = graph.width(node("gc_other"));
        """)
        self.assertEqual(found["colours"], "change")
        self.assertEqual(found["hues"], [4, 215])
        self.assertEqual(found["labels"], ["[new] gc_sweep lj_gc.c", "[gone] gc_other lj_gc.c"])
        self.assertEqual([row[0] for row in found["rows"]], ["find", "gc_other"])
        self.assertRegex(found["rows"][1][4], "^gone")
        self.assertEqual((found["width"], found["before"]), (0, 44))

    def test_names_are_text_whatever_they_hold(self):
        evil = self.path("evil.jsonl")
        with open(SAMPLE, encoding="utf-8") as sample, open(evil, "w", encoding="utf-8") as out:
            out.write(sample.read().replace('"name":"find"', '"name":"</script><img src=x onerror=faults.push(1)>"'))
        found = self.look(self.make(evil), """
          await press("n"); found.chosen = chosen(); found.images = document.images.length;
        """)
        self.assertEqual(found["images"], 0)
        self.assertTrue(found["chosen"].startswith("</script><img"))

    def test_twenty_thousand_stacks_are_drawn_at_once(self):
        wide_sample(self.path("wide.jsonl"), 20000)
        page = self.make(self.path("wide.jsonl"), whole=True)
        found = self.look_live(page, """
          const took = work => { const began = performance.now(); work(); return performance.now() - began; };
          found.nodes = tree.fn.length;
          found.read = took(() => { shown = model.show(state); tree = shown.tree(false); graph.show(tree); });
          found.draw = took(() => graph.draw());
          found.again = took(() => graph.draw());
          found.inverted = took(() => shown.tree(true));
          found.drawn = graph.drawn.length;
        """)
        self.assertEqual(found["faults"], [])
        print("\n  20,000 stacks: %(nodes)d frames, %(drawn)d drawn; read %(read).0f ms, draw %(draw).1f ms, again %(again).1f ms, "
              "bottom-up %(inverted).0f ms" % found)
        self.assertLess(found["again"], 5000)  # for what takes milliseconds

    def test_it_fits_phone_and_desk_and_everything_has_a_name(self):
        page = self.make()
        with open(self.path("page.html"), "w", encoding="utf-8") as out:
            out.write(page)
        for width in (360, 390, 1280):
            with open(self.path("frame.html"), "w", encoding="utf-8") as out:
                out.write(FRAME % {"width": width})
            self.assertEqual(self.dump("frame.html"), {"overflow": 0, "wide": [], "unlabelled": [], "nameless": 0}, width)


HEAVY = """local srv = require "srv"
local app = srv.app()
local function guilty(n)
  local sum = 0
  for i = 1, n do sum = (sum * 31 + i) % 65521 end
  return sum
end
app:get("/", function() return { sum = guilty(3e6) } end)
app:get("/sleep", function() srv.sleep(0.05) return "ok" end)
return app
"""


class Command(Folder):
    def flame(self, *args, patience=4 * PATIENCE):
        return run_to_end("flame", "--dest", self.path("page.html"), *args, patience=patience)

    def heavy(self):
        return write_app(self.path("heavy"), {"app.lua": HEAVY})

    def test_the_guilty_function_is_the_hottest(self):
        status, output = self.flame(self.heavy(), "--load", "[ -c 40 -d 2 / /sleep ]", "--json", self.path("a.json"),
                                    "--folded", self.path("a.folded"), "--speedscope", self.path("a.speedscope.json"),
                                    "--title", "guilty or not", "--", "--workers", "2")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"total  function\n +\d+\.\d %  +\d+\.\d %  guilty +app\.lua:3")
        self.assertRegex(output, r"with what they call\n +\d+\.\d %  app\.lua:5 +in guilty")
        self.assertRegex(output, r"added up\n +\d+\.\d s  sleep +app\.lua:9 +GET /sleep")
        self.assertLess(os.path.getsize(self.path("page.html")), PAGE_BYTES_MAX)
        profile = json.loads(self.read("a.json"))
        self.assertEqual({stack["worker"] for stack in profile["stacks"] if stack["state"] != "wait"}, {0, 1})
        self.assertEqual(profile["title"], "guilty or not")
        folded = [line.rsplit(" ", 1) for line in self.read("a.folded").splitlines()]
        self.assertEqual(sum(int(count) for _, count in folded), profile["samples"])
        self.assertIn("guilty", max(folded, key=lambda line: int(line[1]))[0])
        self.assertEqual(len(json.loads(self.read("a.speedscope.json"))["shared"]["frames"]), len(profile["frames"]))

        status, output = self.flame(self.path("heavy"), "--load", "[ -c 4 -d 1 / ]", "--diff", self.path("a.json"))
        self.assertEqual(status, 0, output)
        self.assertIn("Against the earlier run", output)

    def test_hello_is_sampled_in_the_server_itself(self):
        status, output = self.flame("apps/hello", "--load", "[ -c 8 -d 1 / ]", "-q", "--json", "-")
        self.assertEqual(status, 0, output)
        profile = json.loads(output)
        self.assertGreater(profile["samples"], 20)
        self.assertIn("GET /", {frame.get("name") for frame in profile["frames"] if frame["kind"] == "task"})
        self.assertTrue(any(frame["kind"] == "c" for frame in profile["frames"]))

    def test_a_load_of_ones_own_has_the_port_and_ends_the_recording(self):
        status, output = self.flame(self.heavy(), "--on-port", "for i in 1 2 3 4 5 6; do %s bench -n -c 1 -a 5 /; done; echo port=$PORT" % BIN)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"port=\d+")
        self.assertIn("guilty", output)

    def load(self, srv):
        """Asks SRV until the test ends."""
        stop = threading.Event()

        def run():
            while not stop.is_set():
                srv.get("/")

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)

    def test_a_running_server_is_looked_at_by_one_at_a_time_and_runs_on(self):
        with Srv(self.heavy(), workers=2) as srv:
            self.load(srv)
            first = self.start("--attach", str(srv.process.pid))
            self.wait_recording(first)
            status, output = self.flame("--attach", str(srv.process.pid), "-d", "1")
            self.assertEqual(status, 1, output)
            self.assertIn("busy", output)
            time.sleep(1)  # of samples
            first.send_signal(signal.SIGINT)
            output, _ = first.communicate(timeout=2 * PATIENCE)
            self.assertEqual(first.returncode, 0, output)
            self.assertIn("guilty", output)
            self.assertTrue(os.path.exists(self.path("page.html")))
            self.assertEqual(srv.get("/sleep")[0], 200)
            self.doCleanups()

    def start(self, *args):
        process = subprocess.Popen([BIN, "flame", *args, "--dest", self.path("page.html")], cwd=ROOT, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def wait_recording(self, process):
        for line in process.stdout:
            if "Ctrl-C ends the recording" in line:
                return line
        self.fail("it never recorded")

    def test_ctrl_c_ends_the_recording_and_the_page_is_written(self):
        process = self.start(self.heavy())
        port = int(re.search(r":(\d+): load it now", self.wait_recording(process)).group(1))
        subprocess.run([BIN, "bench", "-n", "-c", "2", "-a", "60", "http://127.0.0.1:%d/" % port], timeout=2 * PATIENCE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        self.assertEqual(process.wait(PATIENCE), 0, output)
        self.assertIn("guilty", output)
        self.assertIn("srv flame", self.read("page.html"))

    def test_ctrl_c_before_the_recording_ends_what_was_started(self):
        app = write_app(self.path("slow"), {"app.lua": """
local file = assert(io.open("%s", "w"))
file:write(io.open("/proc/self/stat"):read("*a"):match("^%%d+"))
file:close()
os.execute("sleep 30")
return require("srv").app()
""" % self.path("pid")})
        process = self.start(app)
        wait_until(lambda: os.path.exists(self.path("pid")) and self.read("pid"), "the app begins to load")
        process.send_signal(signal.SIGINT)
        output = process.stdout.read()
        self.assertEqual(process.wait(PATIENCE), 1, output)
        self.assertIn("interrupted", output)
        wait_until(lambda: not os.path.exists("/proc/" + self.read("pid")), "the server is gone")

    def test_an_app_whose_settings_close_its_admin_socket_is_sampled_too(self):
        app = write_app(self.heavy(), {"config.lua": "return { admin = false }"})
        status, output = self.flame(app, "--load", "[ -c 1 -a 40 / ]")
        self.assertEqual(status, 0, output)

    def test_a_load_that_fails_is_told_and_what_was_sampled_is_kept(self):
        status, output = self.flame(self.heavy(), "--on-port", "%s bench -n -c 1 -a 40 /; exit 3" % BIN)
        self.assertEqual(status, 1, output)
        self.assertIn("the load ended with 3", output)
        self.assertTrue(os.path.exists(self.path("page.html")))

    def test_a_terminal_sees_how_far_it_is_and_a_duration_ends_the_load(self):
        master, terminal = os.openpty()
        process = subprocess.Popen([BIN, "flame", self.heavy(), "--load", "[ -c 2 -d 60 / ]", "-d", "1", "--dest", self.path("page.html")],
                                   stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True)
        self.addCleanup(os.close, master)
        self.addCleanup(process.kill)
        os.close(terminal)
        seen = b""
        while process.poll() is None or b"The page:" not in seen:
            try:
                seen += os.read(master, 4096)
            except OSError:  # nobody writes any more
                break
        text = seen.decode(errors="replace")
        self.assertEqual(process.wait(2 * PATIENCE), 0, text)
        self.assertRegex(text, r"recording\S* \d\.\d s of 1 s .*until the load ends")
        self.assertRegex(text, r"the load: [\d,]+ answered")

    def test_the_page_is_shown_when_asked_for(self):
        tools = write_app(self.path("tools"), {"xdg-open": "#!/bin/sh\necho \"$1\" > %s\n" % self.path("shown")})
        os.chmod(os.path.join(tools, "xdg-open"), 0o755)
        status, output = run_to_end("flame", self.heavy(), "--load", "[ -c 1 -a 40 / ]", "--open", "--dest", self.path("page.html"),
                                    env={"PATH": tools + ":" + os.environ["PATH"]}, patience=4 * PATIENCE)
        self.assertEqual(status, 0, output)
        self.assertEqual(self.read("shown"), self.path("page.html") + "\n")
        self.assertRegex(output, r"the load: 40 answered, [\d,]+/s, p50 \S+ \S+, p99 \S+ \S+, none failed")

    def test_a_worker_that_never_comes_back_is_why_there_are_no_samples(self):
        app = write_app(self.path("stuck"), {"app.lua": HEAVY.replace("return app", 'app:get("/stuck", function() while true do end end)\nreturn app')})
        status, output = self.flame(app, "--load", "[ -c 1 -d 1 /stuck ]", "--", "--workers", "1", "--slice_limit", "60s")
        self.assertEqual(status, 1, output)
        self.assertIn("worker 0 was busy with one turn", output)

    def test_what_cannot_be_done_is_said(self):
        broken = write_app(self.path("broken"), {"app.lua": "return nonsense("})
        other = self.path("other.json")
        with open(other, "w", encoding="utf-8") as out:
            out.write("{}")
        for args, status, text in (
                ((), 2, "which APP?"), (("a", "b"), 2, "which APP?"), (("a", "--attach", "1"), 2, "no APP beside it"),
                (("a", "--hz", "5000"), 2, "1 to 1000"), (("a", "--load", "[ / ]", "--on-port", "true"), 2, "not both"),
                (("--attach", str(os.getpid())), 1, "no server of yours"), ((broken, "-d", "1"), 1, "app.lua"),
                ((self.path("nowhere"), "-d", "1"), 1, "ended with"), (("apps/hello", "--diff", other), 1, "no profile that srv flame"),
                (("apps/hello", "-d", "0.2", "--hz", "1"), 1, "nothing was sampled")):
            with self.subTest(args=args):
                self.assertEqual(self.flame(*args)[0], status)
                self.assertIn(text, self.flame(*args)[1])
        self.assertFalse(os.path.exists(self.path("page.html")))

    def test_help_tells_all_options(self):
        status, output = run_to_end("flame", "--help")
        self.assertEqual(status, 0)
        for option in ("--load", "--on-port", "--attach", "--hz", "--dest", "--folded", "--speedscope", "--diff", "--open"):
            self.assertIn(option, output)
        self.assertIn("Exit status", output)


if __name__ == "__main__":
    unittest.main()
