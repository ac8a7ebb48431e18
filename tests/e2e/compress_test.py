"""Compressed answers and requests over a real wire: backpressure, clients that leave, bodies that would inflate."""
import gzip
import socket
import tempfile
import threading
import time
import unittest
import zlib

from srv_process import Srv, write_app

APP = """
local srv = require "srv"
local app = srv.app { body_limit = "1MiB" }
app:use(srv.compress { encodings = { "gzip" } })
local LINE = {}
for i = 1, 2000 do LINE[i] = srv.crypto.hash("sha256", tostring(i)) end
LINE = table.concat(LINE)
local gate = srv.event()
app:get("/huge", function() return LINE:rep(40) end)
app:get("/stream", function(_, res)
  res:type "text"
  for _ = 1, 100 do
    if not res:write(LINE) then return end
  end
end)
app:get("/two", function(_, res)
  res:type "text"
  res:write "before"
  gate:wait()
  res:write "behind"
end)
app:post("/open", function()
  gate:set()
  return "open"
end)
app:post("/echo", function(req) return req:bytes() end)
app:post("/count", function(req)
  local n = 0
  for chunk in req:stream() do n = n + #chunk end
  return { n = n }
end)
app:get("/", function() return "here" end)
return app
"""

BIG = b"a text of which there is much. " * 20000


class Compress(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        write_app(self.folder.name, {"app.lua": APP})
        self.srv = Srv(self.folder.name)

    def tearDown(self):
        self.assertEqual(self.srv.stop(), 0, self.srv.output[-4000:])
        self.folder.cleanup()

    def get(self, path):
        status, headers, body = self.srv.get(path, {"Accept-Encoding": "gzip"})
        self.assertEqual(status, 200)
        self.assertEqual(headers["content-encoding"], "gzip")
        return gzip.decompress(body)

    def test_large_bodies_and_streams_arrive_whole(self):
        plain = self.srv.get("/huge")[2]
        self.assertEqual(len(plain), 40 * 2000 * 64)
        self.assertEqual(self.get("/huge"), plain)
        self.assertEqual(self.get("/stream"), plain[:2000 * 64] * 100)

    def test_a_client_that_reads_slowly_gets_all_of_a_stream(self):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(60)
            client.connect(("127.0.0.1", self.srv.port))
            client.sendall(b"GET /stream HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            got = b""
            while True:
                piece = client.recv(65536)
                if not piece:
                    break
                got += piece
                if len(got) < 65536:
                    time.sleep(0.001)
        body = got.split(b"\r\n\r\n", 1)[1]
        self.assertEqual(len(gzip.decompress(body)), 100 * 2000 * 64)

    def test_what_was_written_before_a_wait_is_there_before_it_ends(self):
        with self.srv.connect() as client:
            client.sendall(b"GET /two HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            inflate, got, text = zlib.decompressobj(31), b"", b""
            while text != b"before":
                piece = client.recv(4096)
                self.assertTrue(piece, got)
                got += piece
                if b"\r\n\r\n" in got:
                    text = zlib.decompressobj(31).decompress(got.split(b"\r\n\r\n", 1)[1])
            self.assertEqual(self.srv.request("POST", "/open")[0], 200)
            while True:
                piece = client.recv(4096)
                if not piece:
                    break
                got += piece
            self.assertEqual(inflate.decompress(got.split(b"\r\n\r\n", 1)[1]), b"beforebehind")
            self.assertTrue(inflate.eof)

    def test_clients_that_leave_in_the_middle_do_no_harm(self):
        for path in (b"/huge", b"/stream", b"/two"):
            for read in (False, True):
                with self.srv.connect() as client:
                    client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
                    if read:
                        client.recv(100)
        self.assertEqual(self.srv.get("/")[0], 200)

    def test_many_at_once(self):
        faults = []

        def ask():
            try:
                self.assertEqual(len(self.get("/huge")), 40 * 2000 * 64)
            except Exception as fault:
                faults.append(fault)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])

    def test_requests_are_inflated_within_their_limit(self):
        coded = {"Content-Encoding": "gzip"}
        self.assertEqual(self.srv.request("POST", "/echo", gzip.compress(BIG), coded)[2], BIG)
        self.assertEqual(self.srv.request("POST", "/count", gzip.compress(BIG), coded)[2], b'{"n":%d}' % len(BIG))
        bomb = gzip.compress(b"\0" * (50 << 20))
        for path in ("/echo", "/count"):
            self.assertEqual(self.srv.request("POST", path, bomb, coded)[0], 413)
            self.assertEqual(self.srv.request("POST", path, gzip.compress(BIG)[:-5], coded)[0], 400)


if __name__ == "__main__":
    unittest.main()
