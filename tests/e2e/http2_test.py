"""HTTP/2 by the real server, as curl, nghttp, h2load and a client of frames speak it: with a Lua app behind it, while it
drains, under floods. tests/h2 has the rules of the protocol, tests/e2e/web_test.py all that the framework does."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from certificates import Certificates
from srv_process import PATIENCE, ROOT, Srv, wait_until, write_app

sys.path.insert(0, os.path.join(ROOT, "tests", "h2"))
try:
    import frames
except SystemExit:  # there is no python3-hpack
    frames = None

APP = """
local srv = require "srv"
local app = srv.app()
local now, most = 0, 0

app:get("/", function() return "hello" end)
app:get("/proto", function(req) return req.protocol end)
app:get("/slow", function() srv.sleep "300ms" return "slow" end)
app:get("/held", function()
  local file
  repeat
    srv.sleep "10ms"
    file = io.open(srv.env.RELEASE)
  until file
  file:close()
  return "held"
end)
app:get("/big", function() return ("0123456789abcdef"):rep(65536 * 3) end)
app:get("/parts", function(_, res)
  res:trailer("x-parts", function() return "3" end)
  for i = 1, 3 do res:write("part " .. i .. ";") srv.sleep "10ms" end
end)
app:post("/length", { body_limit = "16MiB" }, function(req)
  local bytes = 0
  for piece in req:stream() do bytes = bytes + #piece end
  return tostring(bytes)
end)
app:get("/endless", function(_, res) while res:write(("x"):rep(5000)) do end end)
app:get("/wait", function()
  now = now + 1
  most = math.max(most, now)
  srv.defer(function() now = now - 1 end)
  srv.sleep "60s"
end)
app:get("/most", function() return tostring(most) end)
app:get("/now", function() return tostring(now) end)
app:ws("/ws", function(ws) for message in ws:messages() do ws:send("echo " .. message) end end)
return app
"""


def have(program):
    return unittest.skipUnless(shutil.which(program), program + " is not installed")


def output_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE * 4, check=False)
    return done.stdout


def rss_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


class Client(frames.Connection if frames else object):
    """One connection; frames of other streams are kept in order."""

    def __init__(self, srv):
        super().__init__(srv.port)
        self.send(frames.PREFACE)
        self.send_frame(4, 0, 0, b"")

    def say(self, line):
        frames.say(self, line)

    def hear(self, line):
        passed = []
        frames.hear(self, line, passed)
        return passed

    def get(self, stream, path):
        self.say("GET %d %s" % (stream, path))
        frame = self.receive(PATIENCE)
        while frame and not (frame.stream == stream and frame.ends()):
            frame = self.receive(PATIENCE)
        return self.bodies.get(stream, b"")

    def until_closed(self):
        seen = []
        frame = self.receive(PATIENCE)
        while frame:
            seen.append(frame)
            frame = self.receive(PATIENCE)
        return seen


class Http2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.app = write_app(os.path.join(cls.folder, "app"), {"app.lua": APP})

    def serve(self, *flags, workers=1, env=None):
        srv = Srv(self.app, *flags, workers=workers, env=env)
        self.addCleanup(srv.kill)
        return srv

    def client(self, srv):
        if not frames:
            self.skipTest("python3-h2 is not installed")
        client = Client(srv)
        self.addCleanup(client.close)
        return client

    # --- clients ------------------------------------------------------------------------------------------------

    @have("curl")
    def test_curl_speaks_it_by_prior_knowledge(self):
        srv = self.serve()
        curl = ["curl", "-s", "-i", "--http2-prior-knowledge"]
        self.assertRegex(output_of(*curl, srv.url + "/proto"), rb"^HTTP/2 200 \r\n[\s\S]*\r\n\r\nHTTP/2$")
        self.assertTrue(output_of(*curl, srv.url + "/parts").endswith(b"part 1;part 2;part 3;x-parts: 3\r\n"))
        self.assertEqual(len(output_of("curl", "-s", "--http2-prior-knowledge", srv.url + "/big")), 3 << 20)
        self.assertIn(b"HTTP/2 404", output_of(*curl, srv.url + "/none"))
        self.assertEqual(srv.stop(), 0)

    @have("curl")
    def test_curl_speaks_it_by_alpn_and_http1_to_who_does_not_offer_it(self):
        made = Certificates(os.path.join(self.folder, "tls"))
        srv = self.serve("--cert", made.cert, "--key", made.key)
        url = "https://localhost:%d/proto" % srv.port
        self.assertEqual(output_of("curl", "-s", "--cacert", made.ca, url), b"HTTP/2")
        self.assertEqual(output_of("curl", "-s", "--http1.1", "--cacert", made.ca, url), b"HTTP/1.1")
        self.assertEqual(srv.stop(), 0)

    @have("curl")
    def test_it_can_be_switched_off(self):
        srv = self.serve("--no-http2")
        told = output_of("curl", "-s", "-S", "--http2-prior-knowledge", srv.url + "/")
        self.assertNotIn(b"hello", told)
        self.assertEqual(output_of("curl", "-s", srv.url + "/"), b"hello")

    @have("curl")
    def test_a_large_body_arrives(self):
        path = os.path.join(self.folder, "ten")
        with open(path, "wb") as out:
            out.write(bytes(10 << 20))
        srv = self.serve()
        curl = ["curl", "-s", "--http2-prior-knowledge", "--data-binary", "@" + path]
        self.assertEqual(output_of(*curl, srv.url + "/length"), b"%d" % (10 << 20))

    @have("nghttp")
    def test_nghttp_gets_what_it_asks_for(self):
        srv = self.serve()
        told = output_of("nghttp", "-s", *[srv.url + path for path in ("/", "/parts", "/slow", "/big")])
        self.assertEqual(len(re.findall(rb" 200 ", told)), 4, told)

    @have("h2load")
    def test_what_many_streams_ask_for_is_answered(self):
        srv = self.serve("--log-level", "warn")
        told = output_of("h2load", "-n", "20000", "-c", "10", "-m", "100", srv.url + "/")
        self.assertIn(b"20000 succeeded, 0 failed, 0 errored", told)
        told = output_of("h2load", "-n", "2000", "-c", "2", "-m", "100", srv.url + "/slow")
        self.assertIn(b"2000 succeeded, 0 failed, 0 errored", told)

    # --- WebSocket ------------------------------------------------------------------------------------------------

    def test_a_websocket_is_a_stream_beside_others(self):
        srv = self.serve()
        client = self.client(srv)
        client.say("CONNECT 1 :protocol=websocket :scheme=http :path=/ws :authority=a sec-websocket-version=13 [more]")
        client.hear("HEADERS 1 200")
        mask = b"\1\2\3\4"
        message = bytes(byte ^ mask[i % 4] for i, byte in enumerate(b"hello"))
        client.send_frame(0, 0, 1, b"\x81\x85" + mask + message)
        client.hear("DATA 1")
        self.assertEqual(client.bodies[1], b"\x81\x0aecho hello")
        self.assertEqual(client.get(3, "/"), b"hello")
        client.send_frame(0, 0, 1, b"\x88\x82" + b"\0\0\0\0" + struct.pack(">H", 1000))
        client.hear("DATA 1 [end]")
        self.assertTrue(client.bodies[1].endswith(b"\x88\x02" + struct.pack(">H", 1000)))
        self.assertEqual(srv.stop(), 0)

    def test_a_path_without_websockets_opens_none(self):
        client = self.client(self.serve())
        client.say("CONNECT 1 :protocol=websocket :scheme=http :path=/ :authority=a sec-websocket-version=13 [more]")
        client.hear("HEADERS 1 501")

    # --- the end --------------------------------------------------------------------------------------------------

    def test_who_drains_says_goodbye_twice_and_answers_what_was_asked(self):
        release = os.path.join(self.folder, "release")
        srv = self.serve(env={"RELEASE": release})
        client = self.client(srv)
        client.say("GET 1 /held")
        client.say("PING 12345678")
        client.hear("PING [ack] 12345678")
        stopped = threading.Thread(target=srv.stop)
        stopped.start()
        client.hear("GOAWAY NO_ERROR 2147483647")
        client.say("GET 3 /")  # was under way
        client.hear("GOAWAY NO_ERROR 3")
        with open(release, "w", encoding="ascii"):
            pass
        client.hear("BODY 1 held")
        self.assertEqual(client.bodies[3], b"hello")
        client.until_closed()
        stopped.join()
        self.assertEqual(srv.process.returncode, 0)

    def test_an_idle_connection_does_not_hold_up_a_drain(self):
        srv = self.serve()
        client = self.client(srv)
        self.assertEqual(client.get(1, "/"), b"hello")
        stopped = threading.Thread(target=srv.stop)
        stopped.start()
        client.hear("GOAWAY NO_ERROR 1")
        client.until_closed()
        stopped.join()
        self.assertEqual(srv.process.returncode, 0)

    # --- who does harm ----------------------------------------------------------------------------------------------

    def test_work_that_is_reset_is_cancelled(self):
        srv = self.serve()
        client = self.client(srv)
        for stream in range(1, 41, 2):
            client.say("GET %d /wait" % stream)
        self.assertEqual(client.get(41, "/now"), b"20")
        for stream in range(1, 41, 2):
            client.say("RST_STREAM %d CANCEL" % stream)
        wait_until(lambda: srv.get("/now")[2] == b"0", "the end of cancelled work")

    def test_rapid_resets_end_the_connection_and_start_no_more_work_than_streams(self):
        srv = self.serve("--log-level", "info", "--no-access-log")
        conns = [self.client(srv) for _ in range(2)]
        head = conns[0].encoder.encode([(":method", "GET"), (":scheme", "http"), (":path", "/wait"), (":authority", "a")],
                                       huffman=False)
        for conn in conns:
            burst = b"".join(
                struct.pack(">I", len(head))[1:] + struct.pack(">BBI", 1, 5, stream) + head
                + b"\0\0\4" + struct.pack(">BBII", 3, 0, stream, 8) for stream in range(1, 6001, 2))
            conn.send(burst)
        for conn in conns:
            codes = [frame.code() for frame in conn.until_closed() if frame.kind == "GOAWAY"]
            self.assertEqual(codes, ["ENHANCE_YOUR_CALM"])
        srv.wait_line(r"HTTP/2 connection broken off.*too many streams were reset")
        self.assertLessEqual(int(self.client(srv).get(1, "/most")), 2 * 128)

    def test_floods_do_not_hold_up_others_nor_take_memory(self):
        srv = self.serve("--log-level", "warn")
        other = self.client(srv)
        self.assertEqual(other.get(1, "/"), b"hello")
        before = rss_kib(srv.children()[0])
        floods = {
            "ping": b"\0\0\x08\6\0\0\0\0\0" + b"12345678",
            "settings": b"\0\0\6\4\0\0\0\0\0" + b"\0\3\0\0\0\x64",
            "priority": b"\0\0\5\2\0\0\0\0\1" + b"\0\0\0\0\x10",
            "window": b"\0\0\4\x08\0\0\0\0\0" + b"\0\0\0\1",
        }
        times = []
        for number, frame in enumerate(floods.values()):
            conns = [self.client(srv) for _ in range(2)]
            for conn in conns:
                conn.send(frame * 20000)
            begun = time.monotonic()
            self.assertEqual(other.get(3 + 2 * number, "/"), b"hello")
            times.append(time.monotonic() - begun)
            for conn in conns:
                codes = [seen.code() for seen in conn.until_closed() if seen.kind == "GOAWAY"]
                self.assertIn(codes, (["ENHANCE_YOUR_CALM"], []))  # a reset may take it along
        after = rss_kib(srv.children()[0])
        self.assertLess(after - before, 8 * 1024)
        self.assertLess(max(times), PATIENCE / 2)

    def test_answers_that_nobody_reads_are_bounded(self):
        srv = self.serve("--log-level", "warn")
        pid = srv.children()[0]
        self.assertEqual(self.client(srv).get(1, "/"), b"hello")
        before = rss_kib(pid)
        client = self.client(srv)
        client.say("SETTINGS 4=0")
        for stream in range(1, 201, 2):
            client.say("GET %d /big" % stream)
        client.hear("HEADERS 1 200")
        self.assertEqual(self.client(srv).get(1, "/"), b"hello")
        self.assertLess(rss_kib(pid) - before, 64 * 1024)  # a hundred answers of 3 MiB are not there

    def test_memory_comes_back_after_a_burst_of_streams(self):
        srv = self.serve("--log-level", "warn")
        pid = srv.children()[0]
        with open("/proc/%d/maps" % pid) as maps:
            if "libasan" in maps.read():
                self.skipTest("ASan keeps what is freed")
        self.assertEqual(self.client(srv).get(1, "/"), b"hello")
        before = rss_kib(pid)
        burst = [self.client(srv) for _ in range(20)]
        for client in burst:
            client.say("SETTINGS 4=0")
            for stream in range(1, 241, 2):
                client.say("GET %d /endless" % stream)
        for client in burst:
            client.say("PING 12345678")
            client.hear("PING [ack] 12345678")
        grown = rss_kib(pid) - before
        for client in burst:
            client.close()
        wait_until(lambda: rss_kib(pid) < before + grown * 0.5, "the memory")


if __name__ == "__main__":
    unittest.main()
