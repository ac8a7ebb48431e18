"""HTTP/1.1 for run.py: one request on a connection, or as many as its bytes hold."""


class Answers:
    """Reads answers from a socket, one after the other."""

    def __init__(self, sock):
        self.sock, self.buf = sock, b""

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        self.buf += data
        return bool(data)

    def head(self, interim):
        while True:
            while b"\r\n\r\n" not in self.buf:
                if not self.more():
                    return None, {}
            head, self.buf = self.buf.split(b"\r\n\r\n", 1)
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split()[1])
            if 100 <= status < 200 and status != 101:
                interim.append(status)
                continue
            fields = {}
            for line in lines[1:]:
                name, value = line.split(":", 1)
                fields.setdefault(name.lower(), []).append(value.strip())
            return status, fields

    def chunked(self):
        body = b""
        while True:
            while b"\r\n" not in self.buf and self.more():
                pass
            if b"\r\n" not in self.buf:
                return body, True
            size, self.buf = self.buf.split(b"\r\n", 1)
            size = int(size.split(b";")[0], 16)
            while len(self.buf) < size + 2 and self.more():
                pass
            if len(self.buf) < size + 2:
                return body + self.buf, True
            body, self.buf = body + self.buf[:size], self.buf[size + 2:]
            if size == 0:
                return body, False

    def read(self, method):
        interim = []
        status, fields = self.head(interim)
        if status is None:
            return dict(status=None, h={}, body=b"", truncated=True, interim=interim)
        body, truncated = b"", False
        if method == "HEAD" or status in (204, 304):
            if "close" in " ".join(fields.get("connection", [])).lower():
                self.sock.settimeout(1)
                try:
                    while self.more():
                        pass
                except TimeoutError:
                    pass
                body, self.buf = self.buf, b""
        elif "chunked" in " ".join(fields.get("transfer-encoding", [])).lower():
            body, truncated = self.chunked()
        elif "content-length" in fields:
            size = int(fields["content-length"][0])
            while len(self.buf) < size and self.more():
                pass
            truncated = len(self.buf) < size
            body, self.buf = self.buf[:size], self.buf[size:]
        else:
            while self.more():
                pass
            body, self.buf = self.buf, b""
        return dict(status=status, h=fields, body=body, truncated=truncated, interim=interim)


def ask(sock, method, path, authority, fields, body):
    names = {name.lower() for name, _ in fields}
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + authority]
    lines += ["%s: %s" % field for field in fields] + ["Connection: close"]
    if body and not names & {"content-length", "transfer-encoding"}:
        lines.append("Content-Length: %d" % len(body))
    try:
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server may answer before it has read everything
    return Answers(sock).read(method)


def say(sock, raw, method, count):
    """RAW as it is; the last of COUNT answers."""
    sock.sendall(raw)
    answers = Answers(sock)
    for _ in range(count):
        answer = answers.read(method)
    return answer
