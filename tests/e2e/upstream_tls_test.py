"""srv.http by https: servers of Python's with certificates of all kinds, through a proxy, and what each fault is called."""
import base64
import hashlib
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from bench_tls_test import context_of
from acceptor import serve_each
from certificates import Certificates
from origin import Origin, RawOrigin
from srv_process import PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()

-- { method, url, opts, again }: what srv.http says to it, in the end.
app:post("/ask", { body_limit = "8MiB" }, function(req)
  local ask, r, err = req:json()
  for _ = 1, ask.again or 1 do
    r, err = srv.http.request(ask.method or "GET", ask.url, ask.opts)
  end
  if not r then return { code = err.code, message = err.message } end
  return { status = r.status, body = r.body, headers = r.headers, url = r.url }
end)

-- The body of the request goes on as a stream, and the response comes back as one.
app:post("/pass", { body_limit = "64MiB" }, function(req)
  return srv.http.post(req.query.to, { body = req:stream(), stream = true, tls = { ca = req.query.ca } })
end)

app:get("/pool", function() return srv.http.pool() end)
app:all("/forward/*rest", function(req) return srv.http.forward(req, req.query.to, { tls = { ca = req.query.ca } }) end)
return app
"""


def hello(handler, body):
    handler.give(200, b"hello " + handler.path.encode() + b" " + body, X_Peer=subject_of(handler.connection))


def subject_of(connection):
    cert = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    return dict(pair[0] for pair in cert["subject"]).get("commonName", "") if cert else "-"


class Proxy:
    """A proxy that opens tunnels, by https with an IDENTITY; `seen` are the heads it was sent."""

    def __init__(self, answer=b"HTTP/1.1 200 Connection established\r\n\r\n", identity=None):
        self.answer, self.seen, self.context, self.tunnels = answer, [], None, []
        if identity:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*identity)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "%s://me:secret@127.0.0.1:%d" % ("https" if identity else "http", self.listener.getsockname()[1])
        serve_each(self.listener, self._serve)

    def _serve(self, peer):
        if self.context:
            peer = self._secured(peer)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = peer.recv(65536)
            if not piece:
                peer.close()
                return
            head += piece
        self.seen.append(head.decode())
        peer.sendall(self.answer)
        if b" 200 " not in self.answer:
            peer.close()
            return
        host, port = head.split()[1].decode().rsplit(":", 1)
        target = socket.create_connection((host, int(port)))
        back = threading.Thread(target=self._copy, args=(target, peer), daemon=True)
        back.start()
        self._copy(peer, target)
        back.join(PATIENCE)
        target.close()
        peer.close()

    def _secured(self, peer):
        """A plain socket in the place of one that speaks TLS: two threads cannot use one session of OpenSSL's."""
        near, far = socket.socketpair()
        self.tunnels.append(near)
        threading.Thread(target=self._relay, args=(peer, far), daemon=True).start()
        return near

    def _relay(self, peer, far):
        """Between PEER, by TLS, and FAR: one thread for both ways."""
        try:
            peer.settimeout(PATIENCE)
            with self.context.wrap_socket(peer, server_side=True) as secure, far:
                while True:
                    ready = [secure] if secure.pending() else select.select([secure, far], [], [], PATIENCE)[0]
                    for source in ready:
                        piece = source.recv(65536)
                        if not piece:
                            return
                        (far if source is secure else secure).sendall(piece)
        except OSError:
            far.close()

    @staticmethod
    def _copy(source, sink):
        try:
            while True:
                piece = source.recv(65536)
                if not piece:
                    break
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class UpstreamCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.certs = Certificates(os.path.join(folder.name, "certs"))
        cls.good = (cls.certs.cert, cls.certs.key)
        cls.srv = Srv(write_app(os.path.join(folder.name, "app"), {"app.lua": APP}), "--timeout", "20s", env=cls.environment())
        cls.addClassCleanup(cls.srv.kill)

    @classmethod
    def environment(cls):
        return {}

    def origin(self, pair=None, fn=hello, **more):
        return Origin(fn, context_of(pair or self.good, **more))

    def ask(self, url, method="GET", again=1, **opts):
        opts.setdefault("retries", 0)
        body = json.dumps({"method": method, "url": url, "opts": opts, "again": again})
        status, _, answer = self.srv.request("POST", "/ask", body, {"Content-Type": "application/json"})
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def fails(self, words, url, code="tls", **opts):
        answer = self.ask(url, **opts)
        self.assertEqual(answer.get("code"), code, answer)
        self.assertRegex(answer["message"], words)

    def pool(self):
        return json.loads(self.srv.get("/pool")[2])

    def trusting(self, **more):
        return {"ca": self.certs.ca, **more}


