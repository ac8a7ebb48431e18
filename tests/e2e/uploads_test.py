"""Forms with files against the real binary: cut anywhere on the wire, given up in the middle, and on a disk
that does not take them."""
import glob
import os
import signal
import socket
import tempfile
import unittest

from srv_process import Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app { body_limit = "64MiB" }

app:post("/form", function(req)
  local fields, files = req:multipart { memory = "1KiB" }
  local file = files[1]
  return { fields = fields, name = file.name, size = file.size, on_disk = file.path ~= nil,
    whole = file:bytes() == ("0123456789abcdef\\r\\n--A\\r"):rep(file.size / 22) }
end)

app:post("/parts", function(req)
  local told = {}
  for part in req:parts() do
    local size = 0
    for piece in part do size = size + #piece end
    told[#told + 1] = part.name .. "=" .. size
  end
  return table.concat(told, " ")
end)

app:post("/slow", { abort = "finish" }, function(req)
  req:multipart { memory = 1 }
  return "never"
end)

app:post("/ends/:how", { timeout = "10s" }, function(req)
  req:multipart { memory = 1 }
  if req.params.how == "error" then error "on purpose" end
  srv.sleep "1h"
end)
return app
"""

UNIT = b"0123456789abcdef\r\n--A\r"


def part(disposition, content, lines=b""):
    return b"--B\r\nContent-Disposition: form-data; " + disposition + b"\r\n" + lines + b"\r\n" + content + b"\r\n"


def head(path, length):
    return (b"POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B\r\n"
            b"Content-Length: %d\r\n\r\n" % (path, length))


def chunked(path, body, size):
    out = [b"POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B\r\n"
           b"Transfer-Encoding: chunked\r\n\r\n" % path]
    for at in range(0, len(body), size):
        piece = body[at:at + size]
        out.append(b"%x\r\n%s\r\n" % (len(piece), piece))
    return b"".join(out) + b"0\r\n\r\n"


class Uploads(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.temp = os.path.join(self.folder.name, "temp")
        os.mkdir(self.temp)
        write_app(self.folder.name, {"app/app.lua": APP})
        self.srv = Srv(os.path.join(self.folder.name, "app"), env={"TMPDIR": self.temp})

    def tearDown(self):
        self.srv.kill()
        self.folder.cleanup()

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.srv.port), timeout=30)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def answer(self, *pieces):
        with self.connect() as sock:
            for piece in pieces:
                sock.sendall(piece)
            out = b""
            while True:
                more = sock.recv(65536)
                if not more:
                    return out
                out += more

    def files(self):
        """What stands in the folder that the server has made in its TMPDIR."""
        return glob.glob(os.path.join(self.temp, "*", "*"))

    def open_files(self):
        """Those of the temporary folder that the server still has, also without a name."""
        found = []
        for pid in self.srv.children():
            for fd in glob.glob("/proc/%d/fd/*" % pid):
                try:
                    target = os.readlink(fd)
                except OSError:  # closed since
                    continue
                if target.count(os.sep) > self.temp.count(os.sep) + 1 and target.startswith(self.temp):
                    found.append(target)
        return found

    def assert_no_files(self):
        wait_until(lambda: not self.files(), "temporary files are gone")
        wait_until(lambda: not self.open_files(), "they are closed, for else they fill the disk")

    def test_a_body_may_be_cut_anywhere(self):
        body = part(b"name=t", b"v") + part(b"name=f; filename=a", UNIT * 3, b"X: y\r\n") + b"--B--\r\n"
        for cut in range(0, len(body), 3):
            got = self.answer(head(b"/parts", len(body)) + body[:cut], body[cut:])
            self.assertTrue(got.endswith(b"\r\n\r\nt=1 f=%d" % (3 * len(UNIT))), (cut, got))
        for size in (1, 2, 7, 64):
            self.assertIn(b"t=1 f=", self.answer(chunked(b"/parts", body, size)))

    def test_large_files_go_through_the_disk_and_leave_nothing(self):
        count = 400000
        body = part(b"name=t", b"v") + part(b'name=f; filename="../x.bin"', UNIT * count) + b"--B--"
        got = self.answer(head(b"/form", len(body)), body)
        self.assertIn(b" 200 ", got)
        for wanted in (b'"name":"x.bin"', b'"on_disk":true', b'"size":%d' % (count * len(UNIT)), b'"whole":true'):
            self.assertIn(wanted, got)
        self.assert_no_files()

    def test_files_are_gone_however_the_request_ends(self):
        start = part(b"name=f; filename=a", UNIT * 50000)
        few = part(b"name=f; filename=a", UNIT * 100)  # that no garbage collector would come for
        for path, sent in ((b"/form", few), (b"/form", start), (b"/slow", start)):
            with self.connect() as sock:  # the client leaves in the middle
                sock.sendall(head(path, 10 * len(sent)) + sent)
                wait_until(self.files, "a temporary file")
            self.assert_no_files()
        with self.connect() as sock:  # the client leaves the handler alone
            sock.sendall(head(b"/ends/wait", len(start) + 5) + start + b"--B--")
            wait_until(self.files, "a temporary file")
        self.assert_no_files()
        self.assertIn(b" 500 ", self.answer(head(b"/ends/error", len(start) + 5), start, b"--B--"))
        self.assert_no_files()
        self.assertIn(b" 400 ", self.answer(head(b"/form", len(start) + 5), start, b"--Bad"))
        self.assert_no_files()

    def test_what_was_left_by_a_server_that_was_killed_goes_when_it_is_back(self):
        start = part(b"name=f; filename=a", UNIT * 50000)
        with self.connect() as sock:
            sock.sendall(head(b"/form", 10 * len(start)) + start)
            wait_until(self.files, "a temporary file")
            since = len(self.srv.lines)
            os.kill(self.srv.children()[0], signal.SIGKILL)
            self.srv.wait_line("listening on", since)
        self.assertEqual(os.listdir(self.temp), [])

    def test_the_end_of_the_server_leaves_no_folder(self):
        body = part(b"name=f; filename=a", UNIT * 50000) + b"--B--"
        self.assertIn(b" 200 ", self.answer(head(b"/form", len(body)), body))
        self.assertEqual(len(os.listdir(self.temp)), 1)
        self.assertEqual(self.srv.stop(), 0)
        self.assertEqual(os.listdir(self.temp), [])

    def test_a_disk_that_takes_nothing_is_our_fault_and_told_in_the_log(self):
        os.rmdir(self.temp)
        body = part(b"name=f; filename=a", UNIT * 1000) + b"--B--"
        got = self.answer(head(b"/form", len(body)), body)
        self.assertIn(b" 500 ", got)
        self.assertNotIn(self.temp.encode(), got)
        self.srv.wait_line("an upload could not be put on the disk")
        os.mkdir(self.temp)
        self.assertIn(b" 200 ", self.answer(head(b"/form", len(body)), body))


if __name__ == "__main__":
    unittest.main()
