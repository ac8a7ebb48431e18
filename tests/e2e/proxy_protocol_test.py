"""The PROXY protocol as proxies speak it to the real server: who the client is, in the app and in the log, and
what becomes of connections that do not say so."""
import json
import os
import socket
import struct
import tempfile
import unittest

from srv_process import PATIENCE, Srv, json_lines, run_to_end, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:use(srv.proxy_trust { "198.51.100.0/24" }, srv.metrics { allow = { "0.0.0.0/0", "::/0", "loopback" } })
app:get("/", function(req) return { ip = req.ip, peer = req.peer.ip, port = req.peer.port, ips = req.ips } end)
app:get("/config", function() return { proxies = srv.config.proxy_protocol } end)
local limited = srv.router()
limited:use(srv.rate_limit { limit = 2, window = "1h" })
limited:get("/", function() return "ok" end)
app:mount("/limited", limited)
return app
"""

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(ip, port=40000):
    family = "TCP6" if ":" in ip else "TCP4"
    own = "::1" if ":" in ip else "10.0.0.1"
    return ("PROXY %s %s %s %d 443\r\n" % (family, ip, own, port)).encode()


def binary(ip=None, port=40000, rest=b""):
    """Version 2; without an IP the proxy speaks for itself."""
    if not ip:
        return SIGNATURE + b"\x20\0" + struct.pack(">H", len(rest)) + rest
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    own = "::1" if ":" in ip else "10.0.0.1"
    block = socket.inet_pton(family, ip) + socket.inet_pton(family, own) + struct.pack(">HH", port, 443) + rest
    return SIGNATURE + (b"\x21\x21" if ":" in ip else b"\x21\x11") + struct.pack(">H", len(block)) + block


def get(path, **headers):
    fields = "".join("%s: %s\r\n" % (k.replace("_", "-"), v) for k, v in headers.items())
    return ("GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (path, fields)).encode()


class Answers:
    """A connection; reads one answer after the other."""

    def __init__(self, connection, *pieces):
        self.connection = connection
        for piece in pieces:
            self.connection.sendall(piece)
        self.file = connection.makefile("rb")

    def next(self):
        status = int(self.file.readline().split()[1])
        length = 0
        while (field := self.file.readline().strip()):
            name, value = field.split(b":", 1)
            length = int(value) if name.lower() == b"content-length" else length
        return status, self.file.read(length)

    def json(self):
        status, body = self.next()
        assert status == 200, (status, body)
        return json.loads(body)

    def rest(self):
        """All until the end, which may be a reset: bytes that nobody read were on their way."""
        try:
            return self.file.read()
        except ConnectionResetError:
            return b""

    def close(self):
        self.file.close()
        self.connection.close()


class ProxyProtocol(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.app = write_app(os.path.join(folder.name, "app"), {"app.lua": APP})

    def serve(self, *flags, trusted="loopback"):
        srv = Srv(self.app, "--log-format", "json", "--proxy-protocol", trusted, *flags)
        self.addCleanup(srv.kill)
        return srv

    def talk(self, srv, *pieces):
        answers = Answers(srv.connect(), *pieces)
        self.addCleanup(answers.close)
        return answers

    def test_the_client_is_who_the_header_says(self):
        srv = self.serve()
        for header, ip in ((line("192.0.2.7"), "192.0.2.7"), (line("2001:db8::7"), "2001:db8::7"),
                           (binary("192.0.2.8"), "192.0.2.8"), (binary("2001:db8::8"), "2001:db8::8"),
                           (binary("192.0.2.9", rest=b"\x04\0\x04abcd"), "192.0.2.9"),
                           (line("::ffff:192.0.2.10"), "192.0.2.10")):
            told = self.talk(srv, header + get("/")).json()
            self.assertEqual((told["ip"], told["peer"], told["port"]), (ip, ip, 40000))
        self.assertEqual(srv.stop(), 0)
        logged = [l["req"]["remoteAddress"] for l in json_lines(srv.output) if "req" in l]
        self.assertEqual(logged, ["192.0.2.7", "2001:db8::7", "192.0.2.8", "2001:db8::8", "192.0.2.9", "192.0.2.10"])

    def test_a_proxy_that_speaks_for_itself_is_the_client(self):
        srv = self.serve()
        for header in (b"PROXY UNKNOWN\r\n", binary(), binary(rest=b"abc")):
            self.assertEqual(self.talk(srv, header + get("/")).json()["ip"], "127.0.0.1")

    def test_one_header_stands_before_all_requests_of_a_connection(self):
        srv = self.serve()
        answers = self.talk(srv, line("192.0.2.7") + get("/") * 3)
        self.assertEqual([answers.json()["ip"] for _ in range(3)], ["192.0.2.7"] * 3)
        answers.connection.sendall(get("/"))
        self.assertEqual(answers.json()["ip"], "192.0.2.7")

    def test_a_header_may_come_in_pieces(self):
        srv = self.serve()
        for header in (line("192.0.2.7"), binary("192.0.2.7")):
            connection = srv.connect()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = Answers(connection, *[header[i:i + 1] for i in range(len(header))], get("/"))
            self.addCleanup(answers.close)
            self.assertEqual(answers.json()["ip"], "192.0.2.7")

    def test_headers_of_http_are_believed_from_the_told_client_on(self):
        srv = self.serve()
        told = self.talk(srv, line("198.51.100.1") + get("/", X_Forwarded_For="203.0.113.7")).json()
        self.assertEqual((told["ip"], told["peer"]), ("203.0.113.7", "198.51.100.1"))
        told = self.talk(srv, line("192.0.2.7") + get("/", X_Forwarded_For="203.0.113.7")).json()
        self.assertEqual((told["ip"], told["ips"]), ("192.0.2.7", []))

    def test_limits_count_the_told_client(self):
        srv = self.serve()
        def ask(ip):
            return self.talk(srv, line(ip) + get("/limited")).next()[0]
        self.assertEqual([ask("192.0.2.7") for _ in range(3)], [200, 200, 429])
        self.assertEqual(ask("192.0.2.8"), 200)

    def test_what_is_no_header_closes_without_an_answer_and_is_counted(self):
        srv = self.serve()
        wrong = (get("/"), b"PROXY TCP4 192.0.2.7\r\n" + get("/"), line("192.0.2.7").replace(b"\r", b"") + get("/"),
                 SIGNATURE + b"\x20\0\xff\xff" + get("/"), b"PROXY UNKNOWN " + b"a" * 200)
        # The counts begin when somebody has asked for the page.
        self.talk(srv, binary() + get("/metrics")).next()
        for bytes_ in wrong:
            self.assertEqual(self.talk(srv, bytes_).rest(), b"")
        half = self.talk(srv, line("192.0.2.7")[:9])
        half.connection.shutdown(socket.SHUT_WR)
        self.assertEqual(half.rest(), b"")
        page = self.talk(srv, binary() + get("/metrics")).next()[1].decode()
        self.assertRegex(page, r'srv_http_refused_total\{status="none"\} 6\n')
        self.assertEqual(srv.stop(), 0)
        told = [l for l in json_lines(srv.output) if l["msg"] == "PROXY header refused"]
        self.assertEqual((told[0]["level"], told[0]["reason"]), (40, "none came"))
        self.assertRegex(told[0]["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertFalse([l for l in json_lines(srv.output) if l.get("req", {}).get("url") == "/"])

    def test_half_a_header_is_closed_at_the_heads_time(self):
        srv = self.serve("--head-timeout", "200ms")
        self.assertEqual(self.talk(srv, b"PROXY TCP4 192").rest(), b"")
        self.assertEqual(srv.stop(), 0)
        self.assertIn("it took too long", srv.output)

    def test_who_only_knocks_is_no_news(self):
        srv = self.serve()
        srv.connect().close()
        self.assertEqual(self.talk(srv, line("192.0.2.7") + get("/")).json()["ip"], "192.0.2.7")
        self.assertEqual(srv.stop(), 0)
        self.assertNotIn("PROXY header refused", srv.output)

    def test_others_speak_plain_http(self):
        srv = self.serve(trusted="10.0.0.0/8,2001:db8::/32")
        self.assertEqual(json.loads(srv.get("/")[2])["ip"], "127.0.0.1")
        self.assertEqual(self.talk(srv, line("192.0.2.7") + get("/")).next()[0], 400)
        self.assertEqual(json.loads(srv.get("/config")[2]), {"proxies": ["10.0.0.0/8", "2001:db8::/32"]})

    def test_a_peer_of_a_unix_socket_is_on_this_machine(self):
        path = os.path.join(self.folder, "s")
        self.serve("--unix", path)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(path)
        answers = Answers(connection, line("192.0.2.7") + get("/"))
        self.addCleanup(answers.close)
        self.assertEqual(answers.json()["ip"], "192.0.2.7")

    def test_the_setting_is_a_list_and_none_by_default(self):
        for value, want in (("{}", []), ("nil", []), ('{ "private" }', ["private"])):
            write_app(self.app, {"config.lua": "return { proxy_protocol = %s }" % value})
            with Srv(self.app) as srv:
                self.assertEqual(json.loads(srv.get("/config")[2]), {"proxies": want})
        write_app(self.app, {"config.lua": "return { proxy_protocol = { '10.0.0.0/8', 'privat' } }"})
        status, text = run_to_end(self.app)
        self.assertEqual(status, 1)
        self.assertRegex(text, r'config\.lua: proxy_protocol is "10\.0\.0\.0/8,privat", expected networks such as')
        write_app(self.app, {"config.lua": "return { log_file = {} }"})
        self.assertIn("log_file must be a text or a list of texts", run_to_end(self.app)[1])


if __name__ == "__main__":
    unittest.main()
