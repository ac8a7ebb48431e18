"""A thousand sockets in one room of apps/chat, on two workers: each message reaches all of them, and a reload of the app under way loses
nothing, since all come back and ask for what they have missed."""
import collections
import http.client
import json
import os
import resource
import selectors
import shutil
import tempfile
import time
import unittest

from srv_process import PATIENCE, ROOT, Srv
from websocket_client import CLOSE, PING, PONG, TEXT, WebSocket

SOCKETS = 1000
PEOPLE = 100
SERVICE_RESTART = 1012


def take_frame(data):
    """(kind, what it holds, the rest), or nothing yet. A server sends short ones, whole, and masks none."""
    if len(data) < 2:
        return None
    length, at = data[1] & 127, 2
    if length == 126:
        length, at = int.from_bytes(data[2:4], "big"), 4
    elif length == 127:
        length, at = int.from_bytes(data[2:10], "big"), 10
    if len(data) < at + length:
        return None
    return data[0] & 15, data[at:at + length], data[at + length:]


class Guest:
    """One socket, and what a page does with it: numbers without a gap, asked for where the socket has left one; what was said and did
    not come back is said again."""

    def __init__(self, crowd, cookie):
        self.crowd, self.cookie = crowd, cookie
        self.last, self.early, self.count = 0, {}, 0
        self.closes, self.outbox = [], {}
        self.connect()

    def connect(self):
        self.ws = WebSocket(self.crowd.srv, "/rooms/lobby/socket", {"Cookie": self.cookie})
        self.crowd.selector.register(self.ws.socket, selectors.EVENT_READ, self)

    def come_back(self):
        self.crowd.selector.unregister(self.ws.socket)
        self.ws.cut()
        self.connect()
        self.read_frames()

    def say(self, text):
        nonce = os.urandom(12).hex()
        self.outbox[nonce] = json.dumps({"text": text, "nonce": nonce})
        self.ws.send(self.outbox[nonce])

    def on_readable(self):
        data = self.ws.socket.recv(1 << 16)
        if not data:
            return self.come_back()
        self.ws.buffer += data
        return self.read_frames()

    def read_frames(self):
        while True:
            found = take_frame(self.ws.buffer)
            if not found:
                return None
            kind, held, self.ws.buffer = found
            if kind == TEXT:
                self.on_event(json.loads(held))
            elif kind == PING:
                self.ws.send(held, PONG)
            elif kind == CLOSE:
                self.closes.append(int.from_bytes(held[:2], "big"))
                return self.come_back()

    def on_event(self, event):
        if event["type"] == "message":
            self.take(event)
        elif event["type"] == "hello":
            for waiting in list(self.outbox.values()):
                self.ws.send(waiting)
            if event["last"] > self.last:
                self.fill()
        elif event["type"] == "here":
            self.count = event["count"]

    def take(self, message):
        self.outbox.pop(message["nonce"], None)
        if message["number"] <= self.last:
            return
        self.early[message["number"]] = message["text"]
        while self.last + 1 in self.early:
            self.last += 1
            self.crowd.heard(self, self.last, self.early.pop(self.last))
        if self.early:
            self.fill()

    def fill(self):
        self.crowd.asked += 1
        for message in self.crowd.ask("/rooms/lobby/messages?after=%d" % self.last, self.cookie)["messages"]:
            self.take(message)


class Crowd:
    def __init__(self, case, srv):
        self.case, self.srv = case, srv
        self.selector = selectors.DefaultSelector()
        self.connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=PATIENCE)
        self.asked = 0                                     # times that something was missing
        self.texts, self.reached = {}, collections.Counter()  # number -> text; number -> sockets that have it
        cookies = [self.sign_in("Guest %d" % i) for i in range(PEOPLE)]
        self.guests = [Guest(self, cookies[i % PEOPLE]) for i in range(SOCKETS)]

    def close(self):
        self.connection.close()
        for guest in self.guests:
            guest.ws.cut()
        self.selector.close()

    def sign_in(self, name):
        status, headers, _ = self.srv.request("POST", "/sign-in", "name=" + name.replace(" ", "+"),
                                              {"Content-Type": "application/x-www-form-urlencoded"})
        self.case.assertEqual(status, 303)
        return headers["set-cookie"].split(";")[0]

    def ask(self, path, cookie):
        self.connection.request("GET", path, headers={"Cookie": cookie})
        answer = self.connection.getresponse()
        body = answer.read()
        self.case.assertEqual(answer.status, 200, body)
        if answer.getheader("connection") == "close":
            self.connection.close()
        return json.loads(body)

    def heard(self, guest, number, text):
        self.case.assertEqual(self.texts.setdefault(number, text), text)
        self.reached[number] += 1

    def run_until(self, claim, what):
        end = time.monotonic() + 2 * PATIENCE
        while not claim():
            self.case.assertLess(time.monotonic(), end, "in vain: %s; reached %s" % (what, dict(self.reached)))
            for key, _ in self.selector.select(0.2):
                if key.fileobj.fileno() >= 0:
                    key.data.on_readable()

    def all_have(self, number):
        self.run_until(lambda: all(guest.last >= number for guest in self.guests), "all have number %d" % number)


class CrowdTest(unittest.TestCase):
    def setUp(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limits[1] < 2 * SOCKETS + 200:
            self.skipTest("too few files may be open here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        self.folder = tempfile.mkdtemp(prefix="srv-crowd-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.app = os.path.join(self.folder, "chat")
        shutil.copytree(os.path.join(ROOT, "apps", "chat"), self.app, ignore=shutil.ignore_patterns("*.db*"))

    def start(self):
        srv = Srv(self.app, "--log-level", "warn", workers=2, env={"SIGN_INS": "100000"})
        self.addCleanup(srv.kill)
        crowd = Crowd(self, srv)
        self.addCleanup(crowd.close)
        return srv, crowd

    def test_a_message_reaches_a_thousand_sockets_and_a_reload_loses_nothing(self):
        srv, crowd = self.start()
        texts = []

        def say(count, how):
            for i in range(count):
                texts.append("%s %d" % (how, i))
                crowd.guests[len(texts) * 7 % SOCKETS].say(texts[-1])  # nobody is too fast

        say(20, "at rest")
        crowd.all_have(20)
        crowd.run_until(lambda: crowd.guests[0].count == PEOPLE, "all are counted")
        self.assertEqual(set(crowd.reached.values()), {SOCKETS})

        with open(os.path.join(self.app, "app.lua"), "a", encoding="utf-8") as out:
            out.write("-- edited\n")
        said = 20
        while not all(guest.closes for guest in crowd.guests):  # until the last one has been told to come back
            self.assertLess(said, 400, "some were never told")
            say(5, "under way")
            said += 5
            crowd.all_have(said)
        self.assertEqual({tuple(guest.closes) for guest in crowd.guests}, {(SERVICE_RESTART,)})

        say(20, "after")
        crowd.all_have(said + 20)
        self.assertEqual(sorted(crowd.texts), list(range(1, said + 21)))
        self.assertEqual(sorted(crowd.texts.values()), sorted(texts))
        self.assertEqual(set(crowd.reached.values()), {SOCKETS})
        self.assertNotIn('"level":50', srv.output)


if __name__ == "__main__":
    unittest.main()
