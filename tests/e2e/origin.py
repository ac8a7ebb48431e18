"""An upstream for end-to-end tests: an HTTP server of Python's whose answers a function gives."""
import http.client
import http.server
import socket
import threading
import time


class Origin:
    """An upstream of our own: FN(handler) answers; `seen` are (method, path, headers, body). With a CONTEXT (ssl),
    by https."""

    def __init__(self, fn, context=None):
        self.seen = []
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.read_body()
                origin.seen.append((self.command, self.path, self.headers, body))
                fn(self, body)

            def read_body(self):
                if self.headers.get("Transfer-Encoding"):
                    body = b""
                    while True:
                        size = int(self.rfile.readline(), 16)
                        body += self.rfile.read(size)
                        self.rfile.readline()
                        if not size:
                            return body
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))

            def give(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = answer

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def finish_request(self, request, client_address):
                if not context:
                    super().finish_request(request, client_address)
                    return
                with context.wrap_socket(request, server_side=True) as secured:
                    super().finish_request(secured, client_address)

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = ("https://localhost:%d" if context else "http://127.0.0.1:%d") % self.port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class RawOrigin:
    """Answers with bytes: FN(head, number) gives what is sent for request NUMBER (from 1) of a connection, or None
    to close it; with a list, its last item may be None: sent, then closed. `arrivals` are moments of all requests,
    `heads` their heads: in order within a connection, between two of them in any.
    With a CONTEXT (ssl), by https; `sessions` are the handshakes that were resumed (True) or not."""

    def __init__(self, fn, family=socket.AF_INET, address=("127.0.0.1", 0), context=None):
        self.fn, self.context, self.sessions = fn, context, []
        self.arrivals, self.heads, self.connections = [], [], 0
        self.lock = threading.Lock()
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(address)
        self.listener.listen(128)
        self.port = self.listener.getsockname()[1] if family != socket.AF_UNIX else None
        self.url = ("https://localhost:%s/" if context else "http://127.0.0.1:%s/") % self.port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            if peer.family != socket.AF_UNIX:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _wrap(self, peer):
        """None: there was no handshake."""
        if not self.context:
            return peer
        try:
            peer = self.context.wrap_socket(peer, server_side=True)
        except OSError:
            peer.close()
            return None
        self.sessions.append(peer.session_reused)
        return peer

    def _serve(self, peer):
        data, number = b"", 0
        peer = self._wrap(peer)
        if not peer:
            return
        with peer:
            while True:
                head, found, rest = data.partition(b"\r\n\r\n")
                if not found:
                    try:
                        more = peer.recv(65536)
                    except OSError:
                        return
                    if not more:
                        return
                    data += more
                    continue
                data, number, head = rest, number + 1, head.decode("latin-1")
                with self.lock:
                    self.arrivals.append(time.monotonic())
                    self.heads.append(head)
                if not self._send(peer, self.fn(head, number)):
                    return

    @staticmethod
    def _send(peer, answer):
        for piece in answer if isinstance(answer, list) else [answer]:
            if piece is None:
                return False
            try:
                peer.sendall(piece)
            except OSError:
                return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


TAKEN = []  # sockets that keep dead ports from all others, and do not listen


def dead_url():
    """Nobody listens there, to the end of this process."""
    TAKEN.append(socket.socket())
    TAKEN[-1].bind(("127.0.0.1", 0))
    return "http://127.0.0.1:%d" % TAKEN[-1].getsockname()[1]


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()
