"""Redis by TLS (rediss://): a real server that has a certificate, and what is wrong with it told in plain words."""
import base64
import hashlib
import json
import os
import select
import socket
import ssl
import sys
import tempfile
import unittest

from acceptor import serve_each
from certificates import Certificates
from srv_process import PATIENCE, Srv, wait_until, write_app

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from services import Redis, free_port  # noqa: E402  (its folder is found above)

APP = """
local srv = require "srv"
local app = srv.app()
local r = srv.redis()
local heard = srv.channel(8)

app:get("/ping", function() return assert(r:ping()) end)
app:get("/big", function()
  assert(r:set("big", ("0123456789"):rep(200000)))
  return assert(r:get "big")
end)
app:get("/list", function() return { assert(r:blpop("list", 20)) } end)
app:get("/hear", function()
  local sub = assert(srv.bus.subscribe "news")
  heard:send(true)
  return { heard = assert(sub:receive "20s") }
end)
app:get("/ready", function() return { ready = heard:receive "20s" } end)
app:post("/say", function(req)
  assert(srv.bus.publish("news", req:text()))
  return { said = true }
end)
-- With srv.redis' option `tls` in the place of what a URL says.
app:post("/ping", function(req)
  local ask = req:json()
  local reply, err = srv.redis(ask.url, { tls = ask.tls }):ping()
  return { reply = reply, message = err and err.message }
end)
return app
"""


class TlsRedis(Redis):
    """Redis on two ports: `port` plain, `tls_port` with the certificate of CERTS."""

    def __init__(self, certs, *flags, cert=None):
        self.tls_port = free_port()
        cert, key = cert or (certs.cert, certs.key)
        super().__init__("--tls-port", str(self.tls_port), "--tls-cert-file", cert, "--tls-key-file", key,
                         "--tls-ca-cert-file", certs.ca, *flags)


class Relay:
    """Speaks TLS in the place of a Redis that does not; `resumed` are its handshakes."""

    def __init__(self, certs, port):
        self.port, self.resumed, self.open = port, [], []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certs.cert, certs.key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.tls_port = self.listener.getsockname()[1]
        serve_each(self.listener, self._serve)

    def _serve(self, peer):
        peer.settimeout(PATIENCE)
        try:
            with self.context.wrap_socket(peer, server_side=True) as near, \
                    socket.create_connection(("127.0.0.1", self.port)) as far:
                self.resumed.append(near.session_reused)
                self.open.append(far)
                while True:
                    for source in [near] if near.pending() else select.select([near, far], [], [], PATIENCE)[0]:
                        piece = source.recv(1 << 16)
                        if not piece:
                            return
                        (far if source is near else near).sendall(piece)
        except OSError:
            pass

    def drop(self):
        """Ends all connections."""
        while self.open:
            try:
                self.open.pop().shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended by itself
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.drop()


class RedisTlsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="srv-rediss-")
        self.addCleanup(self.folder.cleanup)
        self.app = write_app(os.path.join(self.folder.name, "app"), {"app.lua": APP})
        self.certs = Certificates(os.path.join(self.folder.name, "certs"))

    def redis(self, *flags, cert=None):
        redis = TlsRedis(self.certs, *(flags or ("--tls-auth-clients", "no")), cert=cert).__enter__()
        self.addCleanup(redis.close)
        return redis

    def url(self, redis, host="localhost", **more):
        """With the authority, unless MORE names another."""
        values = {"ca": self.certs.ca, **more}
        return "rediss://%s:%d?%s" % (host, redis.tls_port, "&".join("%s=%s" % pair for pair in values.items()))

    def start(self, url):
        srv = Srv(self.app, "--no-watch", env={"REDIS_URL": url})
        self.addCleanup(srv.kill)
        return srv

    def ping(self, srv):
        status, _, body = srv.get("/ping")
        return body if status == 200 else status

    def refused(self, url, why):
        srv = self.start(url)
        self.assertEqual(503, self.ping(srv))
        srv.wait_line('"redis is away".*' + why)

    def test_commands_and_big_values_go_through(self):
        redis = self.redis()
        srv = self.start(self.url(redis))
        self.assertEqual(b"PONG", self.ping(srv))
        self.assertEqual(b"0123456789" * 200000, srv.get("/big")[2])
        self.assertEqual("2000000", redis.ask("STRLEN", "big"))

    def test_who_waits_has_a_connection_of_its_own_by_tls_too(self):
        redis = self.redis()
        srv = self.start(self.url(redis))
        connection = srv.connect()
        self.addCleanup(connection.close)
        connection.sendall(b"GET /list HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        wait_until(lambda: "blocked_clients:1" in redis.ask("INFO", "clients"), "a client that waits")
        self.assertEqual(b"PONG", self.ping(srv))
        redis.ask("RPUSH", "list", "x")
        answer = b""
        while part := connection.recv(65536):
            answer += part
        self.assertIn(b'[["list","x"]]', answer)

    def test_the_bus_of_two_servers_goes_through_it(self):
        redis = self.redis()
        one, two = self.start(self.url(redis)), self.start(self.url(redis))
        connection = one.connect()
        self.addCleanup(connection.close)
        connection.sendall(b"GET /hear HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertEqual(200, one.get("/ready")[0])
        wait_until(lambda: "news" in redis.ask("PUBSUB", "CHANNELS") or redis.ask("PUBSUB", "NUMPAT") != "0",
                   "a subscription")
        self.assertEqual(200, two.request("POST", "/say", "hello")[0])
        answer = b""
        while part := connection.recv(65536):
            answer += part
        self.assertEqual({"heard": "hello"}, json.loads(answer.split(b"\r\n\r\n", 1)[1]))

    def test_a_server_that_was_away_is_found_again(self):
        redis = self.redis()
        srv = self.start(self.url(redis))
        self.assertEqual(b"PONG", self.ping(srv))
        redis.kill()
        wait_until(lambda: self.ping(srv) == 503, "503 while it is away")
        redis.start()
        wait_until(lambda: self.ping(srv) == b"PONG", "answers again")

    def test_a_session_is_taken_up_again(self):
        relay = Relay(self.certs, self.redis().port)
        self.addCleanup(relay.close)
        srv = self.start(self.url(relay))
        self.assertEqual(b"PONG", self.ping(srv))
        self.assertFalse(relay.resumed[0])
        before = len(relay.resumed)
        relay.drop()
        wait_until(lambda: self.ping(srv) == b"PONG" and True in relay.resumed[before:], "a session that was taken up again")

    def test_files_that_are_mended_are_read_again(self):
        redis = self.redis()
        authority = os.path.join(self.folder.name, "ca.pem")
        srv = self.start(self.url(redis, ca=authority))
        self.assertEqual(503, self.ping(srv))
        srv.wait_line(r'"redis is away".*cannot be read: .*/ca\.pem: No such file')
        os.symlink(self.certs.ca, authority)
        wait_until(lambda: self.ping(srv) == b"PONG", "answers")

    def test_a_certificate_of_our_own_is_shown(self):
        redis = self.redis("--tls-auth-clients", "yes")
        cert, key = self.certs.make("me", client=True)
        self.assertEqual(b"PONG", self.ping(self.start(self.url(redis, cert=cert, key=key))))
        srv = self.start(self.url(redis))
        self.assertEqual(503, self.ping(srv))
        srv.wait_line('"redis is away"')

    def pin_of(self, cert):
        """Of the public key in a certificate in PEM."""
        key = self.certs._openssl("x509", "-in", cert, "-noout", "-pubkey")
        der = base64.b64decode("".join(key.strip().splitlines()[1:-1]))
        return "sha256/" + base64.b64encode(hashlib.sha256(der).digest()).decode()

    def test_a_key_that_is_pinned_is_the_only_one_that_is_good(self):
        redis = self.redis()
        self.assertEqual(b"PONG", self.ping(self.start(self.url(redis, pin=self.pin_of(self.certs.cert)))))
        other, _ = self.certs.make("other", "localhost")
        self.refused(self.url(redis, pin=self.pin_of(other)), "TLS: .*pin")

    def test_what_the_url_may_say_can_stand_in_options(self):
        redis = self.redis("--tls-auth-clients", "yes")
        cert, key = self.certs.make("me", client=True)
        srv = self.start("redis://127.0.0.1:%d" % redis.port)

        def ask(**tls):
            status, _, body = srv.request("POST", "/ping", json.dumps({"url": "rediss://127.0.0.1:%d" % redis.tls_port,
                                                                       "tls": tls}), {"Content-Type": "application/json"})
            self.assertEqual(200, status, body)
            return json.loads(body)

        mine = {"cert": cert, "key": key}
        self.assertEqual("PONG", ask(ca=self.certs.ca, server_name="localhost", pin=self.pin_of(self.certs.cert), **mine)["reply"])
        self.assertEqual("PONG", ask(verify=False, **mine)["reply"])
        self.assertIn("known authority", ask(**mine)["message"])
        self.assertIn("is for localhost", ask(ca=self.certs.ca, server_name="b.example", **mine)["message"])

    def test_what_is_wrong_is_told(self):
        redis = self.redis()
        self.refused("rediss://localhost:%d" % redis.tls_port, "TLS: .*known authority")
        self.refused(self.url(redis, server_name="other.example"), r"TLS: the certificate of other\.example is for localhost")
        self.refused("rediss://localhost:%d" % redis.port, "does the server speak TLS on this port")
        self.refused("redis://localhost:%d" % redis.tls_port, "Redis at localhost")
        self.assertEqual(b"PONG", self.ping(self.start("rediss://localhost:%d?verify=false" % redis.tls_port)))

    def test_a_certificate_that_has_expired_is_told(self):
        redis = self.redis(cert=self.certs.make("late", "localhost", days=-1), *("--tls-auth-clients", "no"))
        self.refused(self.url(redis), "TLS: .*expired")


if __name__ == "__main__":
    unittest.main()