class Verification(UpstreamCase):
    def test_a_server_that_is_known_is_asked(self):
        with self.origin() as origin:
            answer = self.ask(origin.url + "/a?b=c", tls=self.trusting())
            self.assertEqual((answer["status"], answer["body"]), (200, "hello /a?b=c "))
            self.assertEqual(origin.seen[0][2]["Host"], "localhost:%d" % origin.port)

    def test_authorities_can_be_given_as_text(self):
        with open(self.certs.ca, encoding="ascii") as file, self.origin() as origin:
            self.assertEqual(self.ask(origin.url, tls={"ca": file.read()})["status"], 200)

    def test_who_is_not_known_is_not_asked(self):
        with self.origin() as origin:
            self.fails("not signed by a known authority", origin.url)
            self.fails("is for localhost", origin.url, tls=self.trusting(server_name="b.example"))
            self.assertEqual(origin.seen, [])
        with self.origin(self.certs.make("late", "localhost", days=-1)) as origin:
            self.fails("expired", origin.url, tls=self.trusting())
        with self.origin(self.certs.make("other", "b.example")) as origin:
            self.fails("is for b.example", origin.url, tls=self.trusting())
            self.assertEqual(self.ask(origin.url, tls=self.trusting(server_name="b.example"))["status"], 200)

    def test_who_is_not_verified_shares_no_connection_with_who_is(self):
        with self.origin() as origin:
            self.assertEqual(self.ask(origin.url, tls={"verify": False})["status"], 200)
            self.fails("not signed by a known authority", origin.url)
            self.assertEqual(len(origin.seen), 1)

    def test_our_certificate_is_shown_to_who_asks_for_it(self):
        cert, key = self.certs.make("alice", client=True)
        with self.origin(client_ca=self.certs.ca) as origin:
            self.fails("breaks off|connection broke", origin.url, tls=self.trusting())
            answer = self.ask(origin.url, tls=self.trusting(cert=cert, key=key))
            self.assertEqual(answer["headers"]["x-peer"], "alice")
            both = self.certs.path("both.pem")
            with open(both, "wb") as out:
                for path in (cert, key):
                    with open(path, "rb") as part:
                        out.write(part.read())
            self.assertEqual(self.ask(origin.url, tls=self.trusting(cert=both))["headers"]["x-peer"], "alice")

    def test_a_file_that_has_changed_is_read_again(self):
        moving = self.certs.path("moving.pem")
        other = Certificates(self.certs.path("elsewhere"))
        shutil.copy(other.ca, moving)
        with self.origin() as origin:
            self.fails("not signed by a known authority", origin.url, tls={"ca": moving})
            shutil.copy(self.certs.ca, moving + ".new")
            os.rename(moving + ".new", moving)
            self.assertEqual(self.ask(origin.url, tls={"ca": moving})["status"], 200)

    def test_a_pin_holds_for_one_key_alone(self):
        key = subprocess.run(["openssl", "x509", "-in", self.good[0], "-noout", "-pubkey"], check=True, timeout=PATIENCE,
                             stdout=subprocess.PIPE).stdout
        der = base64.b64decode(b"".join(key.splitlines()[1:-1]))
        right = "sha256/" + base64.b64encode(hashlib.sha256(der).digest()).decode()
        wrong = "sha256//" + base64.b64encode(bytes(32)).decode()
        with self.origin() as origin:
            self.assertEqual(self.ask(origin.url, tls=self.trusting(pin=right))["status"], 200)
            self.assertEqual(self.ask(origin.url, tls=self.trusting(pin=[wrong, right]))["status"], 200)
            self.fails("pin", origin.url, tls=self.trusting(pin=wrong))
            self.fails("pin", origin.url, tls={"verify": False, "pin": wrong})

    def test_what_is_wrong_with_the_files_or_the_server_is_said(self):
        with self.origin() as origin:
            self.fails("/no/such.pem", origin.url, tls={"ca": "/no/such.pem"})
        with Origin(hello) as plain:
            self.fails("no TLS record: the port may speak plain HTTP", "https://127.0.0.1:%d/" % plain.port)


