#!/usr/bin/env python3
"""WebSocket over HTTP/2 (RFC 8441): run_h2.py HOST PORT. Python's h2 is the client.

Only what differs from HTTP/1.1: the request, how bytes come in DATA frames and windows, the end.
Status 77: python3-h2 is not here.
"""
import socket
import sys

import run_ws

# The first python3 of PATH need not be Debian's, whose packages it can read all the same.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.settings
except ImportError:
    sys.exit(77)

TIMEOUT = 10


class Stream:
    """One extended CONNECT on a connection of its own, whose DATA is the socket's bytes."""

    def __init__(self, host, port, **fields):
        self.socket = socket.create_connection((host, port), TIMEOUT)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.buf = bytearray()
        self.headers, self.ended, self.reset = None, False, False
        self.flush()
        while self.h2.remote_settings.get(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL) != 1:
            self.take()
        head = {":method": "CONNECT", ":protocol": "websocket", ":scheme": "http", ":path": "/ws",
                ":authority": "localhost", "sec-websocket-version": "13"}
        head.update({name.replace("_", "-"): value for name, value in fields.items()})
        self.id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(self.id, list(head.items()))
        self.flush()
        while self.headers is None:
            self.take()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def take(self):
        data = self.socket.recv(65536)
        if not data:
            raise AssertionError("the connection ended")
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                self.headers = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.buf += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended = True
            elif isinstance(event, h2.events.StreamReset):
                self.reset = True
        self.flush()

    def send(self, data):
        while data:
            room = min(self.h2.local_flow_control_window(self.id), self.h2.max_outbound_frame_size)
            if room == 0:
                self.take()
                continue
            self.h2.send_data(self.id, data[:room])
            data = data[room:]
            self.flush()

    def need(self, n):
        while len(self.buf) < n:
            if self.ended or self.reset:
                raise AssertionError("the stream ended")
            self.take()
        data = bytes(self.buf[:n])
        del self.buf[:n]
        return data

    recv = run_ws.Conn.recv

    def close(self):
        self.socket.close()


def expect(claim, what):
    if not claim:
        raise AssertionError(what)


def is_opened(host, port):
    stream = Stream(host, port, sec_websocket_protocol="x, echo")
    expect(stream.headers[":status"] == "200", stream.headers)
    expect("sec-websocket-accept" not in stream.headers, stream.headers)
    expect(stream.headers.get("sec-websocket-protocol") == "echo", stream.headers)
    stream.send(run_ws.frame(run_ws.TEXT, b"hello"))
    expect(stream.recv() == (1, 0, run_ws.TEXT, b"hello"), "echo")
    stream.close()


def is_refused(host, port):
    stream = Stream(host, port, sec_websocket_version="12")
    expect(stream.headers[":status"] == "426", stream.headers)
    expect(stream.headers["sec-websocket-version"] == "13", stream.headers)
    stream.close()


def answers_all_of_one_piece(host, port):
    """More than the server reads in a turn; what is left then stands in its reader, not in the channel."""
    stream = Stream(host, port)
    stream.send(b"".join(run_ws.frame(run_ws.TEXT, b"%d" % i) for i in range(600)))
    for i in range(600):
        expect(stream.recv() == (1, 0, run_ws.TEXT, b"%d" % i), "echo %d" % i)
    stream.close()


def echoes_a_mebibyte(host, port):
    stream = Stream(host, port)
    data = bytes(range(256)) * 4096
    stream.send(run_ws.frame(run_ws.BIN, data))
    expect(stream.recv() == (1, 0, run_ws.BIN, data), "echo")
    stream.close()


def closes(host, port):
    stream = Stream(host, port)
    stream.send(run_ws.frame(run_ws.CLOSE, b"\x03\xe8bye"))
    expect(stream.recv() == (1, 0, run_ws.CLOSE, b"\x03\xe8"), "close")
    while not stream.ended and not stream.reset:
        stream.take()
    expect(stream.ended, "the stream was reset")
    stream.close()


def tells_what_is_wrong(host, port):
    stream = Stream(host, port)
    stream.send(run_ws.frame(run_ws.TEXT, b"x", masked=False))
    expect(stream.recv()[2:][1][:2] == b"\x03\xea", "1002")
    stream.close()


CASES = [is_opened, is_refused, answers_all_of_one_piece, echoes_a_mebibyte, closes, tells_what_is_wrong]


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    failed = 0
    for case in CASES:
        try:
            case(host, port)
        except (AssertionError, OSError, run_ws.Fail) as error:
            failed += 1
            print("FAIL %s: %r" % (case.__name__, error))
    print("%d passed, %d failed" % (len(CASES) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
