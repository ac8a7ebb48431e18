"""HTTP/2 for run.py, by python3-h2: one request on a connection."""
import sys

# The first python3 of PATH need not be Debian's, whose packages it can read all the same.
sys.path.append("/usr/lib/python3/dist-packages")
import h2.config  # noqa: E402
import h2.connection  # noqa: E402
import h2.events  # noqa: E402
import h2.exceptions  # noqa: E402

STREAM = 1
WINDOW = 1 << 24
OF_HTTP1 = ("connection", "transfer-encoding", "keep-alive")


def unchunk(body):
    """What a chunked body of a case holds."""
    plain = b""
    while True:
        size, body = body.split(b"\r\n", 1)
        size = int(size, 16)
        if size == 0:
            return plain
        plain, body = plain + body[:size], body[size + 2:]


class Exchange:
    """A request goes out as the window lets it, while the answer comes in."""

    def __init__(self, sock):
        self.sock = sock
        config = h2.config.H2Configuration(header_encoding="latin-1", validate_outbound_headers=False)
        self.conn = h2.connection.H2Connection(config)
        self.answer = dict(status=None, h={}, body=b"", truncated=True, interim=[])
        self.over = False

    def flush(self):
        try:
            self.sock.sendall(self.conn.data_to_send())
        except (BrokenPipeError, ConnectionResetError):
            pass

    def note(self, event):
        answer = self.answer
        if isinstance(event, h2.events.InformationalResponseReceived):
            answer["interim"].append(int(dict(event.headers)[":status"]))
        elif isinstance(event, h2.events.ResponseReceived):
            answer["status"] = int(dict(event.headers)[":status"])
            for name, value in event.headers:
                answer["h"].setdefault(name, []).append(value)
        elif isinstance(event, h2.events.DataReceived):
            answer["body"] += event.data
        elif isinstance(event, h2.events.StreamEnded):
            self.over, answer["truncated"] = True, False
        elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
            self.over = True

    def read(self):
        """Until something was heard."""
        data = self.sock.recv(65536)
        if not data:
            self.over = True
        for event in self.conn.receive_data(data):
            self.note(event)
        self.flush()

    def send_body(self, body):
        while body and not self.over:
            room = min(self.conn.local_flow_control_window(STREAM), self.conn.max_outbound_frame_size)
            if room <= 0:
                self.read()
                continue
            piece, body = body[:room], body[room:]
            self.conn.send_data(STREAM, piece, end_stream=not body)
            self.flush()

    def run(self, fields, body):
        self.conn.initiate_connection()
        self.conn.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW})
        self.conn.increment_flow_control_window(WINDOW)
        self.conn.send_headers(STREAM, fields, end_stream=not body)
        self.flush()
        try:
            self.send_body(body)
        except h2.exceptions.ProtocolError:
            pass  # the stream has ended from the other side
        while not self.over:
            self.read()
        return self.answer


def ask(sock, method, path, authority, fields, body):
    fields = [(name.lower(), value) for name, value in fields]
    if ("transfer-encoding", "chunked") in fields:
        body = unchunk(body)
    elif body and "content-length" not in dict(fields):
        fields.append(("content-length", str(len(body))))
    pseudo = [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path)]
    return Exchange(sock).run(pseudo + [field for field in fields if field[0] not in OF_HTTP1], body)
