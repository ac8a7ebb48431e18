"""WebSockets of an app and the clients that people have: python3-websockets, a browser, HTTP/2 (python3-h2), and our own
over TLS. Each is skipped where it is not installed."""
import asyncio
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from certificates import Certificates
from srv_process import PATIENCE, Srv, write_app

# The first python3 of PATH need not be Debian's, whose packages it can read all the same.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import websockets
except ImportError:
    websockets = None
try:
    import h2.config
    import h2.connection
    import h2.events
except ImportError:
    h2 = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

APP = """
local srv = require "srv"
local app = srv.app()
app:static("/", "public")
app:ws("/echo", { protocols = { "v1" }, limit = "2MiB" }, function(ws)
  for message, kind in ws:messages() do
    srv.log.info("heard", { kind = kind, what = #message < 100 and message or #message })
    ws:send(message, kind)
  end
  srv.log.info("left", { code = ws.close_code, reason = ws.close_reason })
end)
app:ws("/who", function(ws, req) ws:send { req.method, req.protocol, req.secure, req.path, req.tls and "TLS" or srv.null } end)
-- Our own client, to a server that it trusts, and to one that it does not.
app:get("/call", function(req)
  local ws, err = srv.websocket(req.query.url, { tls = req.query.ca and { ca = req.query.ca } })
  if not ws then return { code = err.code } end
  return { got = (ws:receive()) }
end)
return app
"""

PAGE = """<!doctype html><title>socket</title><script src="/page.js"></script>"""

SCRIPT = """
const at = location.hash ? location.hash.slice(1) : location.host;
const socket = new WebSocket("ws://" + at + "/echo", ["v0", "v1"]);
socket.binaryType = "arraybuffer";
socket.onopen = () => socket.send("hello from " + socket.protocol);
let step = 0;
socket.onmessage = event => {
  if (step++ === 0) return socket.send(new Uint8Array([1, 2, 255]));
  if (step === 2) return socket.send("x".repeat(1 << 20));
  socket.close(4001, "got " + event.data.length);
};
"""


class Clients(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.app = write_app(os.path.join(self.folder.name, "app"), {
            "app.lua": APP, "public/page.html": PAGE, "public/page.js": SCRIPT})

    def tearDown(self):
        self.folder.cleanup()

    @unittest.skipUnless(websockets, "no python3-websockets here")
    def test_python_websockets_echoes_sizes_kinds_and_fragments_and_pings(self):
        async def talk(url):
            async with websockets.connect(url, subprotocols=["v1"], max_size=None) as ws:
                self.assertEqual(ws.subprotocol, "v1")
                headers = ws.response_headers if hasattr(ws, "response_headers") else ws.response.headers
                self.assertIn("permessage-deflate", headers["Sec-WebSocket-Extensions"])
                for size in (0, 1, 125, 126, 65535, 65536, 1 << 20):
                    for message in ("ä" * (size // 2), os.urandom(size)):
                        await ws.send(message)
                        self.assertEqual(await ws.recv(), message)
                await ws.send(["in ", "three ", "frames"])
                self.assertEqual(await ws.recv(), "in three frames")
                answered = await ws.ping()
                await asyncio.wait_for(answered, PATIENCE)

        with Srv(self.app) as srv:
            asyncio.run(asyncio.wait_for(talk("ws://127.0.0.1:%d/echo" % srv.port), 2 * PATIENCE))
            srv.wait_line(r'"left".*"code":1000')

    def browse(self, url):
        """A browser that shows URL until the test is over, with all its processes."""
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--remote-debugging-port=0", "--user-data-dir=" + os.path.join(self.folder.name, "profile"), url]
        browser = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(browser.wait)
        self.addCleanup(os.killpg, browser.pid, signal.SIGKILL)

    @unittest.skipUnless(CHROMIUM, "no Chromium here")
    def test_a_browser_talks_in_text_and_bytes_and_says_good_bye(self):
        with Srv(self.app, "--no-watch") as srv:
            self.browse(srv.url + "/page.html")
            srv.wait_line(r'"heard".*"what":"hello from v1"', patience=2 * PATIENCE)
            srv.wait_line(r'"heard".*"kind":"binary"')
            srv.wait_line(r'"heard".*"what":1048576')
            srv.wait_line(r'"left".*"code":4001,"reason":"got 1048576"')

    @unittest.skipUnless(CHROMIUM, "no Chromium here")
    def test_a_page_of_another_host_is_refused(self):
        with Srv(self.app, "--no-watch") as srv:
            self.browse("http://localhost:%d/page.html#127.0.0.1:%d" % (srv.port, srv.port))
            srv.wait_line(r'socket of another site refused.*"origin":"http://localhost:', patience=2 * PATIENCE)

    @unittest.skipUnless(h2, "no python3-h2 here")
    def test_http2_opens_a_socket_by_extended_connect(self):
        with Srv(self.app) as srv:
            tunnel = Tunnel(srv, "/who")
            self.assertEqual(tunnel.status, "200")
            self.assertEqual(json.loads(tunnel.text()), ["GET", "HTTP/2", False, "/who", None])
            self.assertEqual(tunnel.close_code(), 1000)
            echo = Tunnel(srv, "/echo")
            echo.send(b"over h2")
            self.assertEqual(echo.text(), "over h2")

    def test_our_own_client_trusts_whom_it_is_told_to(self):
        certificates = Certificates(os.path.join(self.folder.name, "certificates"))
        with Srv(self.app, "--cert", certificates.cert, "--key", certificates.key) as other, Srv(self.app) as srv:
            url = "wss://localhost:%d/who" % other.port
            got = json.loads(srv.get("/call?url=%s&ca=%s" % (url, certificates.ca))[2])
            self.assertEqual(json.loads(got["got"]), ["GET", "HTTP/1.1", True, "/who", "TLS"])
            self.assertEqual(json.loads(srv.get("/call?url=" + url)[2]), {"code": "tls"})


class Tunnel:
    """A WebSocket in a stream of HTTP/2 (RFC 8441); frames as they are."""

    def __init__(self, srv, path):
        self.socket, self.data, self.status = srv.connect(), b"", None
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="latin-1",
                                                                         validate_outbound_headers=False))
        self.conn.initiate_connection()
        self._run(lambda: self.conn.remote_settings.enable_connect_protocol)
        self.conn.send_headers(1, [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
                                   (":path", path), (":authority", "localhost"), ("sec-websocket-version", "13")])
        self._run(lambda: self.status)

    def _run(self, claim):
        self.socket.sendall(self.conn.data_to_send())
        while not claim():
            if not select.select([self.socket], [], [], PATIENCE)[0]:
                raise AssertionError("the server says nothing")
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the server ended")
            for event in self.conn.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    self.status = dict(event.headers)[":status"]
                elif isinstance(event, h2.events.DataReceived):
                    self.data += event.data
                    self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.socket.sendall(self.conn.data_to_send())

    def _frame(self, opcode):
        self._run(lambda: len(self.data) >= 2 and len(self.data) >= 2 + self.data[1])
        assert self.data[0] == 0x80 | opcode, self.data
        size = self.data[1]
        payload, self.data = self.data[2:2 + size], self.data[2 + size:]
        return payload

    def text(self):
        return self._frame(1).decode()

    def close_code(self):
        return struct.unpack("!H", self._frame(8)[:2])[0]

    def send(self, payload):
        self.conn.send_data(1, bytes([0x81, 0x80 | len(payload)]) + b"\0\0\0\0" + payload)


if __name__ == "__main__":
    unittest.main()
