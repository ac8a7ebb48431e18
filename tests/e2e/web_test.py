"""What people who come from other frameworks expect, against tests/apps/web in the real binary. tests/web/cases.json
has the cases of what srv does so far."""
import os
import subprocess
import sys
import unittest

from srv_process import ROOT, Srv

RUNNER = os.path.join(ROOT, "tests", "web", "run.py")
APP = os.path.join(ROOT, "tests", "apps", "web")


class Web(unittest.TestCase):
    def test_every_case(self):
        with Srv(APP) as srv:
            done = subprocess.run([sys.executable, RUNNER, str(srv.port)], text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            print(done.stdout, flush=True)  # its count is part of the suite's
            self.assertEqual(done.returncode, 0, srv.output[-4000:])
            self.assertEqual(srv.stop(), 0)


if __name__ == "__main__":
    unittest.main()
