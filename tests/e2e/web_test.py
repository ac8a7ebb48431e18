"""What people who come from other frameworks expect, against tests/apps/web in the real binary. tests/web/cases.json
has the cases of what srv does so far: the same over HTTP/1.1 and HTTP/2, plain and by TLS."""
import os
import subprocess
import sys
import tempfile
import unittest

from certificates import Certificates
from srv_process import ROOT, Srv

RUNNER = os.path.join(ROOT, "tests", "web", "run.py")
APP = os.path.join(ROOT, "tests", "apps", "web")
NO_HTTP2_CLIENT = 77


class Web(unittest.TestCase):
    def hold_all(self, over, *flags):
        with Srv(APP, *flags) as srv:
            done = subprocess.run([sys.executable, RUNNER, str(srv.port), "--over", over], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            print(done.stdout, flush=True)  # its count is part of the suite's
            if done.returncode == NO_HTTP2_CLIENT:
                self.skipTest(done.stdout)
            self.assertEqual(done.returncode, 0, srv.output[-4000:])
            self.assertEqual(srv.stop(), 0)

    def hold_all_by_tls(self, over):
        with tempfile.TemporaryDirectory() as folder:
            made = Certificates(folder)
            self.hold_all(over, "--cert", made.cert, "--key", made.key)

    def test_every_case_over_http1(self):
        self.hold_all("h1")

    def test_every_case_over_http2(self):
        self.hold_all("h2")

    def test_every_case_over_http1_by_tls(self):
        self.hold_all_by_tls("h1s")

    def test_every_case_over_http2_by_tls(self):
        self.hold_all_by_tls("h2s")


if __name__ == "__main__":
    unittest.main()
