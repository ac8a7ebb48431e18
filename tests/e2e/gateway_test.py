"""apps/gateway, the real binary between real sockets: streams both ways, fails over, keeps what may be
kept, limits each client, passes on no header that is not meant for the other side."""
import http.client
import os
import socket
import struct
import threading
import time
import unittest

from origin import Origin, ask, dead_url
from srv_process import PATIENCE, ROOT, Srv, wait_until

GATEWAY = os.path.join(ROOT, "apps", "gateway")


def gateway(origin, standby=None, **env):
    return Srv(GATEWAY, env={"ORIGIN": origin, "STANDBY": standby or dead_url(), **env})


class Gateway(unittest.TestCase):
    def test_method_path_query_and_body_go_on_as_they_are(self):
        with Origin(lambda h, body: h.give(201, b"made", X_Own="1")) as origin, gateway(origin.url) as srv:
            status, headers, body = ask(srv.port, "PUT", "/a%2Fb/c?x=1&y=%20", b"payload", {"X-Mine": "yes"})
            self.assertEqual((status, headers["X-Own"], body), (201, "1", b"made"))
            method, path, seen, sent = origin.seen[0]
            self.assertEqual((method, path, seen["X-Mine"], sent), ("PUT", "/a%2Fb/c?x=1&y=%20", "yes", b"payload"))

    def test_headers_of_one_connection_end_here_and_ours_are_added(self):
        with Origin(lambda h, body: h.give(200, b"", Keep_Alive="timeout=5", Connection="X-Hop", X_Hop="1", X_End="2")) as origin, \
                gateway(origin.url) as srv:
            _, headers, _ = ask(srv.port, "GET", "/", headers={
                "Connection": "X-Secret, keep-alive", "X-Secret": "s", "TE": "trailers", "X-Forwarded-For": "9.9.9.9"})
            seen = origin.seen[-1][2]
            for name in ("X-Secret", "TE", "Keep-Alive", "Upgrade", "Proxy-Connection"):
                self.assertIsNone(seen[name], name)
            self.assertIn("127.0.0.1", seen["X-Forwarded-For"])
            self.assertEqual(seen["X-Forwarded-Proto"], "http")
            self.assertTrue(seen["Via"] and seen["Forwarded"])
            self.assertEqual((headers["X-Hop"], headers["X-End"]), (None, "2"))
            self.assertTrue(headers["X-Request-Id"])

    def test_an_answer_streams_through_as_it_comes(self):
        go_on = threading.Event()

        def drip(h, _):
            h.send_response(200)
            h.send_header("Transfer-Encoding", "chunked")
            h.end_headers()
            h.wfile.write(b"5\r\nfirst\r\n")
            h.wfile.flush()
            go_on.wait(20)
            h.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")

        with Origin(drip) as origin, gateway(origin.url) as srv:
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()
            self.assertEqual(answer.read1(100), b"first")
            go_on.set()
            self.assertEqual(answer.read(), b"second")
            connection.close()

    def test_a_quiet_stream_of_events_goes_on_beyond_every_limit(self):
        go_on = threading.Event()

        def events(h, _):
            h.send_response(200)
            h.send_header("Content-Type", "text/event-stream; charset=utf-8")
            h.send_header("Transfer-Encoding", "chunked")
            h.end_headers()
            h.wfile.flush()
            go_on.wait(20)
            h.wfile.write(b"9\r\ndata: 1\n\n\r\n0\r\n\r\n")

        with Origin(events) as origin, gateway(origin.url, TIMEOUT="2s", READ_TIMEOUT="2s") as srv:
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()  # the head, though no event has come
            self.assertIn("text/event-stream", answer.headers["Content-Type"])
            time.sleep(5)  # over twice either limit
            go_on.set()
            self.assertEqual(answer.read(), b"data: 1\n\n")
            connection.close()

    def test_the_head_goes_on_at_once_and_each_part_has_its_time(self):
        def stops(h, _):
            h.send_response(200)
            h.send_header("Content-Length", "1000")
            h.end_headers()
            h.wfile.flush()
            h.connection.recv(1)

        with Origin(stops) as origin, gateway(origin.url, READ_TIMEOUT="2s") as srv:
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
            connection.close()

    def test_a_stream_of_events_does_not_hold_up_the_end(self):
        def events(h, _):
            h.send_response(200)
            h.send_header("Content-Type", "text/event-stream")
            h.end_headers()
            h.wfile.write(b"data: 1\n\n")
            h.wfile.flush()
            h.connection.recv(1)

        with Origin(events) as origin, gateway(origin.url) as srv:
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=20)
            connection.request("GET", "/")
            answer = connection.getresponse()
            self.assertEqual(answer.readline(), b"data: 1\n")
            began = time.monotonic()
            self.assertEqual(srv.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)  # drain_timeout is 30 s
            self.assertEqual(answer.read(), b"\n")
            connection.close()

    def test_a_large_body_streams_up_without_being_kept(self):
        size = 32 * 1024 * 1024
        with Origin(lambda h, body: h.give(200, str(len(body)).encode())) as origin, gateway(origin.url) as srv:
            chunk = b"x" * 65536
            status, _, body = ask(srv.port, "POST", "/", iter([chunk] * (size // len(chunk))),
                                  {"Content-Length": str(size)})
            self.assertEqual((status, body), (200, str(size).encode()))

    def test_the_standby_answers_while_the_origin_is_down(self):
        with Origin(lambda h, body: h.give(200, b"standby")) as standby, gateway(dead_url(), standby.url) as srv:
            for _ in range(4):
                self.assertEqual(ask(srv.port, "GET", "/x", headers={"Cookie": "a=1"})[::2], (200, b"standby"))
            self.assertEqual(ask(srv.port, "POST", "/x", b"data")[::2], (200, b"standby"))

    def test_502_when_nobody_is_there_and_readiness_says_so(self):
        with gateway(dead_url()) as srv:
            status, headers, body = ask(srv.port, "GET", "/x")
            self.assertEqual(status, 502)
            self.assertIn("json", headers["Content-Type"])
            self.assertNotIn(b"127.0.0.1", body)
            self.assertEqual(ask(srv.port, "GET", "/livez")[0], 200)
            self.assertEqual(ask(srv.port, "GET", "/readyz")[0], 503)

    def test_it_is_ready_as_long_as_one_of_them_serves(self):
        with Origin(lambda h, body: h.give(200)) as standby, gateway(dead_url(), standby.url) as srv:
            self.assertEqual(ask(srv.port, "GET", "/readyz")[0], 200)

    def test_only_what_everybody_may_see_is_kept(self):
        count = [0]

        def answer(h, _):
            count[0] += 1
            private = h.path == "/private"
            h.give(200, b"%d" % count[0], Cache_Control="private, max-age=60" if private else "max-age=60")

        with Origin(answer) as origin, gateway(origin.url) as srv:
            first = ask(srv.port, "GET", "/public")
            again = ask(srv.port, "GET", "/public")
            self.assertEqual((first[2], again[2], again[1]["X-Cache"]), (b"1", b"1", "hit"))
            self.assertEqual(ask(srv.port, "GET", "/public", headers={"Cookie": "a=1"})[2], b"2")
            self.assertEqual(ask(srv.port, "GET", "/public", headers={"Authorization": "x"})[2], b"3")
            self.assertEqual([ask(srv.port, "GET", "/private")[2] for _ in range(2)], [b"4", b"5"])
            self.assertEqual([ask(srv.port, "GET", "/asked", body)[2] for body in (b"x", None)], [b"6", b"7"])

    def test_a_client_over_its_rate_is_turned_away(self):
        with Origin(lambda h, body: h.give(200, b"ok")) as origin, gateway(origin.url, LIMIT="3") as srv:
            told = [ask(srv.port, "POST", "/", b"x")[0] for _ in range(5)]
            self.assertEqual(told, [200, 200, 200, 429, 429])
            _, headers, _ = ask(srv.port, "POST", "/", b"x")
            self.assertTrue(int(headers["Retry-After"]) > 0)
            self.assertEqual(len(origin.seen), 3)

    def test_an_answer_that_breaks_off_is_cut_here_too(self):
        def broken(h, _):
            h.send_response(200)
            h.send_header("Content-Length", "1000")
            h.end_headers()
            h.wfile.write(b"part")
            h.wfile.flush()
            h.connection.shutdown(socket.SHUT_RDWR)

        with Origin(broken) as origin, gateway(origin.url) as srv:
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                ask(srv.port, "GET", "/")

    def test_a_client_that_resets_closes_the_upstream_within_a_tenth_of_a_second(self):
        gone, started = [], threading.Event()

        def endless(h, _):
            h.send_response(200)
            h.send_header("Transfer-Encoding", "chunked")
            h.end_headers()
            try:
                while True:
                    h.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                    started.set()
                    time.sleep(0.005)  # a stream with a pace, as sensors have
            except OSError:
                gone.append(time.monotonic())

        with Origin(endless) as origin, gateway(origin.url) as srv:
            for _ in range(5):
                started.clear()
                gone.clear()
                client = socket.create_connection(("127.0.0.1", srv.port), 10)
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                client.recv(4096)
                started.wait(10)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                left = time.monotonic()
                client.close()
                wait_until(lambda: gone, "the upstream sees that nobody listens")
                if gone[0] - left < 0.1 * PATIENCE / 30:  # of a build that is as slow as its patience says
                    return
            self.fail("%.0f ms at the best of 5" % ((gone[0] - left) * 1000))
