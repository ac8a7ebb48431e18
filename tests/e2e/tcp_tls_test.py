"""srv.tcp by TLS: sockets that speak it from the first byte, or from a word of their protocol on."""
import json
import os
import socket
import ssl
import tempfile
import threading
import unittest

from certificates import Certificates
from srv_process import PATIENCE, Srv, write_app

APP = """
local srv = require "srv"
local app = srv.app()
local ca = srv.env.CA

local function answer_of(sock, err)
  if not sock then return { code = err.code, message = err.message } end
  srv.defer(function() sock:close() end)
  assert(sock:write "hello\\n")
  return { said = assert(sock:line()), tls = sock.tls }
end

app:get("/talk/:port<int>", { query = { host = "string = localhost", name = "string?", timeout = "string?" } }, function(req)
  local valid = req.valid.query
  return answer_of(srv.tcp.connect(valid.host, req.params.port,
    { tls = { ca = ca, server_name = valid.name }, connect_timeout = valid.timeout }))
end)
app:get("/untrusted/:port<int>", function(req)
  return answer_of(srv.tcp.connect("localhost", req.params.port, { tls = true }))
end)
local listener = assert(srv.tcp.listen("127.0.0.1:0", function(sock)
  sock:write(sock:line(), " from ", sock.tls.peer and sock.tls.peer.subject or "nobody", " by ", tostring(sock.tls.alpn), "\\n")
end, {
  timeout = "30s",
  tls = { cert = srv.env.CERT, key = srv.env.KEY, client_ca = ca, client_cert = "optional", alpn = "shout" },
}))
app:get("/address", function() return { address = listener.address } end)

app:get("/big/:port<int>", function(req)
  local sock = assert(srv.tcp.connect("localhost", req.params.port, { tls = { ca = ca } }))
  assert(sock:write(("0123456789"):rep(300000), "\\n"))
  local line = assert(sock:read_until("\\n", "8MiB"))
  sock:close()
  return { bytes = #line }
end)
app:get("/start/:port<int>", function(req)
  local sock = assert(srv.tcp.connect("localhost", req.params.port))
  assert(sock:write "STARTTLS\\n")
  assert(sock:line() == "go ahead")
  local ok, err = sock:start_tls { ca = ca }
  if not ok then return { code = err.code, message = err.message } end
  return answer_of(sock)
end)
return app
"""


class Peer:
    """Echoes lines in capitals: by TLS at once, after STARTTLS, or never."""

    def __init__(self, certs, kind="tls"):
        self.kind = kind
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certs.cert, certs.key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(PATIENCE)
            try:
                self.talk(connection)
            except OSError:
                pass
            finally:
                connection.close()

    def talk(self, connection):
        if self.kind == "silent":
            connection.recv(1 << 16)
            connection.recv(1 << 16)  # until it leaves
            return
        if self.kind == "plain":
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return
        if self.kind in ("start", "eager"):
            connection.recv(1 << 16)
            connection.sendall(b"go ahead\n" + (b"more" if self.kind == "eager" else b""))
        with self.context.wrap_socket(connection, server_side=True) as secure:
            line = b""
            while not line.endswith(b"\n"):
                part = secure.recv(1 << 16)
                if not part:
                    return
                line += part
            secure.sendall(line.upper())
            secure.recv(1)  # until it leaves


class TcpTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="srv-tcp-tls-")
        cls.certs = Certificates(os.path.join(cls.folder.name, "certs"))
        app = write_app(os.path.join(cls.folder.name, "app"), {"app.lua": APP})
        cls.srv = Srv(app, "--no-watch", env={"CA": cls.certs.ca, "CERT": cls.certs.cert, "KEY": cls.certs.key})

    @classmethod
    def tearDownClass(cls):
        cls.srv.kill()
        cls.folder.cleanup()

    def peer(self, kind="tls"):
        peer = Peer(self.certs, kind)
        self.addCleanup(peer.close)
        return peer

    def get(self, path):
        status, _, body = self.srv.get(path)
        self.assertEqual(200, status, (body, self.srv.lines[-3:]))
        return json.loads(body)

    def test_it_speaks_tls_from_the_first_byte(self):
        answer = self.get("/talk/%d" % self.peer().port)
        self.assertEqual("HELLO", answer["said"])
        self.assertRegex(answer["tls"]["version"], r"^TLSv1\.[23]$")
        self.assertFalse(answer["tls"]["resumed"])

    def ask_listener(self, **more):
        """What the app's own listener says to a client of OpenSSL's."""
        context = ssl.create_default_context(cafile=self.certs.ca)
        context.set_alpn_protocols(["shout"])
        if more.get("cert"):
            context.load_cert_chain(*more["cert"])
        port = int(self.get("/address")["address"].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection, \
                context.wrap_socket(connection, server_hostname="localhost", suppress_ragged_eofs=False) as secure:
            secure.sendall(b"hello\n")
            said = b""
            while part := secure.recv(1 << 16):
                said += part
            return said.decode()

    def test_a_listener_talks_to_openssl(self):
        self.assertEqual("hello from nobody by shout\n", self.ask_listener())

    def test_a_listener_knows_who_has_a_certificate(self):
        me = self.certs.make("alice", client=True, subject="/O=Example/CN=alice")
        self.assertRegex(self.ask_listener(cert=me), "^hello from .*CN=alice.* by shout\n$")

    def test_a_listener_turns_away_a_certificate_of_another_authority(self):
        other = Certificates(os.path.join(self.folder.name, "other"))
        with self.assertRaises(OSError):  # an alert, with TLS 1.3 in the place of the answer; or a reset
            self.assertEqual("", self.ask_listener(cert=other.make("mallory", client=True)))
            raise ConnectionResetError

    def test_a_session_is_taken_up_again(self):
        peer = self.peer()
        self.get("/talk/%d" % peer.port)
        self.assertTrue(self.get("/talk/%d" % peer.port)["tls"]["resumed"])

    def test_three_megabytes_go_there_and_back(self):
        self.assertEqual({"bytes": 3000000}, self.get("/big/%d" % self.peer().port))

    def test_whom_nobody_knows_is_not_talked_to(self):
        answer = self.get("/untrusted/%d" % self.peer().port)
        self.assertEqual("tls", answer["code"])
        self.assertIn("known authority", answer["message"])

    def test_the_certificate_is_for_the_host_or_the_name_that_was_given(self):
        peer = self.peer()
        self.assertEqual("HELLO", self.get("/talk/%d?host=127.0.0.1" % peer.port)["said"])
        answer = self.get("/talk/%d?name=other.example" % peer.port)
        self.assertEqual("tls", answer["code"])
        self.assertIn("other.example", answer["message"])

    def test_a_peer_that_speaks_none_is_told(self):
        self.assertEqual("tls", self.get("/talk/%d" % self.peer("plain").port)["code"])

    def test_a_handshake_has_the_time_of_connecting(self):
        answer = self.get("/talk/%d?timeout=200ms" % self.peer("silent").port)
        self.assertEqual({"code": "timeout", "message": "the TLS handshake did not end in time"}, answer)

    def test_it_begins_at_a_word_of_the_protocol(self):
        self.assertEqual("HELLO", self.get("/start/%d" % self.peer("start").port)["said"])

    def test_what_came_before_the_handshake_is_not_taken_for_encrypted(self):
        answer = self.get("/start/%d" % self.peer("eager").port)
        self.assertEqual("tls", answer["code"])


if __name__ == "__main__":
    unittest.main()
