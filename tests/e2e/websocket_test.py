"""WebSockets of an app over a real wire: the conversations of tests/ws, and what a raw client sees of routes, ends and
reloads."""
import os
import subprocess
import sys
import unittest

from srv_process import ROOT, Srv

CASES = os.path.join(ROOT, "tests", "ws", "run_ws.py")


class Conversations(unittest.TestCase):
    """tests/apps/ws passes what the bare wire does (tests/ws), in both forms of a handler."""

    def hold(self, path):
        with Srv("tests/apps/ws") as srv:
            done = subprocess.run([sys.executable, CASES, "127.0.0.1", str(srv.port), "--path", path],
                                  stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("skipped", done.stdout)

    def test_a_table_of_handlers_holds_every_conversation(self):
        self.hold("/ws")

    def test_a_linear_handler_holds_every_conversation(self):
        self.hold("/linear")


if __name__ == "__main__":
    unittest.main()
