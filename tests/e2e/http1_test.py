"""The corpus of HTTP/1.1 conversations against an app in the real binary, all the way through Lua."""
import os
import subprocess
import sys
import unittest

from srv_process import ROOT, Srv

RUNNER = os.path.join(ROOT, "tests", "http1", "run.py")
APP = os.path.join(ROOT, "tests", "apps", "http1")


class Http1(unittest.TestCase):
    def hold(self, *options):
        with Srv(APP) as srv:
            done = subprocess.run([sys.executable, RUNNER, "127.0.0.1", str(srv.port), *options], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            print(done.stdout, flush=True)  # its count is part of the suite's
            self.assertEqual(done.returncode, 0, srv.output[-4000:])
            self.assertEqual(srv.stop(), 0)

    def test_every_case(self):
        self.hold()

    def test_every_case_byte_by_byte(self):
        self.hold("--bytewise")


if __name__ == "__main__":
    unittest.main()
