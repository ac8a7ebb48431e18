"""A client of WebSocket (RFC 6455) for tests: frames as they are, no more. Standard library only."""
import base64
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The server answered something else: args are the status and the head."""


class WebSocket:
    def __init__(self, srv, path, headers=None):
        self.socket = srv.connect()
        self.buffer = b""
        self.reply = self._shake_hands(path, headers or {})

    def _shake_hands(self, path, headers):
        fields = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), **headers}
        lines = ["GET %s HTTP/1.1" % path] + ["%s: %s" % field for field in fields.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = self._until(b"\r\n\r\n").decode()
        status = int(head.split(" ")[1])
        if status != 101:
            raise Refused(status, head)
        return head

    def _fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server ended")
        self.buffer += data

    def _until(self, end):
        while end not in self.buffer:
            self._fill()
        head, _, self.buffer = self.buffer.partition(end)
        return head

    def _take(self, count):
        while len(self.buffer) < count:
            self._fill()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, data, opcode=TEXT):
        data = data.encode() if isinstance(data, str) else data
        size = len(data)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 128 | 126, size)
        self.socket.sendall(struct.pack("!B", 128 | opcode) + length + b"\0\0\0\0" + data)

    def frame(self):
        """(opcode, payload) of the next frame."""
        first, second = self._take(2)
        size = second & 127
        if size == 126:
            size = struct.unpack("!H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self._take(8))[0]
        return first & 15, self._take(size)

    def receive(self):
        """The next text."""
        opcode, payload = self.frame()
        assert opcode == TEXT, (opcode, payload)
        return payload.decode()

    def closed(self):
        """(code, reason) of the server's close frame, which is answered."""
        opcode, payload = self.frame()
        assert opcode == CLOSE, (opcode, payload)
        self.send(payload[:2], CLOSE)
        return struct.unpack("!H", payload[:2])[0], payload[2:].decode()

    def cut(self):
        self.socket.close()
