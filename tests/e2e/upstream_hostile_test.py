"""srv.http and srv.http.forward against upstreams that mean harm, or break off where it hurts."""
import gzip
import http.client
import socket
import struct
import tempfile
import threading
import time
import unittest

from acceptor import serve_each
from srv_process import PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
local up = srv.env.UPSTREAM
local limits = { nothing = "1s" } -- what never ends

app:get("/plain", function() return "here" end)
app:get("/get/:what", function(req) return srv.http.get(up .. "/" .. req.params.what, { timeout = limits[req.params.what], retries = 0 }) end)
app:get("/post/:what", function(req) return srv.http.post(up .. "/" .. req.params.what, { body = "once" }) end)
app:post("/pass/:what", { body_limit = "64MiB" }, function(req)
  return srv.http.forward(req, up, { path = "/" .. req.params.what })
end)
return app
"""

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Upstream:
    """Each connection is served by the method that its first path names."""

    def __init__(self):
        self.door = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = "http://127.0.0.1:%d" % self.door.getsockname()[1]
        self.heads = []
        serve_each(self.door, self.serve)

    def serve(self, connection):
        try:
            with connection:
                connection.settimeout(PATIENCE)
                head, rest = self.read_head(connection)
                getattr(self, "do_" + head.split(b" ")[1].decode().strip("/"))(connection, rest)
        except (OSError, EOFError):
            pass

    def read_head(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                raise EOFError
            data += more
        head, rest = data.split(b"\r\n\r\n", 1)
        self.heads.append(head)
        return head, rest

    def do_reset(self, connection, _rest):
        """Answers; reads the next request whole, and breaks off."""
        connection.sendall(OK)
        self.read_head(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def do_late(self, connection, _rest):
        """Sends the body that a 204 announced behind the next request."""
        connection.sendall(b"HTTP/1.1 204 None\r\nContent-Length: 42\r\n\r\n")
        self.read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    def do_ok(self, connection, _rest):
        connection.sendall(OK)

    def do_nothing(self, connection, _rest):
        """A compressed body that goes on with what means nothing, as fast as anybody reads."""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" +
                           gzip.compress(b"x"))
        zeros = bytes(1000000)
        while True:
            connection.sendall(zeros)

    def do_echo(self, connection, rest):
        """Begins its answer with the first bytes of the body, as it comes."""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + rest)
        left = 50000 - len(rest)
        while left:
            piece = connection.recv(65536)
            if not piece:
                return
            connection.sendall(piece)
            left -= len(piece)

    def do_early(self, connection, _rest):
        """Answers and closes with most of the body unread: a reset follows the answer."""
        connection.sendall(b"HTTP/1.1 413 Enough\r\nContent-Length: 6\r\nConnection: close\r\n\r\nenough")

    def close(self):
        self.door.close()


class HostileUpstreamTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.upstream = Upstream()
        write_app(cls.folder.name, {"app.lua": APP})
        cls.srv = Srv(cls.folder.name, env={"UPSTREAM": cls.upstream.url})

    @classmethod
    def tearDownClass(cls):
        cls.srv.kill()
        cls.upstream.close()
        cls.folder.cleanup()

    def setUp(self):
        self.upstream.heads.clear()

    def test_a_post_that_was_read_before_the_reset_is_not_sent_again(self):
        self.assertEqual(200, self.srv.get("/post/reset")[0])
        self.assertEqual(502, self.srv.get("/post/reset")[0])
        self.assertEqual(2, len(self.upstream.heads))

    def test_a_body_that_a_204_announced_is_nobodys_response(self):
        self.assertEqual(204, self.srv.get("/get/late")[0])
        self.assertEqual((200, b"ok"), self.srv.get("/get/ok")[::2])

    def test_a_body_that_decodes_to_nothing_ends_in_time_and_others_are_served_meanwhile(self):
        found = []
        asking = threading.Thread(target=lambda: found.append(self.srv.get("/get/nothing")[0]))
        begun = time.monotonic()
        asking.start()
        wait_until(lambda: self.upstream.heads, "the upstream is asked")
        served = 0
        while asking.is_alive():
            self.assertEqual(200, self.srv.get("/plain")[0])
            served += 1
        self.assertEqual([504], found)
        self.assertLess(time.monotonic() - begun, PATIENCE / 3)
        self.assertGreater(served, 3)  # one, if the worker had been held up

    def test_an_upload_goes_on_while_the_answer_comes(self):
        with self.srv.connect() as client:
            client.sendall(b"POST /pass/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n")
            got = b""
            for sent in range(1000, 51000, 1000):
                client.sendall(b"x" * 1000)
                while got.count(b"x") < sent:
                    more = client.recv(65536)
                    self.assertTrue(more)
                    got += more

    def test_an_answer_before_the_end_of_an_upload_is_not_lost_in_the_reset(self):
        for _ in range(10):
            client = http.client.HTTPConnection("127.0.0.1", self.srv.port, timeout=PATIENCE)
            client.putrequest("POST", "/pass/early")
            client.putheader("Content-Length", "3000000")
            client.endheaders()
            try:
                client.send(b"x" * 3000000)
            except OSError:
                pass  # we do not read all of it either
            answer = client.getresponse()
            self.assertEqual((413, b"enough"), (answer.status, answer.read()))
            client.close()


if __name__ == "__main__":
    unittest.main()
