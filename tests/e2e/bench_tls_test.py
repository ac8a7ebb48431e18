"""srv bench over TLS and HTTP/2, against servers of Python's and OpenSSL's, nghttpd where it is installed, and srv."""
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from bench_test import BenchCase, answer, bench
from certificates import Certificates
from origin import RawOrigin, dead_url
from srv_process import BIN, PATIENCE, Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function() return "hello" end)
app:post("/length", function(req) return tostring(#(req:bytes() or "")) end)
return app
"""


def context_of(pair, alpn=None, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    if alpn:
        context.set_alpn_protocols(alpn)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Outspoken:
    """Answers whatever comes with a 400 of plain HTTP."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                if peer.recv(65536):
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Nghttpd:
    """nghttpd in FOLDER, with TLS if PAIR is given."""

    def __init__(self, folder, pair=None):
        self.folder, self.pair, self.process = folder, pair, None
        wait_until(self._listens, "nghttpd listens")

    def _listens(self):
        if self.process is None or self.process.poll() is not None:  # somebody else has taken the port meanwhile
            self.port = free_port()
            args = ["nghttpd", "-d", self.folder, str(self.port)] + ([self.pair[1], self.pair[0]] if self.pair else ["--no-tls"])
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return is_open(self.port) and self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)


class TlsCase(BenchCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.certs = Certificates(folder.name)
        cls.good = (cls.certs.cert, cls.certs.key)

    def origin(self, pair=None, **more):
        return RawOrigin(answer, context=context_of(pair or self.good, **more))


class Handshakes(TlsCase):
    def test_https_is_loaded_and_its_certificate_verified(self):
        everybody = threading.Barrier(5)

        def answer_all_at_once(_head, number):
            if number == 1:
                everybody.wait(PATIENCE)
            return answer(_head, number)

        with RawOrigin(answer_all_at_once, context=context_of(self.good)) as origin:
            result = self.load("--ca", self.certs.ca, "-a", 50, "-c", 5, origin.url)
            self.assertEqual(result["2xx"], 50)
            self.assertEqual(len(origin.sessions), 5)
            self.assertIn("Host: localhost:%d" % origin.port, origin.heads[0])

    def test_a_server_that_is_started_for_it_is_asked_over_TLS_if_it_has_a_certificate(self):
        server = ["--on-port", "/", "--", BIN, "apps/hello", "--port", "0", "--cert", self.certs.cert, "--key", self.certs.key]
        result = self.load("--ca", self.certs.ca, "-a", 20, *server)
        self.assertEqual(result["2xx"], 20)
        self.assertRegex(result["url"], "^https://")
        self.assertEqual(self.load("--insecure", "-a", 20, *server)["2xx"], 20)
        done = bench("-a", 20, *server)
        self.assertEqual((done.status, done.out), (1, ""))
        self.assertIn("not signed by a known authority", done.err)

    def test_options_of_TLS_mean_https_where_the_URL_has_no_scheme(self):
        with self.origin() as origin:
            result = self.load("--ca", self.certs.ca, "-a", 5, "-c", 1, "localhost:%d/" % origin.port)
            self.assertEqual(result["2xx"], 5)

    def refused(self, words, origin, *args):
        done = bench("-d", 60, *args, origin.url)
        self.assertEqual(done.status, 1)
        self.assertRegex(done.err, words)
        self.assertEqual(done.out, "")
        self.assertEqual(origin.heads, [])

    def test_a_certificate_that_is_not_good_is_an_error_at_once(self):
        expired = self.certs.make("expired", "localhost", days=-1)
        other = self.certs.make("other", "other.example")
        with self.origin() as origin:
            self.refused("not signed by a known authority", origin)
            self.refused("is for localhost", origin, "--ca", self.certs.ca, "-s", "b.example")
        with self.origin(expired) as origin:
            self.refused("expired", origin, "--ca", self.certs.ca)
        with self.origin(other) as origin:
            self.refused("is for other.example", origin, "--ca", self.certs.ca)

    def test_any_certificate_will_do_if_that_is_said(self):
        expired = self.certs.make("expired2", "other.example", days=-1)
        with self.origin(expired) as origin:
            self.assertEqual(self.load("--insecure", "-a", 10, origin.url)["2xx"], 10)

    def test_another_name_can_be_asked_for(self):
        other = self.certs.make("named", "b.example")
        names = []
        context = context_of(other)
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        with RawOrigin(answer, context=context) as origin:
            self.assertEqual(self.load("--ca", self.certs.ca, "-s", "b.example", "-a", 3, "-c", 1, origin.url)["2xx"], 3)
            self.assertEqual(names, ["b.example"])

    def test_a_server_that_wants_a_certificate_gets_ours(self):
        cert, key = self.certs.make("alice", client=True)
        with self.origin(client_ca=self.certs.ca) as origin:
            self.assertEqual(self.load("--ca", self.certs.ca, "--cert", cert, "--key", key, "-a", 10, origin.url)["2xx"], 10)
        with self.origin(client_ca=self.certs.ca) as origin:
            self.refused("the other side breaks off", origin, "--ca", self.certs.ca)

    def test_files_that_cannot_be_read_are_named(self):
        done = bench("--ca", "/no/such.pem", "https://localhost:1/")
        self.assertEqual(done.status, 1)
        self.assertIn("/no/such.pem", done.err)

    def test_a_server_without_tls_is_told_from_one_that_is_down(self):
        with Outspoken() as server:
            done = bench("-d", 60, "https://127.0.0.1:%d/" % server.port)
            self.assertEqual(done.status, 1)
            self.assertIn("no TLS with 127.0.0.1: the other side speaks plain HTTP", done.err)
        done = bench("-a", 2, "-c", 1, dead_url().replace("http:", "https:"))
        self.assertIn("2 connections refused", done.out)

    def test_sessions_are_taken_up_again_unless_full_handshakes_are_asked_for(self):
        with self.origin() as origin:
            self.load("--ca", self.certs.ca, "-a", 20, "-c", 1, "-D", 2, origin.url)
            self.assertEqual(origin.sessions, [False] + 9 * [True])
        with self.origin() as origin:
            self.load("--ca", self.certs.ca, "-a", 20, "-c", 1, "-D", 2, "--full-handshakes", origin.url)
            self.assertEqual(origin.sessions, 10 * [False])

    def test_a_handshake_without_end_is_a_connect_without_an_answer(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(8)
            result = self.load("-a", 2, "-c", 2, "-t", "200ms", "https://127.0.0.1:%d/" % silent.getsockname()[1], status=1)
            self.assertEqual(result["faults"]["connect_timeout"], 2)


class Http2(TlsCase):
    def test_a_server_that_does_not_agree_to_http_2_is_an_error_at_once(self):
        for alpn in (None, ["http/1.1"]):
            with self.origin(alpn=alpn) as origin:
                done = bench("-d", 60, "--http2", "--ca", self.certs.ca, origin.url)
                self.assertEqual(done.status, 1)
                self.assertRegex(done.err, "HTTP/2|ALPN")

    def test_what_belongs_to_the_other_protocol_is_refused(self):
        for words, args in (("--streams are those of --http2", ["--streams", 5]), ("it is --streams", ["--http2", "-p", 5]),
                            ("--streams must be", ["--http2", "--streams", 0])):
            done = bench(*args, "http://localhost:1/")
            self.assertEqual(done.status, 2)
            self.assertIn(words, done.err)

    @unittest.skipUnless(shutil.which("nghttpd"), "there is no nghttpd")
    def test_nghttpd_is_loaded_over_many_streams(self):
        folder = os.path.join(self.folder, "www")
        os.makedirs(folder)
        with open(os.path.join(folder, "a.txt"), "w", encoding="ascii") as out:
            out.write("hello")
        for pair, url in ((None, "http://127.0.0.1:%d/a.txt"), (self.good, "https://localhost:%d/a.txt")):
            with Nghttpd(folder, pair) as server:
                result = self.load("--http2", "--streams", 20, "-c", 3, "-a", 2000, "-w", 2, "--ca", self.certs.ca, "-E", "hello",
                                   url % server.port)
                self.assertEqual(result["2xx"], 2000)
                self.assertEqual(result["mismatches"], 0)
                self.assertEqual(result["connections_made"], 3)
                self.assertEqual((result["protocol"], result["streams"]), ("HTTP/2", 20))

    def test_srv_is_loaded_by_prior_knowledge_and_by_agreement(self):
        with tempfile.TemporaryDirectory() as folder:
            write_app(folder, {"app.lua": APP})
            for flags in ([], ["--cert", self.good[0], "--key", self.good[1]]):
                with Srv(folder, *flags) as server:
                    url = "%s://localhost:%d" % ("https" if flags else "http", server.port)
                    self.load_srv(url, "--ca", self.certs.ca, "--http2")

    def load_srv(self, url, *args):
        result = self.load(*args, "--streams", 10, "-c", 2, "-a", 500, "-E", "hello", url + "/")
        self.assertEqual((result["2xx"], result["mismatches"]), (500, 0))
        result = self.load(*args, "-m", "POST", "-b", "x" * 100000, "-a", 20, "-E", "100000", url + "/length")
        self.assertEqual((result["2xx"], result["mismatches"]), (20, 0))


if __name__ == "__main__":
    unittest.main()