class Connections(UpstreamCase):
    @classmethod
    def environment(cls):
        return {"SSL_CERT_FILE": cls.certs.ca}

    def test_the_systems_authorities_are_trusted_and_connections_are_kept(self):
        sockets = set()

        def note(handler, _body):
            sockets.add(handler.client_address)
            handler.give(200, b"x" * 300000)
        with self.origin(fn=note) as origin:
            answer = self.ask(origin.url, again=5)
            self.assertEqual(len(answer["body"]), 300000)
            self.assertEqual(len(sockets), 1)

    def test_bodies_stream_both_ways(self):
        def echo(handler, body):
            handler.give(200, body)
        sent = os.urandom(3000000)
        with self.origin(fn=echo) as origin:
            status, _, body = self.srv.request("POST", "/pass?to=%s/&ca=%s" % (origin.url, self.certs.ca), sent)
            self.assertEqual(status, 200)
            self.assertEqual(hashlib.sha256(body).digest(), hashlib.sha256(sent).digest())

    def test_a_body_until_the_end_is_whole_only_where_the_server_says_its_end(self):
        def until_close(says_it):
            def answer(handler, _):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\nall of it?")
                if says_it:
                    handler.connection.unwrap()
                handler.close_connection = True
            return answer

        with self.origin(fn=until_close(True)) as origin:
            self.assertEqual(self.ask(origin.url, tls={"ca": self.certs.ca}).get("body"), "all of it?")
        with self.origin(fn=until_close(False)) as origin:
            self.fails("ended in the middle of the response", origin.url, code="closed", tls={"ca": self.certs.ca})

    def test_a_redirect_leads_from_http_to_https_without_credentials(self):
        with self.origin() as secure:
            def redirect(handler, _body):
                handler.give(302, b"", Location=secure.url + "/there")
            with Origin(redirect) as plain:
                answer = self.ask(plain.url + "/here", auth=["me", "secret"])
                self.assertEqual((answer["status"], answer["url"]), (200, secure.url + "/there"))
                self.assertIsNotNone(plain.seen[0][2]["Authorization"])
                self.assertIsNone(secure.seen[0][2]["Authorization"])

    def test_our_certificate_does_not_follow_a_redirect_to_another_server(self):
        cert, key = self.certs.make("bob", client=True)
        context = context_of(self.good)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(self.certs.ca)
        with Origin(hello, context) as other:
            def redirect(handler, _body):
                handler.give(302, subject_of(handler.connection).encode(), Location=other.url)
            with self.origin(fn=redirect, client_ca=self.certs.ca) as first:
                answer = self.ask(first.url, tls=self.trusting(cert=cert, key=key))
                self.assertEqual(answer["headers"]["x-peer"], "-")

    def test_a_tunnel_leads_through_a_proxy(self):
        with self.origin() as origin, Proxy() as proxy:
            answer = self.ask(origin.url + "/a", proxy=proxy.url, again=2)
            self.assertEqual(answer["body"], "hello /a ")
            authority = "localhost:%d" % origin.port
            self.assertEqual(proxy.seen, ["CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
                                          % (authority, authority)])
            self.assertIsNone(origin.seen[0][2]["Proxy-Authorization"])

    def test_a_tunnel_that_is_refused_is_a_fault(self):
        for answer, code, words in (
                (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "refused", "status 407"),
                (b"SSH-2.0\r\n\r\n", "bad_response", "no HTTP"),
                (b"HTTP/1.1 200 OK\r\n\r\nhello", "bad_response", "more than")):
            with self.origin() as origin, Proxy(answer) as proxy:
                self.fails(words, origin.url, code=code, proxy=proxy.url)
                self.assertEqual(origin.seen, [])

    def test_a_tunnel_leads_through_a_proxy_that_is_asked_by_https(self):
        with self.origin() as origin, Proxy(identity=self.good) as proxy:
            answer = self.ask(origin.url + "/a", proxy=proxy.url, again=2)
            self.assertEqual(answer["body"], "hello /a ")
            self.assertEqual(len(proxy.seen), 1)
            self.assertRegex(proxy.seen[0], "(?s)^CONNECT localhost:%d .*\r\nProxy-Authorization: Basic " % origin.port)

    def test_a_tunnel_that_the_proxy_ends_is_not_kept(self):
        with self.origin() as origin, Proxy(identity=self.good) as proxy:
            self.ask(origin.url, proxy=proxy.url)
            before = self.pool()["open"]
            self.assertGreater(before, 0)
            for tunnel in proxy.tunnels:
                tunnel.shutdown(socket.SHUT_RDWR)
            wait_until(lambda: self.pool()["open"] < before, "a connection less")
            self.assertEqual(self.ask(origin.url, proxy=proxy.url)["body"], "hello / ")

    def test_a_handshake_with_a_proxy_has_the_time_of_connecting(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.fails("in time", "https://name.example/", code="timeout", connect_timeout="200ms",
                       proxy="https://127.0.0.1:%d" % silent.getsockname()[1])

    def test_megabytes_go_through_tls_in_tls_both_ways(self):
        def echo(handler, body):
            handler.give(200, body)
        with self.origin(fn=echo) as origin, Proxy(identity=self.good) as proxy:
            body = "0123456789" * 300000
            self.assertEqual(self.ask(origin.url, proxy=proxy.url, method="POST", body=body)["body"], body)

    def test_a_proxy_of_https_is_verified_as_a_server_is_and_called_by_name(self):
        with self.origin() as origin, Proxy(identity=self.certs.make("p", "proxy.example")) as proxy:
            self.fails(r"the proxy: .*127\.0\.0\.1 is for proxy\.example", origin.url, proxy=proxy.url)
            self.assertEqual((proxy.seen, origin.seen), ([], []))
        other = Certificates(os.path.join(self.certs.folder, "other"))
        with self.origin() as origin, Proxy(identity=(other.cert, other.key)) as proxy:
            self.fails("the proxy: .*known authority", origin.url, proxy=proxy.url, tls={"verify": False})
            self.assertEqual(proxy.seen, [])
            both = ""
            for certs in (self.certs, other):
                with open(certs.ca, encoding="ascii") as file:
                    both += file.read()
            self.assertEqual(200, self.ask(origin.url, proxy=proxy.url, tls={"ca": both})["status"])

    def test_a_certificate_and_a_name_that_are_meant_for_the_server_are_not_shown_to_the_proxy(self):
        cert, key = self.certs.make("me", client=True)
        with self.origin(client_ca=self.certs.ca) as origin, Proxy(identity=self.good) as proxy:
            answer = self.ask(origin.url, proxy=proxy.url, tls=self.trusting(cert=cert, key=key))
            self.assertEqual(answer["headers"]["x-peer"], "me")

    def test_a_proxy_of_https_that_speaks_plain_is_named_as_such(self):
        def answer(listener):
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.recv(65536)  # until it leaves
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=answer, args=(listener,), daemon=True)
            thread.start()
            self.fails("the proxy: .*TLS", "https://name.example/", proxy="https://127.0.0.1:%d" % listener.getsockname()[1])
            thread.join(PATIENCE)

    def test_a_proxy_that_is_asked_by_https_for_a_plain_url_gets_the_whole_url(self):
        with self.origin() as proxy:
            answer = self.ask("http://name.example/a?b", proxy=proxy.url)
            self.assertEqual(answer["body"], "hello http://name.example/a?b ")

    def test_a_tunnel_that_is_refused_by_tls_is_a_fault(self):
        with self.origin() as origin, \
                Proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", identity=self.good) as proxy:
            self.fails("status 407", origin.url, code="refused", proxy=proxy.url)

    def test_requests_are_forwarded_by_https(self):
        with self.origin() as origin:
            status, _, body = self.srv.request("GET", "/forward/a?to=%s&ca=%s" % (origin.url, self.certs.ca))
            self.assertEqual(status, 200)
            self.assertIn(b"hello /forward/a", body)

    def test_a_handshake_without_end_is_a_timeout(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(8)
            self.fails("handshake", "https://127.0.0.1:%d/" % silent.getsockname()[1], code="timeout", connect_timeout=0.2)


UPSTREAM = """
local srv = require "srv"
local app = srv.app()
app:get("/", function(req) return req.protocol end)
app:get("/slow", function() srv.sleep(0.2) return "slow" end)
app:get("/big", function() return ("0123456789abcdef"):rep(65536 * 3) end)
app:get("/forward/b", function(req) return { protocol = req.protocol, path = req.path } end)
app:post("/echo", { body_limit = "64MiB" }, function(req, res) res:type("bin") return req:stream() end)
return app
"""


class Http2(UpstreamCase):
    """Another srv is the upstream: it agrees to HTTP/2 by ALPN, and takes it for granted without TLS."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        write_app(folder.name, {"app.lua": UPSTREAM})
        cls.secure = Srv(folder.name, "--cert", cls.good[0], "--key", cls.good[1])
        cls.addClassCleanup(cls.secure.kill)
        cls.plain = Srv(folder.name)
        cls.addClassCleanup(cls.plain.kill)
        cls.urls = ("https://localhost:%d" % cls.secure.port, "http://127.0.0.1:%d" % cls.plain.port)

    def test_it_is_agreed_on_unless_it_is_not_wanted(self):
        url = self.urls[0] + "/"
        self.assertEqual(self.ask(url, tls=self.trusting())["body"], "HTTP/2")
        self.assertEqual(self.ask(url, tls=self.trusting(), http2=False)["body"], "HTTP/1.1")

    def test_it_is_taken_for_granted_where_that_is_said(self):
        url = self.urls[1] + "/"
        self.assertEqual(self.ask(url)["body"], "HTTP/1.1")
        self.assertEqual(self.ask(url, http2="prior")["body"], "HTTP/2")

    def test_a_server_of_http_1_alone_is_asked_so(self):
        with self.origin() as origin, Origin(hello) as plain:
            self.assertEqual(self.ask(origin.url, tls=self.trusting())["status"], 200)
            self.fails("does not speak HTTP/2", plain.url, code="closed", http2="prior")

    def test_a_stream_that_is_wanted_in_http_1_is_asked_so_again(self):
        settings, reset = b"\0\0\0\4\0\0\0\0\0", b"\0\0\4\3\0\0\0\0\1\0\0\0\x0d"

        def answer(head, _):
            if head.startswith("PRI "):
                return settings + reset
            return b"" if head.startswith("SM") else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

        with RawOrigin(answer) as origin:
            self.assertEqual(self.ask(origin.url, "POST", http2="prior")["body"], "ok")
            self.assertEqual([head.split("\r\n")[0] for head in origin.heads if not head.startswith(("PRI ", "SM"))],
                             ["POST / HTTP/1.1"])

    def test_bodies_are_whole_both_ways(self):
        answer = self.ask(self.urls[0] + "/big", tls=self.trusting())
        self.assertEqual(answer["body"], "0123456789abcdef" * 65536 * 3)
        sent = os.urandom(5000000)
        status, _, body = self.srv.request("POST", "/pass?to=%s/echo&ca=%s" % (self.urls[0], self.certs.ca), sent,
                                           {"Content-Type": "application/octet-stream"})
        self.assertEqual(status, 200)
        self.assertEqual(hashlib.sha256(body).digest(), hashlib.sha256(sent).digest())

    def test_calls_at_the_same_time_share_a_connection(self):
        before = self.pool()
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.ask(self.urls[0] + "/slow", tls=self.trusting())))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual([answer["body"] for answer in results], 20 * ["slow"])
        self.assertLessEqual(self.pool()["opened"] - before["opened"], 1)

    def test_requests_are_forwarded(self):
        status, _, body = self.srv.request("GET", "/forward/b?to=%s&ca=%s" % (self.urls[0], self.certs.ca))
        self.assertEqual(status, 200, body)
        self.assertEqual(json.loads(body), {"protocol": "HTTP/2", "path": "/forward/b"})


if __name__ == "__main__":
    unittest.main()
