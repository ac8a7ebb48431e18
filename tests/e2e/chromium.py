"""A file opened in headless Chromium, as a reader would: what its console says, and what a script finds in it."""
import html
import json
import os
import re
import shutil
import subprocess
import tempfile

from srv_process import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

PROBE = """<!doctype html><title>probe</title>
<iframe id="frame" style="border:0;width:%(width)dpx;height:2000px"></iframe><pre id="result"></pre>
<script>
const frame = document.getElementById("frame");
frame.onload = () => setTimeout(() => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const found = (%(script)s)(page, view);
  document.getElementById("result").textContent = JSON.stringify(found);
}, 300);
frame.src = %(path)s;
</script>
"""

# What holds for each page: nothing is wider than the window, nothing was loaded.
COMMON = """page => ({
  overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
  loaded: page.defaultView.performance.getEntriesByType("resource").map(entry => entry.name),
  title: page.title,
})"""


def run(url, *flags):
    """(document after its scripts, what the console said)"""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=5000",
             "--window-size=1400,2100", "--user-data-dir=" + profile, "--dump-dom", *flags, url],
            text=True, errors="replace", timeout=4 * PATIENCE, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def probe(path, width, script=COMMON):
    """(what SCRIPT, a function of the page's document and window, gives at WIDTH; what the console said)"""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "probe.html")
        with open(name, "w", encoding="utf-8") as out:
            out.write(PROBE % {"width": width, "script": script, "path": json.dumps("file://" + path)})
        document, console = run("file://" + name)
    found = re.search(r'<pre id="result">(.+?)</pre>', document, re.S)
    if not found:
        raise AssertionError("the page was not shown: %s\n%s" % (console, document[:2000]))
    return json.loads(html.unescape(found.group(1))), console
