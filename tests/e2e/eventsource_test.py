"""Server-sent events in a real browser: EventSource in headless Chromium, over a restart of the server.

The page tells the server what its EventSource was told, and the server logs it. Skipped where there is
no Chromium.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from srv_process import PATIENCE, Srv, write_app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

APP = """
local srv = require "srv"
local app = srv.app()
app:use(srv.helmet(), srv.compress())
app:static("/", "public")
app:get("/events", function(req, res)
  srv.log.info("comes", { last = req:header "last-event-id" or "never", cors = req:header "origin" or "same" })
  local events = res:sse()
  local last = tonumber(events.last_id) or 0
  events:send("one\\r\\ntwo\\rthree", { id = last + 1, retry = "50ms" })
  events:send({ n = last + 2 }, { id = last + 2, event = "tick" })
  events:comment "passed over"
  events:send(nil, { id = last + 3 })
  srv.sleep "1h"
end)
app:get("/enough", function(_, res) res:status(204):sse() end)
app:post("/told", function(req)
  srv.log.info("told", { what = req:text() })
  return nil, 204
end)
return app
"""

PAGE = """<!doctype html><title>events</title><script src="/page.js"></script>"""

SCRIPT = """
let turn = Promise.resolve();
const tell = what => { turn = turn.then(() => fetch("/told", { method: "POST", body: JSON.stringify(what) }).catch(() => {})); };
const note = e => tell({ type: e.type, data: e.data, id: e.lastEventId });
const source = new EventSource("/events");
source.onmessage = note;
source.addEventListener("tick", note);
const enough = new EventSource("/enough");
enough.onerror = () => tell({ type: "enough", state: enough.readyState });
"""


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class EventSource(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.app = write_app(os.path.join(self.folder.name, "app"), {
            "app.lua": APP, "public/page.html": PAGE, "public/page.js": SCRIPT})

    def tearDown(self):
        self.folder.cleanup()

    def browse(self, url):
        """A browser that shows URL until it is ended, with all its processes."""
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                   "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
                   "--user-data-dir=" + os.path.join(self.folder.name, "profile"), url]
        browser = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(browser.wait)
        self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)

    def told(self, srv, count):
        """The first COUNT things that the page has told this server of its stream."""
        found, start = [], 0
        while len(found) < count:
            line = srv.wait_line(r'"told".*"what":"(.*?[^\\])"[,}]', start, 2 * PATIENCE)
            start = 1 + next(i for i, text in enumerate(srv.lines) if text and line.group(0) in text
                             and i >= start)
            what = json.loads(json.loads('"%s"' % line.group(1)))
            if what["type"] != "enough":
                found.append(what)
        return found

    def test_a_browser_is_told_and_comes_back_to_where_it_was(self):
        with Srv(self.app, "--no-watch") as srv:
            port = srv.port
            self.browse(srv.url + "/page.html")
            self.assertEqual(self.told(srv, 2), [
                {"type": "message", "data": "one\ntwo\nthree", "id": "1"},
                {"type": "tick", "data": '{"n":2}', "id": "2"},
            ])
            srv.wait_line('"comes".*"last":"never"')
            self.assertEqual(srv.stop(), 0)
        with Srv(self.app, "--no-watch", port=port) as srv:
            srv.wait_line('"comes".*"last":"3"')  # of the event that had an id alone
            self.assertEqual([event["id"] for event in self.told(srv, 2)], ["4", "5"])

    def test_a_status_without_a_body_tells_a_browser_not_to_come_back(self):
        with Srv(self.app, "--no-watch") as srv:
            self.browse(srv.url + "/page.html")
            srv.wait_line(r'"told".*enough\\",\\"state\\":2', patience=2 * PATIENCE)  # CLOSED


if __name__ == "__main__":
    unittest.main()
