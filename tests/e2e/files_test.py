"""Files as answers while something happens to them: they shrink, go, are replaced, are larger than 4 GiB, are no files."""
import os
import shutil
import socket
import tempfile
import time
import unittest

from srv_process import PATIENCE, Srv, write_app

APP = """
local srv = require "srv"
local app = srv.app()
app:static("/", "public", { list = true })
app:get("/sent/*path", function(req, res) return res:file(req.params.path, { root = "public" }) end)
return app
"""
LARGE = 64 << 20  # more than the sockets of both sides hold


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)
        write_app(self.folder, {"app.lua": APP, "config.lua": "return { watch = false, log_level = 'error' }",
                                "public/small.txt": "small", "outside.txt": "outside"})
        self.public = os.path.join(self.folder, "public")
        self.srv = Srv(self.folder)
        self.addCleanup(self.srv.kill)

    def path(self, name):
        return os.path.join(self.public, name)

    def make_large(self, byte=b"a", name="large.bin"):
        with open(self.path(name), "wb") as out:
            out.write(byte * LARGE)

    def begin(self, path):
        """A socket behind the head of the answer, with the first bytes of its body read."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.settimeout(PATIENCE)
        sock.connect(("127.0.0.1", self.srv.port))
        self.addCleanup(sock.close)
        sock.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode())
        data = b""
        while b"\r\n\r\n" not in data:
            piece = sock.recv(4096)
            self.assertTrue(piece, data)
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        self.assertIn(b"200 OK", head)
        self.assertIn(b"Content-Length: %d" % LARGE, head)
        return sock, body

    def rest(self, sock, body, count=LARGE):
        """BODY and what comes behind it: COUNT bytes, or fewer when the connection ends."""
        parts, got = [body], len(body)
        while got < count:
            try:
                data = sock.recv(1 << 20)
            except ConnectionResetError:
                break
            if not data:
                break
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def check_alive(self):
        self.assertEqual(self.srv.get("/small.txt")[::2], (200, b"small"))

    def test_a_file_that_shrinks_cuts_the_answer(self):
        self.make_large()
        sock, body = self.begin("/large.bin")
        os.truncate(self.path("large.bin"), LARGE // 2)
        self.assertLessEqual(len(self.rest(sock, body)), LARGE // 2 + (8 << 20))
        self.check_alive()

    def test_a_file_that_goes_is_sent_to_its_end(self):
        self.make_large()
        sock, body = self.begin("/sent/large.bin")
        os.unlink(self.path("large.bin"))
        self.assertEqual(len(self.rest(sock, body)), LARGE)
        self.assertEqual(self.srv.get("/large.bin")[0], 404)

    def test_a_file_that_is_replaced_is_the_old_one_to_its_end(self):
        self.make_large()
        sock, body = self.begin("/large.bin")
        self.make_large(b"b", "new.bin")
        os.rename(self.path("new.bin"), self.path("large.bin"))
        self.assertEqual(set(self.rest(sock, body)), {ord("a")})
        self.assertEqual(self.srv.get("/large.bin", {"Range": "bytes=0-1"})[2], b"bb")

    def test_a_file_that_grows_is_sent_as_long_as_was_told(self):
        self.make_large()
        sock, body = self.begin("/large.bin")
        with open(self.path("large.bin"), "ab") as out:
            out.write(b"c" * 1000)
        self.assertEqual(len(self.rest(sock, body)), LARGE)
        sock.sendall(b"GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 200"))

    def test_a_folder_that_another_took_the_place_of_is_seen(self):
        os.rename(self.public, self.public + ".old")
        self.assertEqual(self.srv.get("/small.txt")[0], 404)
        write_app(self.folder, {"public/small.txt": "other"})
        self.assertEqual(self.srv.get("/small.txt")[2], b"other")
        self.assertEqual(self.srv.get("/sent/small.txt")[2], b"other")

    def test_positions_beyond_4_gib(self):
        with open(self.path("sparse.bin"), "wb") as out:
            out.seek(5 << 30)
            out.write(b"end")
        total = (5 << 30) + 3
        status, head, body = self.srv.get("/sparse.bin", {"Range": "bytes=%d-" % (5 << 30)})
        self.assertEqual((status, body), (206, b"end"))
        self.assertEqual(head["content-range"], "bytes %d-%d/%d" % (5 << 30, total - 1, total))
        self.assertEqual(self.srv.request("HEAD", "/sparse.bin")[1]["content-length"], str(total))
        status, head, body = self.srv.get("/sparse.bin", {"Range": "bytes=0-1,%d-" % ((5 << 30) + 1)})
        self.assertTrue(head["content-type"].startswith("multipart/byteranges"))
        self.assertIn(b"\r\n\r\nnd\r\n", body)

    def test_what_is_no_file_is_not_there(self):
        os.mkfifo(self.path("pipe"))
        os.symlink("/dev/zero", self.path("zero"))
        os.symlink("../outside.txt", self.path("leak"))
        os.symlink("loop", self.path("loop"))
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(self.path("socket"))
            for name in ("pipe", "zero", "leak", "loop", "socket", "x" * 256, "pipe/x", "small.txt/"):
                self.assertEqual(self.srv.get("/" + name)[0], 404, name)
                self.assertEqual(self.srv.get("/sent/" + name)[0], 404, name)
        page = self.srv.get("/")[2]
        self.assertIn(b"small.txt", page)
        for name in (b"pipe", b"zero", b"leak", b"loop", b"socket"):
            self.assertNotIn(name, page)

    @unittest.skipIf(os.geteuid() == 0, "root reads everything")
    def test_what_may_not_be_read_is_not_there(self):
        os.chmod(self.path("small.txt"), 0)
        self.assertEqual(self.srv.get("/small.txt")[0], 404)

    def test_a_tag_is_strong_when_the_file_is_not_young(self):
        os.utime(self.path("small.txt"), (1700000000, 1700000000))
        tag = self.srv.get("/small.txt")[1]["etag"]
        self.assertTrue(tag.startswith('"'))
        self.assertEqual(self.srv.get("/small.txt", {"Range": "bytes=0-1", "If-Range": tag})[2], b"sm")
        with open(self.path("small.txt"), "w") as out:
            out.write("SMALL")
        os.utime(self.path("small.txt"), (time.time() + 3600,) * 2)
        young = self.srv.get("/small.txt")[1]["etag"]
        self.assertTrue(young.startswith("W/"))
        self.assertEqual(self.srv.get("/small.txt", {"Range": "bytes=0-1", "If-Range": young})[2], b"SMALL")


if __name__ == "__main__":
    unittest.main()
