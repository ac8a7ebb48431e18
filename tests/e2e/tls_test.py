"""HTTPS by the real server, as curl, Python's ssl, openssl, sslscan and Chromium speak it: certificates and their
choice, clients' certificates, sessions, reloads, the port of plain HTTP beside it, what goes wrong."""
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import unittest

import chromium
from certificates import Certificates
from srv_process import PATIENCE, ROOT, Srv, run_to_end, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:use(srv.helmet())
app:get("/", function(req, res)
  res:cookie("seen", "1")
  return { secure = req.secure, proto = req.proto, tls = req.tls or srv.null, host = req.host, ip = req.ip }
end)
app:get("/worker", function(req) return { worker = srv.worker.id, resumed = req.tls.resumed } end)
app:get("/slow", function(req) srv.sleep(0.3) return "slow" end)
local at_work = srv.shared "at_work"
app:get("/long", function() at_work:incr "count" srv.sleep(60) return "long" end)
app:get("/at_work", function() return { count = at_work:get "count" or 0 } end)
app:get("/big", function() return ("0123456789abcdef"):rep(65536 * 3) end)
app:post("/echo", { body_limit = "8MiB" }, function(req, res) res:type("bin") return req:bytes() or "" end)
app:post("/length", { body_limit = "8MiB" }, function(req) return tostring(#req:bytes()) end)
app:get("/.well-known/acme-challenge/:token", function(req) return "answer to " .. req.params.token end)
app:get("/page", function(req, res)
  return res:html('<!doctype html><title>page</title><p id="p">' .. tostring(req.tls and req.tls.version) .. '</p>')
end)
if srv.fs.stat "files" then app:static("/files", "files") end
return app
"""

FILE = bytes(range(256)) * 12000  # more than a turn of a connection writes


def replace(path, text):
    """As tools save: a new file under the old name."""
    with open(path + ".new~", "w", encoding="utf-8") as out:
        out.write(text)
    os.rename(path + ".new~", path)


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.app = write_app(os.path.join(cls.folder, "app"), {"app.lua": APP})
        os.mkdir(os.path.join(cls.app, "files"))
        with open(os.path.join(cls.app, "files", "data.bin"), "wb") as out:
            out.write(FILE)
        cls.made = Certificates(os.path.join(cls.folder, "tls"), "shop.test", "*.shop.test")

    def serve(self, *flags, cert=None, key=None, workers=1, app=None, env=None):
        srv = Srv(app or self.app, "--cert", cert or self.made.cert, "--key", key or self.made.key, *flags,
                  workers=workers, env=env)
        self.addCleanup(srv.kill)
        return srv

    def context(self, cert=None, trusted=True):
        context = ssl.create_default_context(cafile=self.made.ca if trusted else None)
        if not trusted:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if cert:
            context.load_cert_chain(*cert)
        return context

    def connect(self, srv, name="localhost", context=None, session=None):
        plain = srv.connect()
        self.addCleanup(plain.close)
        secure = (context or self.context()).wrap_socket(plain, server_hostname=name, session=session)
        self.addCleanup(secure.close)
        return secure

    def ask(self, connection, path="/", method="GET", body=None, headers=None):
        """One exchange over a connection that stays open: (status, headers, body)."""
        client = http.client.HTTPConnection("localhost")
        client.sock = connection
        client.request(method, path, body, headers or {})
        answer = client.getresponse()
        found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        client.sock = None
        return found

    def get(self, srv, path="/", **options):
        connection = self.connect(srv, **options)
        try:
            return self.ask(connection, path)
        finally:
            connection.close()

    def get_json(self, srv, path="/", **options):
        status, _, body = self.get(srv, path, **options)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def curl(self, *args):
        return subprocess.run(["curl", "-sS", "--max-time", str(PATIENCE), *args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=2 * PATIENCE)

    def s_client(self, srv, *args, stdin=""):
        done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % srv.port, "-CAfile", self.made.ca,
                               *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=PATIENCE)
        return done.stdout


class Serving(Tls):
    def test_curl_that_knows_the_authority_gets_an_answer(self):
        srv = self.serve()
        self.assertRegex(srv.url, "^https://127.0.0.1:")
        for name in ("localhost", "127.0.0.1"):
            done = self.curl("--cacert", self.made.ca, "https://%s:%d/" % (name, srv.port))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(json.loads(done.stdout)["secure"])
        done = self.curl("https://localhost:%d/" % srv.port)
        self.assertEqual(done.returncode, 60, "an authority that nobody knows is not trusted")

    def test_the_app_sees_what_the_connection_is(self):
        srv = self.serve()
        status, headers, body = self.get(srv)
        seen = json.loads(body)
        self.assertEqual(status, 200)
        self.assertEqual((seen["proto"], seen["secure"]), ("https", True))
        self.assertRegex(seen["tls"]["version"], r"^TLSv1\.[23]$")
        self.assertRegex(seen["tls"]["cipher"], "GCM|CHACHA20")
        self.assertEqual(seen["tls"]["sni"], "localhost")
        self.assertNotIn("client", seen["tls"])
        self.assertIn("secure", headers["set-cookie"].lower())
        self.assertIn("max-age=", headers["strict-transport-security"])

    def test_client_and_server_agree_on_what_is_spoken(self):
        def agreed(srv, *offered):
            context = self.context()
            context.set_alpn_protocols(list(offered))
            return self.connect(srv, context=context).selected_alpn_protocol()

        both, first = self.serve(), self.serve("--no-http2")
        self.assertEqual(agreed(both, "http/1.1", "h2"), "h2")
        self.assertEqual(agreed(both, "http/1.1"), "http/1.1")
        self.assertEqual(agreed(first, "h2", "http/1.1"), "http/1.1")
        for srv, version in ((both, "2"), (first, "1.1")):
            done = self.curl("--cacert", self.made.ca, "-w", "%{http_version}", "-o", "/dev/null",
                             "https://localhost:%d/" % srv.port)
            self.assertEqual(done.stdout, version, done.stderr)
        done = self.curl("--cacert", self.made.ca, "https://localhost:%d/" % both.port)
        self.assertEqual(json.loads(done.stdout)["tls"]["sni"], "localhost")

    def test_a_client_that_knows_none_of_it_speaks_http_1(self):
        self.assertEqual(self.get(self.serve(), "/page")[0], 200)

    def test_plain_http_is_as_it_was(self):
        with Srv(self.app) as srv:
            status, headers, body = srv.get("/")
            self.assertEqual((status, json.loads(body)["tls"], json.loads(body)["secure"]), (200, None, False))
            self.assertNotIn("secure", headers["set-cookie"].lower())
            self.assertNotIn("strict-transport-security", headers)

    def test_bodies_of_any_size_go_both_ways(self):
        srv = self.serve()
        connection = self.connect(srv)
        for size in (0, 1, 16384, 16385, 3 << 20):
            sent = os.urandom(size)
            self.assertEqual(self.ask(connection, "/echo", "POST", sent)[2], sent)
        self.assertEqual(len(self.ask(connection, "/big")[2]), 3 << 20)
        self.assertEqual(self.ask(connection, "/files/data.bin")[2], FILE)
        self.assertEqual(self.ask(connection, "/files/data.bin", headers={"Range": "bytes=5-9"})[2], FILE[5:10])

    def test_a_head_that_comes_byte_by_byte_is_a_head(self):
        connection = self.connect(self.serve())
        for byte in b"GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":
            connection.sendall(bytes([byte]))
        self.assertTrue(connection.makefile("rb").read().endswith(b"slow"))

    def test_a_body_in_records_of_a_byte_each_is_a_body(self):
        count = 300000  # sent at once, more comes than a read takes
        connection = self.serve().connect()
        self.addCleanup(connection.close)
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        secure = self.context().wrap_bio(received, sent, server_hostname="localhost")

        def until_done(step):
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    connection.sendall(sent.read())
                    received.write(connection.recv(65536))

        until_done(secure.do_handshake)
        secure.write(b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % count)
        for _ in range(count):
            secure.write(b"x")
        self.assertRegex(until_done(lambda: secure.read(65536)), rb"HTTP/1.1 200 OK[^|]*\r\n\r\n%d$" % count)

    def test_requests_in_a_row_are_answered_in_their_order(self):
        connection = self.connect(self.serve())
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = connection.makefile("rb").read()
        self.assertLess(answer.index(b"slow"), answer.index(b"<title>page"))

    def test_an_end_is_said_so_that_nothing_can_be_cut_off(self):
        connection = self.connect(self.serve())
        connection.suppress_ragged_eofs = False
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while (piece := connection.recv(4096)):  # a missing close_notify would raise
            answer += piece
        self.assertIn(b"page", answer)

    @unittest.skipUnless(chromium.CHROMIUM and shutil.which("certutil"), "no Chromium, or no certutil")
    def test_chromium_that_trusts_the_authority_shows_a_page(self):
        srv = self.serve()
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        store = os.path.join(home.name, ".pki", "nssdb")
        os.makedirs(store)
        for command in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "srv-dev", "-i", self.made.ca]):
            subprocess.run(["certutil", "-d", "sql:" + store, *command], check=True, timeout=PATIENCE)
        before = os.environ.get("HOME")
        os.environ["HOME"] = home.name
        try:
            document, _ = chromium.run("https://localhost:%d/page" % srv.port)
        finally:
            os.environ["HOME"] = before or ""
        self.assertRegex(document, r'<p id="p">TLSv1\.[23]</p>')


class Choosing(Tls):
    """Several certificates."""

    def setUp(self):
        self.rsa = self.made.make("rsa", "rsa.test", "localhost", kind="rsa")
        self.other = self.made.make("other", "other.test", "*.wild.test")

    def presented(self, srv, name, *args):
        said = self.s_client(srv, "-servername", name, *args)
        return re.search(r"subject=.*?CN ?= ?([^\s,]+)", said).group(1)

    def serve_all(self):
        return self.serve("--cert", self.rsa[0], "--key", self.rsa[1], "--cert", self.other[0], "--key", self.other[1])

    def test_the_name_asked_for_chooses_and_the_first_is_for_all_others(self):
        srv = self.serve_all()
        self.assertEqual(self.presented(srv, "other.test"), "other.test")
        self.assertEqual(self.presented(srv, "a.wild.test"), "other.test")
        self.assertEqual(self.presented(srv, "rsa.test"), "rsa.test")
        self.assertEqual(self.presented(srv, "shop.test"), "localhost")
        self.assertEqual(self.presented(srv, "nobody.test"), "localhost")

    def test_a_name_with_a_nul_in_it_is_not_the_one_before_it(self):
        def asked(name):
            extension = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
            extensions = extension + bytes.fromhex("000a00080006001d00170018000d000a00080403050304010501000b00020100")
            body = (b"\3\3" + bytes(32) + bytes.fromhex("000008c02bc02fc02cc0300100")
                    + struct.pack(">H", len(extensions)) + extensions)
            message = b"\1" + struct.pack(">I", len(body))[1:] + body
            with self.serve_all().connect() as connection:
                connection.sendall(b"\x16\3\1" + struct.pack(">H", len(message)) + message)
                return connection.recv(65536)

        self.assertIn(b"other.test", asked(b"other.test"))
        self.assertNotIn(b"other.test", asked(b"other.test\0x"))

    def test_of_two_kinds_for_one_name_the_client_gets_the_one_it_can_use(self):
        srv = self.serve_all()
        for cipher, name in (("ECDHE-RSA-AES128-GCM-SHA256", "rsa.test"),
                             ("ECDHE-ECDSA-AES128-GCM-SHA256", "localhost")):
            self.assertEqual(self.presented(srv, "localhost", "-tls1_2", "-cipher", cipher), name)

    def test_config_lua_has_them_in_pairs_beside_the_app(self):
        app = write_app(os.path.join(self.folder, "pairs"), {
            "app.lua": APP, "cert.pem": read_text(self.made.cert), "sub/both.pem":
            read_text(self.other[0]) + read_text(self.other[1]), "key.pem": read_text(self.made.key),
            "config.lua": 'return { tls = { { "cert.pem", "key.pem" }, { cert = "sub/both.pem" } } }'})
        srv = Srv(app)
        self.addCleanup(srv.kill)
        self.assertEqual(self.presented(srv, "localhost"), "localhost")
        self.assertEqual(self.presented(srv, "other.test"), "other.test")

    def test_variables_name_them_too(self):
        srv = Srv(self.app, env={"SRV_CERT": self.made.cert, "SRV_KEY": self.made.key})
        self.addCleanup(srv.kill)
        self.assertTrue(self.get_json(srv)["secure"])

    def test_a_key_may_stand_beside_its_certificate(self):
        both = os.path.join(self.folder, "both.pem")
        with open(both, "w", encoding="ascii") as out:
            out.write(read_text(self.made.cert) + read_text(self.made.key))
        srv = Srv(self.app, "--cert", both)
        self.addCleanup(srv.kill)
        self.assertTrue(self.get_json(srv)["secure"])


class Clients(Tls):
    """Clients that show a certificate, or do not."""

    def setUp(self):
        self.alice = self.made.make("alice", client=True, subject="/O=Example/CN=alice")
        strangers = Certificates(os.path.join(self.folder, "strangers-" + self.id().rsplit(".", 1)[1]))
        self.stranger = strangers.make("mallory", client=True)

    def asked(self, how):
        return self.serve("--client-ca", self.made.ca, "--client-cert", how)

    def test_required_is_required(self):
        srv = self.asked("required")
        seen = self.get_json(srv, context=self.context(self.alice))["tls"]["client"]
        self.assertRegex(seen["subject"], "CN=alice")
        self.assertEqual(seen["serial"].replace(":", "").upper().lstrip("0"),
                         self.made.serial(self.alice[0]).lstrip("0"))
        der = ssl.PEM_cert_to_DER_cert(read_text(self.alice[0]))
        self.assertEqual(seen["fingerprint"], hashlib.sha256(der).hexdigest())
        with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException)):
            self.get(srv)
        with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException)):
            self.get(srv, context=self.context(self.stranger))
        srv.wait_line("TLS handshake failed")
        self.assertIn("client", self.get_json(srv, context=self.context(self.alice))["tls"])

    def test_who_is_not_let_in_is_told_why(self):
        srv = self.asked("required")
        for args in ([], ["-tls1_2"]):
            self.assertRegex(self.s_client(srv, "-ign_eof", *args), "alert (no certificate|handshake failure)")
        self.assertRegex(self.s_client(srv, "-ign_eof", "-cert", self.stranger[0], "-key", self.stranger[1]),
                         "alert (unknown ca|bad certificate)")

    def test_optional_lets_those_in_who_show_none_but_no_bad_one(self):
        srv = self.asked("optional")
        self.assertNotIn("client", self.get_json(srv)["tls"])
        self.assertIn("alice", self.get_json(srv, context=self.context(self.alice))["tls"]["client"]["subject"])
        with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException)):
            self.get(srv, context=self.context(self.stranger))

    def test_who_comes_back_is_still_alice(self):
        """By the session in TLS 1.2; in 1.3 by a handshake in full, for mbedTLS' sessions do not say who it was."""
        srv = self.asked("required")
        context = self.context(self.alice)
        first = self.connect(srv, context=context)
        self.ask(first)
        session, is_12 = first.session, first.version() == "TLSv1.2"
        first.close()
        second = self.connect(srv, context=context, session=session)
        self.assertEqual(second.session_reused, is_12)
        self.assertIn("alice", json.loads(self.ask(second)[2])["tls"]["client"]["subject"])


class Sessions(Tls):
    def test_a_ticket_of_one_worker_is_good_for_all(self):
        srv = self.serve(workers=3)
        context = self.context()
        first = self.connect(srv, context=context)
        self.ask(first)
        session, workers = first.session, set()
        first.close()

        def again():
            connection = self.connect(srv, context=context, session=session)
            self.assertTrue(connection.session_reused)
            seen = json.loads(self.ask(connection, "/worker")[2])
            connection.close()
            self.assertTrue(seen["resumed"])
            workers.add(seen["worker"])
            return len(workers) > 1

        wait_until(again, "two workers take it up")

    def test_handshakes_are_counted_by_how_they_ended(self):
        app = write_app(os.path.join(self.folder, "counted"), {
            "app.lua": APP.replace("app:use(srv.helmet())", "app:use(srv.metrics())")})
        srv, context = self.serve(app=app), self.context()
        first = self.connect(srv, context=context)
        self.ask(first)
        second = self.connect(srv, context=context, session=first.session)
        with self.assertRaises(ssl.SSLError):
            self.connect(srv, context=ssl.create_default_context())  # which trusts nobody that we know

        def counted():
            page = self.ask(second, "/metrics")[2].decode()
            return re.findall(r'srv_tls_handshakes_total\{result="(\w+)"\} (\d+)', page)

        wait_until(lambda: sorted(counted()) == [("failed", "1"), ("full", "1"), ("resumed", "1")], "all are counted")

    def test_a_ticket_outlives_new_certificates(self):
        folder = os.path.join(self.folder, "renewed")
        made = Certificates(folder)
        srv = self.serve(cert=made.cert, key=made.key)
        context = self.context(trusted=False)
        first = self.connect(srv, context=context)
        self.ask(first)
        session = first.session
        self.assertEqual(run_to_end("cert", "--dev", "--force", "--out", folder)[0], 0)
        srv.wait_line("certificates reloaded")
        second = self.connect(srv, context=context, session=session)
        self.assertTrue(second.session_reused)
        self.assertEqual(self.ask(second)[0], 200)


class Renewing(Tls):
    def setUp(self):
        self.own = Certificates(os.path.join(self.folder, "own-" + self.id().rsplit(".", 1)[1]))
        self.srv = self.serve(cert=self.own.cert, key=self.own.key, workers=2)

    def serial(self):
        connection = self.connect(self.srv, context=self.context(trusted=False))
        der = connection.getpeercert(True)
        connection.close()
        return hashlib.sha256(der).hexdigest()

    def test_new_files_are_for_new_connections_and_old_ones_go_on(self):
        old = self.connect(self.srv, context=self.context(trusted=False))
        self.assertEqual(self.ask(old)[0], 200)
        before = self.serial()
        self.assertEqual(run_to_end("cert", "--dev", "--force", "--out", self.own.folder)[0], 0)
        self.srv.wait_line("certificates reloaded")
        wait_until(lambda: self.serial() != before, "the new certificate is shown")
        self.assertEqual(self.ask(old)[0], 200)

    def test_a_broken_file_changes_nothing_and_is_told_of(self):
        before, start = self.serial(), len(self.srv.lines)
        whole = read_text(self.own.cert)
        replace(self.own.cert, whole[:200])
        line = self.srv.wait_line("certificates not reloaded", start)
        self.assertIn(self.own.cert, line.string)
        self.assertEqual(self.serial(), before)
        replace(self.own.cert, whole)
        self.assertEqual(self.serial(), before)

    def test_a_key_that_belongs_to_another_certificate_is_not_taken(self):
        other = Certificates(self.own.path("other"))
        before, start = self.serial(), len(self.srv.lines)
        replace(self.own.key, read_text(other.key))
        self.srv.wait_line("certificates not reloaded", start)
        self.assertEqual(self.serial(), before)
        replace(self.own.cert, read_text(other.cert))  # now they fit
        self.srv.wait_line("certificates reloaded", start)
        wait_until(lambda: self.serial() != before, "the new pair is shown")

    def test_a_link_into_another_folder_is_followed_on_sighup(self):
        os.mkdir(self.own.path("live"))
        for name in ("cert.pem", "key.pem"):
            os.symlink(self.own.path(name), self.own.path("live/" + name))
        srv = self.serve(cert=self.own.path("live/cert.pem"), key=self.own.path("live/key.pem"))
        self.srv, start = srv, len(srv.lines)
        before = self.serial()
        self.assertEqual(run_to_end("cert", "--dev", "--force", "--out", self.own.folder)[0], 0)
        srv.signal(signal.SIGHUP)
        srv.wait_line("certificates reloaded", start)
        wait_until(lambda: self.serial() != before, "the new certificate is shown")

    def test_certificates_that_expire_soon_are_warned_of(self):
        cert, key = self.made.make("short", "short.test", days=5)
        self.serve(cert=cert, key=key).wait_line(r"certificate warning.*short\.pem.*expires in \d days")
        self.assertNotIn("certificate warning", self.srv.output)


class Wrong(Tls):
    """What is no TLS, or not in time."""

    def test_plain_http_is_told_that_this_port_speaks_https(self):
        srv = self.serve()
        for request in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 500, b"P"):
            connection = srv.connect()
            connection.sendall(request)
            answer = connection.makefile("rb").read()
            connection.close()
            self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
            self.assertIn(b"this port speaks HTTPS", answer)
        self.assertTrue(self.get_json(srv)["secure"])

    def test_garbage_gets_no_answer(self):
        srv = self.serve()
        for sent in (b"\0\0\0\0", b"\x80garbage", b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\xff\xff" + b"x" * 1000):
            connection = srv.connect()
            connection.sendall(sent)
            try:
                answer = connection.makefile("rb").read()
            except ConnectionResetError:
                answer = b""
            connection.close()
            self.assertNotIn(b"HTTP", answer)
        srv.wait_line("TLS handshake failed")
        self.assertTrue(self.get_json(srv)["secure"])

    def test_tls_on_a_port_of_plain_http_is_told_once_with_the_way_out(self):
        with Srv(self.app) as srv:
            for _ in range(3):
                with self.assertRaises((ssl.SSLError, OSError)):
                    self.connect(srv)
            srv.wait_line("TLS on a port of plain HTTP.*srv cert --dev")
            self.assertEqual(srv.get("/")[0], 200)
            self.assertEqual(srv.output.count("TLS on a port"), 1)
            self.assertNotIn("request refused", srv.output)

    def closes(self, connection):
        try:
            return connection.recv(4096) == b""
        except ConnectionResetError:
            return True

    def test_a_handshake_that_does_not_come_on_ends_at_its_limit(self):
        srv = self.serve("--handshake-timeout", "300ms")
        silent = srv.connect()
        self.assertTrue(self.closes(silent))
        hello = self.client_hello()
        for cut in (1, 5, 60, len(hello) - 1):
            half = srv.connect()
            half.sendall(hello[:cut])
            self.assertTrue(self.closes(half), cut)
            half.close()
        whole = srv.connect()
        whole.sendall(hello)  # and never goes on
        try:
            while whole.recv(65536):
                pass
        except ConnectionResetError:
            pass
        srv.wait_line("TLS handshake failed.*took too long")
        silent.close()
        whole.close()

    def client_hello(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        return outgoing.read()

    def test_a_hello_may_come_byte_by_byte(self):
        srv = self.serve()
        hello = self.client_hello()
        connection = srv.connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in hello:
            connection.sendall(bytes([byte]))
        self.assertEqual(connection.recv(1), b"\x16")
        connection.close()

    def test_old_versions_and_weak_ciphers_are_refused(self):
        srv = self.serve()
        for args in (["-tls1"], ["-tls1_1"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"],
                     ["-tls1_2", "-cipher", "AES128-GCM-SHA256"]):
            said = self.s_client(srv, *args)
            self.assertNotRegex(said, r"Cipher is [A-Z]\S+-", args)

    def test_renegotiation_is_refused(self):
        said = self.s_client(self.serve(), "-tls1_2", stdin="R\nGET / HTTP/1.0\r\n\r\n")
        self.assertNotIn("HTTP/1.1 200", said)

    @unittest.skipUnless(shutil.which("sslscan"), "no sslscan")
    def test_sslscan_finds_nothing(self):
        srv = self.serve()
        said = subprocess.run(["sslscan", "--no-colour", "--show-certificate", "--sni-name=localhost",
                               "127.0.0.1:%d" % srv.port], stdout=subprocess.PIPE, text=True, timeout=4 * PATIENCE).stdout
        self.assertRegex(said, r"TLSv1\.2 +enabled")
        for name in ("SSLv2", "SSLv3", r"TLSv1\.0", r"TLSv1\.1"):
            self.assertRegex(said, name + " +disabled")
        accepted = re.findall(r"(?:Preferred|Accepted) +\S+ +\d+ bits +(\S+)", said)
        self.assertTrue(accepted)
        for cipher in accepted:
            self.assertRegex(cipher, "^(ECDHE|TLS_).*(GCM|CHACHA20)", said)
        self.assertRegex(said, "not vulnerable to heartbleed")
        self.assertNotIn("Insecure", said)
        self.assertRegex(said, "Compression disabled|does not support compression")


class Lasting(Tls):
    """Reloads, crashes and the end, under load."""

    def load(self, srv, fresh):
        ending, failed, answered = threading.Event(), [], [0]
        context = self.context(trusted=False)

        def run():
            connection = None
            while not ending.is_set():
                try:
                    connection = connection or http.client.HTTPSConnection("127.0.0.1", srv.port, context=context,
                                                                           timeout=PATIENCE)
                    connection.request("GET", "/page")
                    answer = connection.getresponse()
                    if answer.status != 200 or b"page" not in answer.read():
                        failed.append(answer.status)
                    answered[0] += 1
                except Exception as error:  # every kind is a lost request
                    failed.append(repr(error))
                    connection = None
                if fresh and connection:
                    connection.close()
                    connection = None

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def end():
            ending.set()
            thread.join()
            return failed, answered[0]
        return end

    def test_fifty_reloads_lose_nothing(self):
        srv = self.serve(workers=2)
        ends = [self.load(srv, fresh) for fresh in (False, False, True)]
        for i in range(50):
            start = len(srv.lines)
            srv.signal(signal.SIGHUP)
            srv.wait_line("app reloaded", start)
        for end in ends:
            failed, answered = end()
            self.assertEqual(failed, [])
            self.assertGreater(answered, 0)

    def test_a_server_that_was_killed_is_back_with_its_certificates(self):
        srv = self.serve(workers=2)
        (pid,) = srv.children()
        start = len(srv.lines)
        os.kill(pid, signal.SIGKILL)
        srv.wait_line("listening on https", start)
        self.assertTrue(self.get_json(srv)["secure"])

    def test_files_that_were_broken_since_do_not_keep_a_killed_server_from_coming_back(self):
        own = Certificates(os.path.join(self.folder, "broken"))
        srv = self.serve(cert=own.cert, key=own.key)
        start = len(srv.lines)
        replace(own.key, "nothing")
        srv.wait_line("certificates not reloaded", start)
        os.kill(srv.children()[0], signal.SIGKILL)
        srv.wait_line("listening on https", start)
        srv.wait_line("those of the start serve", start)
        self.assertTrue(self.get_json(srv, context=self.context(trusted=False))["secure"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_a_key_that_root_alone_can_read_is_enough_also_after_a_crash(self):
        os.chmod(self.folder, 0o755)
        secret = os.path.join(self.folder, "secret")
        own = Certificates(secret)
        self.assertEqual(os.stat(secret).st_mode & 0o777, 0o700)
        srv = self.serve("--user", "nobody", cert=own.cert, key=own.key)
        srv.wait_line("certificate will not be reloaded")
        context = self.context(trusted=False)
        self.assertTrue(self.get_json(srv, context=context)["secure"])
        start = len(srv.lines)
        os.kill(srv.children()[0], signal.SIGKILL)
        srv.wait_line("listening on https", start)
        self.assertTrue(self.get_json(srv, context=context)["secure"])

    def test_the_end_waits_for_answers(self):
        srv = self.serve()
        connection = self.connect(srv)
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        idle = self.connect(srv)
        self.ask(idle)
        srv.signal(signal.SIGTERM)
        self.assertIn(b"slow", connection.makefile("rb").read())
        self.assertEqual(idle.recv(100), b"")
        self.assertEqual(srv.wait_exit(), 0)

    def begin(self, srv, *offered):
        """A handshake that has begun: what goes on with it, to a connection that can be read from."""
        context = self.context()
        context.set_alpn_protocols(offered)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        plain = srv.connect()
        self.addCleanup(plain.close)
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        hello = outgoing.read()
        plain.sendall(hello[:100])

        def until(step, *args):
            while True:
                try:
                    return step(*args)
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    got = plain.recv(65536)
                    incoming.write(got) if got else incoming.write_eof()

        def go_on(request):
            plain.sendall(hello[100:])
            until(session.do_handshake)
            session.write(request)
            said = b""
            try:
                while part := until(session.read, 65536):
                    said += part
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError, BrokenPipeError):
                pass
            return said

        return go_on

    def test_a_handshake_that_began_before_the_end_may_finish(self):
        srv = self.serve()
        first, second = self.begin(srv, "http/1.1"), self.begin(srv, "h2")
        idle = self.connect(srv)
        self.ask(idle)
        srv.signal(signal.SIGTERM)
        self.assertEqual(idle.recv(100), b"")  # so the worker has begun to drain; the line in the log comes before
        said = first(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertIn(b"HTTP/1.1 200 OK", said)
        self.assertIn(b"connection: close", said.lower())
        said = second(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        kinds = []
        while said:
            length, kind = int.from_bytes(said[:3], "big"), said[3]
            kinds.append(kind)
            said = said[9 + length:]
        self.assertIn(7, kinds)  # GOAWAY
        self.assertEqual(srv.wait_exit(), 0)

    def test_handshakes_end_with_the_time_to_drain(self):
        srv = self.serve("--drain-timeout", "300ms")
        half, silent = self.begin(srv, "h2"), srv.connect()
        srv.signal(signal.SIGTERM)
        self.assertEqual(srv.wait_exit(), 0)
        self.assertNotIn("requests cancelled", srv.output)
        self.assertNotIn("drain timeout passed", srv.output)
        del half
        silent.close()

    def test_a_worker_with_handshakes_alone_takes_nobody_elses_last_answers(self):
        srv = self.serve("--drain-timeout", "300ms", workers=2)
        asked = [self.connect(srv) for _ in range(4)]
        for connection in asked:
            connection.sendall(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: self.get_json(srv, "/at_work")["count"] == len(asked), "requests under way")
        halves = [self.begin(srv, "h2") for _ in range(8)]
        srv.signal(signal.SIGTERM)
        for connection in asked:
            self.assertIn(b"HTTP/1.1 503", connection.makefile("rb").read())
        self.assertEqual(srv.wait_exit(), 0)
        del halves

    def test_the_client_is_who_the_proxy_says_before_the_handshake(self):
        srv = self.serve("--proxy-protocol", "loopback")
        header = (b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack(">H", 12) + socket.inet_aton("203.0.113.7") +
                  socket.inet_aton("10.0.0.1") + struct.pack(">HH", 40000, 443))
        plain = srv.connect()
        plain.sendall(header)
        secure = self.context().wrap_socket(plain, server_hostname="localhost")
        self.assertEqual(json.loads(self.ask(secure)[2])["ip"], "203.0.113.7")
        secure.close()

        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        plain = srv.connect()
        while True:  # the header and the hello in one segment
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(header + outgoing.read())
                header = b""
                incoming.write(plain.recv(65536))
        session.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        plain.sendall(outgoing.read())
        said = b""
        while not said:  # tickets of TLS 1.3 may come first, alone
            incoming.write(plain.recv(65536))
            try:
                said = session.read(65536)
            except ssl.SSLWantReadError:
                pass
        self.assertIn(b"203.0.113.7", said)
        plain.close()


class Redirecting(Tls):
    def setUp(self):
        self.srv = self.serve("--redirect-http", "0")
        line = self.srv.wait_line(r"http://127\.0\.0\.1:(\d+) redirects there")
        self.port = int(line.group(1))

    def ask_plain(self, request):
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(request)
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            return int(lines[0].split()[1]), fields, body

    def led(self, target, host, method="GET"):
        status, fields, _ = self.ask_plain(("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" %
                                            (method, target, host)).encode())
        self.assertEqual(status, 308)
        return fields["location"]

    def test_each_request_is_led_to_the_same_url_of_https(self):
        here = ":%d" % self.srv.port
        self.assertEqual(self.led("/a/b?c=d%20e", "shop.test"), "https://shop.test%s/a/b?c=d%%20e" % here)
        self.assertEqual(self.led("/", "shop.test:80"), "https://shop.test%s/" % here)
        self.assertEqual(self.led("/", "[::1]:8080"), "https://[::1]%s/" % here)
        self.assertEqual(self.led("/", "127.0.0.1", "POST"), "https://127.0.0.1%s/" % here)
        self.assertEqual(self.led("/x", "127.0.0.1", "HEAD"), "https://127.0.0.1%s/x" % here)

    def test_curl_follows(self):
        done = self.curl("-L", "--cacert", self.made.ca, "http://localhost:%d/page" % self.port)
        self.assertIn("<title>page", done.stdout, done.stderr)
        done = self.curl("-L", "--cacert", self.made.ca, "-d", "kept", "http://localhost:%d/echo" % self.port)
        self.assertEqual(done.stdout, "kept", done.stderr)

    def test_authorities_reach_the_app_over_plain_http(self):
        status, _, body = self.ask_plain(b"GET /.well-known/acme-challenge/abc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertEqual((status, body), (200, b"answer to abc"))

    def test_tls_there_is_told_once_with_the_port_it_belongs_to(self):
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
                with self.assertRaises((ssl.SSLError, OSError)):
                    self.context().wrap_socket(connection, server_hostname="localhost")
        self.srv.wait_line(r"TLS on a port of plain HTTP.*other port.*\b%d\b" % self.srv.port)
        self.assertNotIn("srv cert --dev", self.srv.output)
        self.ask_plain(b"GARBAGE\r\n\r\n")
        self.assertIn("https://a", self.led("/", "a"))
        self.assertEqual(self.srv.output.count("TLS on a port"), 1)
        self.assertNotIn("request refused", self.srv.output)

    def test_who_names_no_host_cannot_be_led(self):
        self.assertEqual(self.ask_plain(b"GET / HTTP/1.0\r\n\r\n")[0], 400)
        self.assertEqual(self.ask_plain(b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n")[0], 400)

    def test_it_outlives_a_crash_with_the_same_port(self):
        start = len(self.srv.lines)
        os.kill(self.srv.children()[0], signal.SIGKILL)
        line = self.srv.wait_line(r"http://127\.0\.0\.1:(\d+) redirects there", start)
        self.assertEqual(int(line.group(1)), self.port)
        self.assertIn("https://a", self.led("/", "a"))

    def test_it_ends_with_the_server(self):
        self.assertEqual(self.srv.stop(), 0)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), PATIENCE)


class Settings(Tls):
    def refused(self, *flags, env=None, app=None):
        status, output = run_to_end(app or self.app, *flags, env=env)
        self.assertNotEqual(status, 0, output)
        return output

    def test_what_cannot_work_is_told_with_its_setting(self):
        cert, key, ca = self.made.cert, self.made.key, self.made.ca
        missing = os.path.join(self.folder, "missing.pem")
        for flags, words in (
                (["--cert", missing, "--key", key], ["--cert: " + missing, "No such file"]),
                (["--cert", "missing.pem", "--key", key], [os.path.join(ROOT, "missing.pem"), "No such file"]),
                (["--cert", cert, "--key", missing], ["--key: " + missing]),
                (["--cert", cert, "--key", ca], ["--cert: " + ca, "no private key"]),
                (["--cert", key, "--key", key], [key, "is a private key"]),
                (["--cert", cert, "--key", self.made.ca_key], [self.made.ca_key, "does not belong to", cert]),
                (["--cert", cert, "--cert", ca, "--key", key], ["--key: 1 for 2 certificates"]),
                (["--key", key], ["--key: a key without its certificate", "cert is missing"]),
                (["--redirect-http", "0"], ["--redirect-http: it needs a certificate"]),
                (["--client-ca", ca], ["--client-ca: it needs a certificate"]),
                (["--cert", cert, "--key", key, "--client-ca", ca], ["--client-ca: ", '"required"']),
                (["--cert", cert, "--key", key, "--client-cert", "required"], ["--client-cert: ", "client_ca"]),
                (["--cert", cert, "--key", key, "--client-cert", "perhaps"], ["--client-cert is \"perhaps\""]),
                (["--cert", cert, "--key", key, "--redirect-http", "http"], ["--redirect-http is ", "a port"]),
                (["--cert", cert, "--key", key, "--redirect-http", "70000"], ["--redirect-http is ", "a port"]),
                (["--tls", cert], ["cert and key"]),
        ):
            output = self.refused(*flags)
            for word in words:
                self.assertIn(word, output)

    def test_config_lua_is_told_how_a_list_of_pairs_looks(self):
        for i, wrong in enumerate(('"cert.pem"', '{ "cert.pem", "key.pem" }', '{ cert = "a", key = "b" }', "true")):
            app = write_app(os.path.join(self.folder, "wrong%d" % i), {"app.lua": APP, "config.lua": "return { tls = %s }" % wrong})
            self.assertIn('tls = { { cert = "cert.pem", key = "key.pem" } }', self.refused(app=app))

    def test_a_port_that_is_taken_is_told_with_its_setting(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            output = self.refused("--cert", self.made.cert, "--key", self.made.key, "--redirect-http",
                                  str(taken.getsockname()[1]))
        self.assertIn("srv: --redirect-http: cannot listen", output)


class Measuring(Tls):
    def test_an_app_that_speaks_https_is_measured_without(self):
        app = write_app(os.path.join(self.folder, "measured"), {
            "app.lua": APP, "cert.pem": read_text(self.made.cert), "key.pem": read_text(self.made.key),
            "config.lua": 'return { tls = { { "cert.pem", "key.pem" } }, redirect_http = 0 }'})
        out = os.path.join(self.folder, "flame.html")
        status, output = run_to_end("flame", app, "--load", "[ -d 1 /page ]", "--dest", out, patience=4 * PATIENCE)
        self.assertEqual(status, 0, output)
        self.assertNotIn("400", output)


class Making(Tls):
    """srv cert --dev"""

    def test_it_makes_an_authority_and_what_it_signs(self):
        modes = {name: os.stat(self.made.path(name)).st_mode & 0o777
                 for name in ("ca.pem", "ca-key.pem", "cert.pem", "key.pem")}
        self.assertEqual(modes["key.pem"], 0o600)
        self.assertEqual(modes["ca-key.pem"], 0o600)
        self.assertEqual(modes["cert.pem"], 0o644)
        self.assertEqual(read_text(self.made.path(".gitignore")), "*\n")

    def test_whatever_the_umask_the_folder_is_its_owners_and_all_modes_are_the_same(self):
        for umask in (0o000, 0o027, 0o277):
            folder = os.path.join(self.folder, "umask%o" % umask)
            before = os.umask(umask)
            try:
                status, output = run_to_end("cert", "--dev", "--out", folder)
            finally:
                os.umask(before)
            self.assertEqual(status, 0, output)
            modes = {name: os.stat(os.path.join(folder, name)).st_mode & 0o777 for name in [".", *os.listdir(folder)]}
            self.assertEqual(modes, {".": 0o700, "ca.pem": 0o644, "ca-key.pem": 0o600, "cert.pem": 0o644,
                                     "key.pem": 0o600, ".gitignore": 0o644})

    def test_a_folder_that_is_there_keeps_its_mode(self):
        folder = os.path.join(self.folder, "there")
        os.mkdir(folder)
        os.chmod(folder, 0o750)
        self.assertEqual(run_to_end("cert", "--dev", "--out", folder + "/")[0], 0)
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o750)

    def test_a_file_in_the_place_of_the_folder_is_told_of(self):
        status, output = run_to_end("cert", "--dev", "--out", self.made.cert)
        self.assertEqual(status, 1, output)
        self.assertIn("cannot make the folder %s: File exists" % self.made.cert, output)

    def test_it_overwrites_nothing_unasked_and_then_keeps_the_authority(self):
        folder = os.path.join(self.folder, "twice")
        status, output = run_to_end("cert", "--dev", "--out", folder)
        self.assertEqual(status, 0, output)
        for told in ("curl --cacert", "certutil", "update-ca-certificates", "--cert %s/cert.pem" % folder):
            self.assertIn(told, output)
        before = {name: read_text(os.path.join(folder, name)) for name in ("ca.pem", "ca-key.pem", "cert.pem", "key.pem")}
        status, output = run_to_end("cert", "--dev", "--out", folder)
        self.assertEqual(status, 1)
        self.assertIn("--force", output)
        self.assertEqual(run_to_end("cert", "--dev", "--force", "--out", folder, "--host", "new.test")[0], 0)
        after = {name: read_text(os.path.join(folder, name)) for name in before}
        self.assertEqual([name for name in before if before[name] == after[name]], ["ca.pem", "ca-key.pem"])

    def test_what_it_says_can_be_given_to_a_shell(self):
        folder = os.path.join(self.folder, "it's here")
        status, output = run_to_end("cert", "--dev", "--out", folder)
        self.assertEqual(status, 0, output)
        said = re.search(r"srv APP (.*)", output).group(1)
        self.assertEqual(subprocess.run("printf '%s\\n' " + said, shell=True, stdout=subprocess.PIPE, text=True).stdout,
                         "--cert\n{0}/cert.pem\n--key\n{0}/key.pem\n".format(folder))

    def test_an_authority_of_two_halves_signs_nothing(self):
        folder = os.path.join(self.folder, "halves")
        self.assertEqual(run_to_end("cert", "--dev", "--out", folder)[0], 0)
        shutil.copy(os.path.join(folder, "key.pem"), os.path.join(folder, "ca-key.pem"))
        status, output = run_to_end("cert", "--dev", "--force", "--out", folder)
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"key belongs to another certificate: remove .*/ca\.pem and .*/ca-key\.pem")

    def test_what_cannot_be_meant_is_refused(self):
        for args, word in ((["--dev", "--host", "*.test"], "two labels"), (["--dev", "--host", "https://a"], "no host name"), ([], "--dev"), (["--dev", "a.test"], "--host a.test")):
            status, output = run_to_end("cert", "--out", os.path.join(self.folder, "never"), *args)
            self.assertEqual(status, 2, output)
            self.assertIn(word, output)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "never")))


if __name__ == "__main__":
    unittest.main()
