"""Private PostgreSQL and Redis servers for tests: each on a free loopback port and a Unix socket, in
a folder of its own, gone when the test ends.

    with Postgres() as pg:        pg.url, pg.port, pg.socket_folder, pg.kill(), pg.start(), pg.stop()
    with Redis() as redis:        redis.url, redis.port, redis.path

    python3 services.py postgres redis -- COMMAND...    runs COMMAND with TEST_POSTGRES_URL, TEST_REDIS_URL set

PostgreSQL refuses to run as root: then it runs as the user that Debian's package made. The cluster asks
for passwords by SCRAM over TCP, and takes TLS with a certificate made on the spot.
Standard library only.
"""
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = float(os.environ.get("SRV_TEST_PATIENCE", "30"))
PASSWORD = "tiger"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


class Service:
    """A server process in a folder of its own. Killed and started again, it keeps port and data."""

    def __init__(self):
        self.port = free_port()
        # Short: a Unix socket's path has 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="srvt-", dir="/tmp")
        self.process = None
        self.user = None

    def __enter__(self):
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, command):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
                                stderr=self.log, start_new_session=True, **self.identity())

    def identity(self):
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def start(self):
        """Returns once it answers."""
        self.process = self.spawn(self.command())
        end = time.monotonic() + PATIENCE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.folder, "log"), errors="replace") as log:
                    raise RuntimeError("%s does not start:\n%s" % (type(self).__name__, log.read()[-2000:]))
            time.sleep(0.01)

    def stop(self, how=signal.SIGINT):
        """Ends it and all it has started; returns when it is gone."""
        if not self.process:
            return
        # PostgreSQL's children lead sessions of their own.
        for pid in [self.process.pid] + (children_of(self.process.pid) if how == signal.SIGKILL else []):
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass
        self.process.wait(PATIENCE)
        self.process = None
        self.log.close()

    def kill(self):
        """As if the power had gone: kill -9 of the whole group."""
        self.stop(signal.SIGKILL)

    def pause(self):
        """It hangs: connects still work, nothing is answered."""
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def signal_all(self, number):
        for pid in [self.process.pid] + children_of(self.process.pid):
            os.kill(pid, number)


class Postgres(Service):
    """SETTINGS as in postgresql.conf; AUTH: how clients over TCP show who they are."""

    def __init__(self, auth="scram-sha-256", **settings):
        super().__init__()
        self.auth = auth
        folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
        if not folders:
            raise RuntimeError("PostgreSQL is not installed: ./srv test installs it")
        self.bin = folders[-1]
        self.settings = settings
        self.data = os.path.join(self.folder, "data")
        self.socket_folder = self.folder
        self.url = "postgres://postgres:%s@127.0.0.1:%d/postgres" % (PASSWORD, self.port)
        if os.getuid() == 0:
            self.user = pwd.getpwnam("postgres")

    def run(self, *command):
        subprocess.run(command, check=True, cwd=self.folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.identity())

    def prepare(self):
        password = os.path.join(self.folder, "password")
        with open(password, "w", encoding="utf-8") as out:
            out.write(PASSWORD + "\n")
        if self.user:
            shutil.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
            shutil.chown(password, self.user.pw_uid)
        self.run(os.path.join(self.bin, "initdb"), "-D", self.data, "-U", "postgres", "--no-sync", "-E", "UTF8",
                 "--locale=C", "--auth-local=trust", "--auth-host=" + self.auth, "--pwfile=" + password)
        self.run("openssl", "req", "-new", "-x509", "-days", "3650", "-nodes", "-batch", "-newkey", "rsa:2048",
                 "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", self.certificate(),
                 "-keyout", os.path.join(self.data, "server.key"))

    def certificate(self):
        return os.path.join(self.data, "server.crt")

    def command(self):
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder,
                    "fsync": "off", "ssl": "on", "max_connections": 100, "shared_buffers": "16MB", **self.settings}
        command = [os.path.join(self.bin, "postgres"), "-D", self.data]
        for name, value in settings.items():
            command += ["-c", "%s=%s" % (name, value)]
        return command

    def answers(self):
        return subprocess.run([os.path.join(self.bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)],
                              check=False).returncode == 0

    def sql(self, statement):
        """What psql prints for it, unaligned, without headings."""
        return subprocess.run([os.path.join(self.bin, "psql"), self.url, "-AtXqc", statement], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()


class Redis(Service):
    def __init__(self, *flags):
        super().__init__()
        self.program = shutil.which("redis-server")
        if not self.program:
            raise RuntimeError("Redis is not installed: ./srv test installs it")
        self.flags = flags
        self.path = os.path.join(self.folder, "redis.sock")
        self.url = "redis://127.0.0.1:%d" % self.port

    def prepare(self):
        pass

    def command(self):
        return [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.path, "--save", "",
                "--appendonly", "no", "--dir", self.folder, *self.flags]

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                s.sendall(b"PING\r\n")
                return s.recv(64) != b""
        except OSError:
            return False

    def ask(self, *words):
        """What redis-cli prints for a command."""
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()


KINDS = {"postgres": (Postgres, "TEST_POSTGRES_URL"), "redis": (Redis, "TEST_REDIS_URL")}


def main(names, command):
    environment, services = dict(os.environ), []
    try:
        for name in names:
            kind, variable = KINDS[name]
            services.append(kind().__enter__())  # closed below, whatever happens
            environment[variable] = services[-1].url
        return subprocess.call(command, env=environment, stdin=subprocess.DEVNULL)
    finally:
        for service in services:
            service.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    split = sys.argv.index("--") if "--" in sys.argv else 0
    if split < 2 or split + 1 == len(sys.argv):
        sys.exit("usage: services.py [postgres] [redis] -- COMMAND...")
    sys.exit(main(sys.argv[1:split], sys.argv[split + 1:]))
