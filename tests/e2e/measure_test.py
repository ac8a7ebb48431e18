"""bench/run: whatever ends it ends what it has started."""
import os
import shutil
import signal
import subprocess
import unittest

from srv_process import BIN, PATIENCE, ROOT, wait_until


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as listed:
            return [int(child) for child in listed.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    found = children_of(pid)
    for child in found:
        found += children_of(child)
    return found


def runs(pid):
    """Whether there is a process PID; one that has ended, and that nobody has waited for yet, is none."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@unittest.skipUnless(shutil.which("wrk") and shutil.which("openssl"), "no wrk, or no openssl")
@unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "it needs two CPUs")
class Ending(unittest.TestCase):
    def start(self, **how):
        """In the middle of a turn that would last for a minute: (process, all that it has started)."""
        bench = subprocess.Popen([os.path.join(ROOT, "bench", "run"), "tls", "--server", BIN, "--seconds", "60", "--no-write"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(bench.stderr.close)
        self.addCleanup(bench.wait)
        self.addCleanup(bench.kill)
        said = bench.stderr.readline()
        if "turn 1 of" not in said:
            self.fail(said + bench.stderr.read())
        started = wait_until(lambda: self.with_load(bench), "two servers of two processes each, and wrk")
        return bench, started

    @staticmethod
    def with_load(bench):
        found = descendants(bench.pid)
        return found if len(found) >= 5 else None

    def ends_with(self, number, **how):
        bench, started = self.start(**how)
        bench.send_signal(number)
        status = bench.wait(PATIENCE)
        wait_until(lambda: not any(map(runs, started)), "all that it had started has ended")
        return status

    def test_signals_end_its_servers(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.ends_with(number), 128 + number)

    def test_in_the_background_of_a_shell_too_where_sigint_is_ignored(self):
        self.assertEqual(self.ends_with(signal.SIGINT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)),
                         128 + signal.SIGINT)

    def test_a_kill_that_nobody_hears_ends_them_too(self):
        self.assertEqual(self.ends_with(signal.SIGKILL), -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
