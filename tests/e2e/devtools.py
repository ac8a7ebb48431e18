"""Headless Chromium, driven step by step: the DevTools protocol over the browser's own pipe, with the standard library alone.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8080/", width=390)
        page.fill("#name", "Ann")
        page.press("Enter")
        page.wait("document.title === 'Rooms'")

Each Browser is a process with a profile of its own, and each page has cookies of its own. chromium.py runs a page to its end instead.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from srv_process import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
         "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--remote-debugging-pipe"]

KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")}


class Browser:
    def __init__(self, *flags):
        self.profile = tempfile.TemporaryDirectory(prefix="srv-browser-", ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()
        # The browser wants them at 3 and 4, which may be taken here.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *FLAGS, *flags, "--user-data-dir=" + self.profile.name, "about:blank"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, pass_fds=(3, 4), preexec_fn=place)
        for fd in (theirs_in, theirs_out, *ends):
            os.close(fd)
        self.last_id, self.rest, self.pages = 0, b"", {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.out)
        os.close(self.inp)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.profile.cleanup()

    def read(self, end):
        """The next message: an answer or an event."""
        while b"\0" not in self.rest:
            if not select.select([self.inp], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the browser does not answer")
            got = os.read(self.inp, 1 << 16)
            if not got:
                raise AssertionError("the browser has ended")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + 2 * PATIENCE
        while True:
            message = self.read(end)
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise AssertionError("%s: %s" % (method, message["error"]["message"]))
                return message["result"]
            if message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].note(message)

    def open(self, url, **view):
        """A page of its own that shows URL; WIDTH, HEIGHT, DARK: as Page.view."""
        page = Page(self)
        page.view(**view)
        page.go(url)
        return page


class Page:
    def __init__(self, browser):
        self.browser = browser
        self.said = []  # what the console said: errors, and what the policy has refused
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def close(self):
        self.browser.pages.pop(self.session)
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def note(self, message):
        method, params = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append("%s %s" % (params["entry"]["text"], params["entry"].get("url", "")))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))

    def view(self, width=1280, height=800, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script):
        """What the expression gives; promises are waited for."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"].get("exception", {}).get("description", done["exceptionDetails"]["text"]))
        return done["result"].get("value")

    def wait(self, script, what=None, patience=PATIENCE):
        """Until the expression holds, over loads of pages too; gives its value."""
        end, fault = time.monotonic() + patience, None
        while time.monotonic() < end:
            try:
                value = self.run(script)
                if value:
                    return value
            except AssertionError as error:  # what it asks for is not there yet
                fault = error
            time.sleep(0.02)
        raise AssertionError("in vain: %s\nfault: %s\nconsole: %s\npage: %s" % (
            what or script, fault, self.said, self.run("document.body && document.body.innerText.slice(-1500)")))

    def fill(self, selector, text):
        """Types TEXT, as a person would with the keyboard's help."""
        self.run("document.querySelector(%s).focus()" % json.dumps(selector))
        self.call("Input.insertText", text=text)

    def press(self, key, shift=False):
        code, text = KEYS[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector):
        x, y = self.run("(() => { const r = document.querySelector(%s).getBoundingClientRect();"
                        " return [r.x + r.width / 2, r.y + r.height / 2]; })()" % json.dumps(selector))
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def offline(self, is_offline):
        self.call("Network.emulateNetworkConditions", offline=is_offline, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def screenshot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
