"""The setting `user`: root binds the port, and neither what runs the app nor what starts it again is root."""
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

from srv_process import BIN, PATIENCE, Srv, run_to_end, wait_until, write_app

USER = "nobody"

APP = """
local srv = require "srv"
local app = srv.app()
local cache = srv.shared("cache")
app:get("/", function()
  local shadow = io.open("/etc/shadow")
  return { shadow = shadow ~= nil, home = srv.env.HOME, user = srv.env.USER, count = cache:incr("count", 1) }
end)
app:get("/write", function()
  local file, err = io.open(srv.root .. "/data/made", "w")
  if file then file:close() end
  return { err = err }
end)
app:get("/version", function() return "1" end)
return app
"""


def ids_of(pid):
    """Real, effective, saved, file system's: of user and group; and the further groups."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return [{int(n) for n in fields[name].split()} for name in ("Uid", "Gid", "Groups")]


def threads_of(pid):
    names = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task), encoding="ascii") as file:
            names.append(file.read().strip())
    return names


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def low_port():
    """One that only root may bind, by default, and nobody has."""
    for port in range(1023, 600, -1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise unittest.SkipTest("no low port is free")


@unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
class User(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)
        self.account = pwd.getpwnam(USER)
        self.app = write_app(os.path.join(self.folder, "app"), {"app.lua": APP})
        self.mine = os.path.join(self.folder, "mine")  # the user's own
        os.mkdir(self.mine)
        os.chown(self.mine, self.account.pw_uid, self.account.pw_gid)

    def serve(self, *flags, **more):
        srv = Srv(self.app, "--user", USER, "--log-format", "json", *flags, **more)
        self.addCleanup(srv.kill)
        return srv

    def assert_is_the_users(self, pid):
        uids, gids, groups = ids_of(pid)
        self.assertEqual((uids, gids), ({self.account.pw_uid}, {self.account.pw_gid}))
        self.assertEqual(groups, set(os.getgrouplist(USER, self.account.pw_gid)))
        for task in os.listdir("/proc/%d/task" % pid):
            self.assertEqual(ids_of(int(task))[0], {self.account.pw_uid})

    def await_follower(self, srv):
        wait_until(lambda: ids_of(srv.process.pid)[0] == {self.account.pw_uid}, "the supervisor follows")

    def crash(self, srv):
        """Kills the server; the one that follows."""
        old = srv.children()[0]
        os.kill(old, signal.SIGKILL)
        return wait_until(lambda: next((pid for pid in srv.children() if pid != old), None), "another server")

    def test_server_and_supervisor_become_the_user(self):
        srv = self.serve(workers=2)
        told = json.loads(srv.get("/")[2])
        self.assertEqual((told["shadow"], told["home"], told["user"]), (False, self.account.pw_dir, USER))
        self.await_follower(srv)
        self.assert_is_the_users(srv.process.pid)
        self.assert_is_the_users(srv.children()[0])
        self.assertEqual(srv.stop(), 0)

    def test_so_does_a_single_process(self):
        srv = self.serve("--single")
        self.assertFalse(json.loads(srv.get("/")[2])["shadow"])
        self.assert_is_the_users(srv.process.pid)
        self.assertEqual(srv.stop(), 0)

    def test_what_root_alone_may_write_is_out_of_reach(self):
        os.mkdir(os.path.join(self.app, "data"))
        srv = self.serve()
        self.assertIn("Permission denied", json.loads(srv.get("/write")[2])["err"])

    def test_a_crash_is_answered_by_a_server_of_the_user_on_the_same_port(self):
        srv = self.serve(port=low_port(), workers=2)
        srv.get("/")
        self.await_follower(srv)
        for _ in range(2):
            pid = self.crash(srv)
            self.assertEqual(srv.get("/version")[2], b"1")
            self.assert_is_the_users(pid)
        self.assertEqual(srv.stop(), 0)

    def test_more_workers_after_a_crash_share_the_sockets_there_are(self):
        write_app(self.app, {"config.lua": "return { workers = 1 }"})
        srv = self.serve(port=low_port(), workers=None)
        self.await_follower(srv)
        write_app(self.app, {"config.lua": "return { workers = 4 }"})
        pid = self.crash(srv)
        self.assertEqual(srv.get("/version")[2], b"1")
        wait_until(lambda: "worker-3" in threads_of(pid), "four workers")
        self.assertEqual(srv.stop(), 0)

    def test_a_server_goes_with_its_supervisor(self):
        srv = self.serve()
        self.await_follower(srv)
        pid = srv.children()[0]
        srv.process.kill()
        wait_until(lambda: not is_alive(pid), "the server's end")

    def test_an_edit_and_sighup_load_the_app_anew(self):
        srv = self.serve()
        write_app(self.app, {"app.lua": APP.replace('"1"', '"2"')})
        wait_until(lambda: srv.get("/version")[2] == b"2", "the edit")
        at = len(srv.lines)
        srv.signal(signal.SIGHUP)
        srv.wait_line("app reloaded", at)
        self.assertEqual(srv.stop(), 0)

    def test_a_log_is_made_the_users_and_opened_anew(self):
        path = os.path.join(self.mine, "srv.log")
        srv = self.serve("--log-file", path)
        srv.get("/")
        wait_until(lambda: os.path.getsize(path), "a line")
        os.rename(path, path + ".1")
        srv.signal(signal.SIGUSR1)
        wait_until(lambda: os.path.exists(path), "the new file")
        self.assertEqual(os.stat(path).st_uid, self.account.pw_uid)
        srv.get("/")
        wait_until(lambda: os.path.getsize(path), "a line")
        self.assertEqual(srv.stop(), 0)

    def test_a_log_in_roots_folder_is_opened_anew_where_logrotate_makes_it(self):
        path = os.path.join(self.folder, "srv.log")
        srv = self.serve("--log-file", path)
        srv.get("/")
        wait_until(lambda: os.path.getsize(path), "a line")
        made = os.stat(path)
        self.assertEqual((made.st_uid, stat.S_IMODE(made.st_mode)), (self.account.pw_uid, 0o640))
        os.rename(path, path + ".1")
        with open(path, "w", encoding="ascii"):
            os.chown(path, self.account.pw_uid, self.account.pw_gid)
        srv.signal(signal.SIGUSR1)

        def is_written():
            srv.get("/")
            return os.path.getsize(path)
        wait_until(is_written, "a line in the new file")
        self.crash(srv)
        before = os.path.getsize(path)
        srv.get("/")
        wait_until(lambda: os.path.getsize(path) > before, "a line of the next server")
        self.assertEqual(srv.stop(), 0)

    def test_root_writes_no_log_where_a_link_leads(self):
        target = os.path.join(self.folder, "roots")
        with open(target, "w", encoding="ascii") as file:
            file.write("roots\n")
        os.chmod(target, 0o600)
        link = os.path.join(self.mine, "srv.log")
        os.symlink(target, link)
        status, text = run_to_end(self.app, "--user", USER, "--log-file", link)
        self.assertEqual(status, 1)
        self.assertIn('the user "%s" cannot write %s: Permission denied' % (USER, link), text)
        os.unlink(target)
        run_to_end(self.app, "--user", USER, "--log-file", link)
        self.assertFalse(os.path.exists(target))

    def test_a_unix_socket_is_the_users(self):
        path = os.path.join(self.folder, "s")
        srv = self.serve("--unix", path)
        self.assertEqual(os.stat(path).st_uid, self.account.pw_uid)
        self.await_follower(srv)
        self.crash(srv)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(path)
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            self.assertTrue(connection.makefile("rb").read().endswith(b"\r\n\r\n1"))
        self.assertEqual(srv.stop(), 0)
        # The user may remove nothing from root's folder, so it is still there: no hindrance to the next start.
        self.assertTrue(os.path.exists(path))
        self.assertEqual(self.serve("--unix", path).stop(), 0)

    def test_a_unix_socket_in_the_users_folder_goes_with_the_server(self):
        path = os.path.join(self.mine, "s")
        srv = self.serve("--unix", path)
        self.await_follower(srv)
        self.assertEqual(srv.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_what_cannot_be_is_said_at_the_start(self):
        status, text = run_to_end(self.app, "--user", "no-such-user")
        self.assertEqual(status, 1)
        self.assertIn('srv: --user: there is no user "no-such-user" on this machine', text)

    def test_what_the_user_cannot_read_is_said_at_the_start(self):
        write_app(self.app, {"config.lua": 'return { user = "%s" }' % USER})
        config = os.path.join(self.app, "config.lua")
        for path, mode, back in ((config, 0o600, 0o644), (os.path.join(self.app, "app.lua"), 0o600, 0o644),
                                 (self.app, 0o700, 0o755), (self.folder, 0o700, 0o755)):
            os.chmod(path, mode)
            status, text = run_to_end(self.app)
            self.assertEqual(status, 1, path)
            self.assertRegex(text, r'config\.lua: user: the user "nobody" cannot read /\S+: Permission denied')
            os.chmod(path, back)

    def run_as_user(self, *args):
        """BIN itself may lie where he may not go."""
        own = shutil.copy(BIN, os.path.join(self.folder, "srv"))
        done = subprocess.run([own, self.app, "--port", "0", *args], text=True, timeout=PATIENCE, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                              user=self.account.pw_uid, group=self.account.pw_gid, extra_groups=[])
        return done.returncode, done.stdout

    def test_only_root_can_become_somebody_else(self):
        status, text = self.run_as_user("--user", "root")
        self.assertEqual(status, 1)
        self.assertIn('srv: --user: only root can become "root": start it as root or as that user', text)

    def test_who_is_that_user_already_needs_no_root(self):
        write_app(self.app, {"app.lua": 'error("the app was loaded")'})
        status, text = self.run_as_user("--user", USER)
        self.assertEqual(status, 1)
        self.assertIn("the app was loaded", text)


if __name__ == "__main__":
    unittest.main()
