"""Servers under measurement: started on a CPU of their own, looked at through /proc, stopped."""
import ctypes
import functools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START_SECONDS = 15
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The measurement cannot be made; the text says why."""


def cpus():
    """The CPU of the server and that of the load."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise Failed("needs two CPUs: one for the server, one for the load")
    return usable[0], usable[1]


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def pin_to(cpu):
    """For a child before its exec: its CPU, and that it ends when we do, be it by kill -9."""
    def pin():
        os.sched_setaffinity(0, {cpu})
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return pin


def tell(text):
    """What is being done now, for whoever waits."""
    print("bench/run: " + text, file=sys.stderr, flush=True)


def raise_descriptor_limit(wanted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise Failed("needs %d descriptors, the limit is %d (ulimit -n)" % (wanted, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def server_binary(options):
    return os.path.abspath(options.server) if options.server else build("srv")


@functools.lru_cache(None)
def build(target):
    """The path of the release build's TARGET, built now."""
    for command in (["cmake", "--preset", "release"],
                    ["cmake", "--build", "--preset", "release", "--target", target]):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failed("%s failed:\n%s" % (" ".join(command), done.stdout.decode()[-2000:]))
    for folder in ("", "bench"):
        path = os.path.join(ROOT, "build", "release", folder, target)
        if os.path.isfile(path):
            return path
    raise Failed("the build made no %s" % target)


RUNNING = []  # servers, in the order of their start


def end_servers():
    for server in reversed(list(RUNNING)):
        server.stop()


def of_thread(pid, thread, name):
    """What /proc has under NAME; nothing of a thread that has ended since it was listed."""
    try:
        with open("/proc/%d/task/%s/%s" % (pid, thread, name)) as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Server:
    """A process and its children that say "listening on http://HOST:PORT" (https) when they are ready."""

    def __init__(self, name, command, cpu, folder=None):
        self.name = name
        self.folder = folder  # a TemporaryDirectory that goes with it
        self.started_ns = time.monotonic_ns()
        self.output = tempfile.TemporaryFile("w+b")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=self.output, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, preexec_fn=pin_to(cpu), start_new_session=True)
        RUNNING.append(self)
        try:
            self.port = self._wait_for_port()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _printed(self):
        return os.pread(self.output.fileno(), 1 << 16, 0).decode(errors="replace")

    def _wait_for_port(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            found = re.search(r"listening on (https?)://[^\s\"]*:(\d+)", self._printed())
            if found:
                self.scheme = found.group(1)
                return int(found.group(2))
            if self.process.poll() is not None:
                raise Failed("%s ended:\n%s" % (self.name, self._printed()[-2000:]))
            time.sleep(0.0005)
        raise Failed("%s did not say where it listens:\n%s" % (self.name, self._printed()[-2000:]))

    def stop(self):
        if self in RUNNING:
            RUNNING.remove(self)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.output.close()
        if self.folder:
            self.folder.cleanup()

    def pids(self):
        """Ours and those of all our children."""
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            for thread in os.listdir("/proc/%d/task" % pid):
                todo += [int(child) for child in of_thread(pid, thread, "children").split()]
        return found

    def cpu_ns(self):
        """CPU time of all threads so far, as the scheduler counts it: in ns, not in ticks."""
        total = 0
        for pid in self.pids():
            for thread in os.listdir("/proc/%d/task" % pid):
                total += int((of_thread(pid, thread, "schedstat") or "0").split()[0])
        return total

    def ticks(self):
        """(user, system) so far, in ns: utime and stime of /proc/PID/stat."""
        user = system = 0
        for pid in self.pids():
            with open("/proc/%d/stat" % pid) as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            user += int(fields[11])
            system += int(fields[12])
        return user * TICK_NS, system * TICK_NS

    def memory(self):
        """Bytes that only these processes hold: private pages, without what is mapped from files."""
        total = 0
        for pid in self.pids():
            with open("/proc/%d/smaps_rollup" % pid) as smaps:
                for line in smaps:
                    if line.startswith("Anonymous:"):
                        total += int(line.split()[1]) * 1024
        return total


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# --- the servers ------------------------------------------------------------------------------------

def start_srv(options, *flags, app=""):
    """One worker, without access log as the peers are, and without a watch on the files. APP: a file
    of apps/bench instead of its app.lua."""
    app = os.path.join(ROOT, "apps", "bench", app)
    command = [server_binary(options), app, "--port", "0", "--workers", "1", "--no-watch",
               "--no-access-log", *flags]
    return Server("srv", command, cpus()[0])


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="srv-bench-")


@functools.lru_cache(None)
def loop_program():
    """The yardstick's program, in a folder that goes with us."""
    folder = temporary_folder()
    program = os.path.join(folder.name, "epoll_loop")
    source = os.path.join(ROOT, "bench", "micro", "epoll_loop.c")
    subprocess.run(["cc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-o", program, source], check=True)
    return folder, program


def start_loop(answer=None, name="bare loop"):
    """The yardstick; ANSWER: the bytes that it sends."""
    command = [loop_program()[1], "0"]
    folder = temporary_folder()
    if answer is not None:
        command.append(os.path.join(folder.name, "answer"))
        with open(command[-1], "wb") as file:
            file.write(answer)
    return Server(name, command, cpus()[0], folder)


def nginx_modules():
    told = subprocess.run(["nginx", "-V"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return re.search(r"--modules-path=(\S+)", told).group(1)


def start_nginx(template="nginx.conf", name="nginx", **places):
    folder = temporary_folder()
    port = free_port()
    peers = os.path.join(ROOT, "bench", "peers")
    with open(os.path.join(peers, template)) as file:
        conf = file.read()
    for place, value in dict(places, FOLDER=folder.name, PORT=str(port), PEERS=peers,
                            MODULES=nginx_modules()).items():
        conf = conf.replace("@%s@" % place, value)
    with open(os.path.join(folder.name, "nginx.conf"), "w") as file:
        file.write(conf)
    command = "echo listening on http://127.0.0.1:%d; exec nginx -p %s -c nginx.conf" % (port, folder.name)
    server = Server(name, ["sh", "-c", command], cpus()[0], folder)
    wait_for_answer(port)
    return server


def start_at_port(name, command):
    """A server that is told its port (PORT in COMMAND) and says nothing of it."""
    port = free_port()
    told = [argument.replace("PORT", str(port)) for argument in command]
    say = "echo listening on http://127.0.0.1:%d; exec \"$@\"" % port
    server = Server(name, ["sh", "-c", say, "sh", *told], cpus()[0])
    wait_for_answer(port)
    return server


def start_node():
    return Server("node http", ["node", "bench/peers/node_http.js"], cpus()[0])


@functools.lru_cache(None)
def node_packages(*names):
    """A folder with node_modules, fetched for this run."""
    folder = temporary_folder()
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder.name, *names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed("npm could not fetch %s:\n%s" % (", ".join(names), done.stdout[-1000:]))
    return folder


def start_npm(name, script, *packages):
    """bench/peers/SCRIPT with npm's PACKAGES, as in production."""
    folder = node_packages(*packages)
    os.environ["BENCH_NODE_MODULES"] = folder.name
    os.environ["NODE_ENV"] = "production"
    return Server(name, ["node", os.path.join("bench", "peers", script)], cpus()[0])


def start_fastify():
    return start_npm("fastify + pg", "fastify_pg.js", "fastify", "pg")


PEERS = {"nginx": start_nginx, "node": start_node}


def start_peers(options):
    names = [name for name in options.peers.split(",") if name]
    for name in names:
        if name not in PEERS:
            raise Failed("no peer %r; there are %s" % (name, ", ".join(PEERS)))
    return [PEERS[name]() for name in names]


# --- the clients ------------------------------------------------------------------------------------

def read_answer(connection):
    """One answer with a Content-Length, head and body, as it came."""
    data = b""
    while True:
        head, found, body = data.partition(b"\r\n\r\n")
        if found:
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            if not length:
                raise Failed("an answer without Content-Length: %r" % head[:200])
            if len(body) >= int(length.group(1)):
                return data
        more = connection.recv(65536)
        if not more:
            raise Failed("the connection ended within an answer: %r" % data[:200])
        data += more


class Request:
    """What is sent over and over. A path alone is a GET that says no more than it must."""

    def __init__(self, path, method="GET", fields=(), body=""):
        self.path, self.method, self.body = path, method, body
        self.fields = dict(fields, **({"Content-Length": str(len(body))} if body else {}))

    @staticmethod
    def of(request):
        return request if isinstance(request, Request) else Request(request)

    def __str__(self):
        return "%s %s" % (self.method, self.path)

    def bytes(self):
        fields = "".join("%s: %s\r\n" % field for field in self.fields.items())
        head = "%s %s HTTP/1.1\r\nHost: bench\r\n%s\r\n" % (self.method, self.path, fields)
        return (head + self.body).encode()

    def wrk_script(self):
        """It makes the bytes once, so that the load costs no more than a plain GET."""
        fields = "".join("wrk.headers[%s] = %s\n" % (json.dumps(name), json.dumps(value))
                         for name, value in self.fields.items() if name != "Content-Length")
        return "wrk.method = %s\n%s%s" % (
            json.dumps(self.method), fields, "wrk.body = %s\n" % json.dumps(self.body) if self.body else "")


def request(connection, path):
    connection.sendall(Request.of(path).bytes())
    return read_answer(connection)


def fetch(port, path):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        answer = request(connection, path)
    if not answer.startswith(b"HTTP/1.1 2"):
        raise Failed("%s: %r" % (Request.of(path), answer[:200]))
    return answer


def wait_for_answer(port, path="/"):
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return fetch(port, path)
        except OSError:
            if time.monotonic() > end:
                raise Failed("nothing answers on port %d" % port) from None
            time.sleep(0.005)


class Load:
    """What wrk told of one turn."""

    def __init__(self, text):
        done = re.search(r"(\d+) requests in", text)
        if not done or "Non-2xx" in text or "Socket errors" in text:
            raise Failed("wrk:\n" + text)
        self.requests = int(done.group(1))
        self.rate = float(re.search(r"Requests/sec: *([\d.]+)", text).group(1))


def wrk(server, path, seconds, connections):
    wanted = Request.of(path)
    command = ["wrk", "-t1", "-c%d" % connections, "-d%gs" % seconds]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        if wanted.fields or wanted.method != "GET":
            script.write(wanted.wrk_script())
            script.flush()
            command += ["-s", script.name]
        command.append("%s://127.0.0.1:%d%s" % (server.scheme, server.port, wanted.path))
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  preexec_fn=pin_to(cpus()[1]), timeout=seconds + 30)
        except FileNotFoundError:
            raise Failed("wrk is not installed (apt-get install wrk)") from None
        except subprocess.TimeoutExpired:
            raise Failed("wrk has not ended 30 s after its time") from None
    return Load(done.stdout.decode())


class Turn:
    """CPU of SERVER while wrk asked it for PATH."""

    def __init__(self, server, path, seconds, connections):
        before, (user, system) = server.cpu_ns(), server.ticks()
        load = wrk(server, path, seconds, connections)
        spent, (user_after, system_after) = server.cpu_ns() - before, server.ticks()
        self.us = spent / load.requests / 1000
        self.user_share = (user_after - user) / max(1, user_after - user + system_after - system)
        self.rate = load.rate


def take_turns(servers, path, options, connections):
    """{ server: [Turn] }, one of each server after the other, after a turn that does not count.
    PATH: a Request, or the path of one."""
    turns = {server: [] for server in servers}
    for server in servers:
        Turn(server, path, min(1, options.seconds), connections)
    for turn in range(options.turns):
        tell("%s, turn %d of %d" % (Request.of(path), turn + 1, options.turns))
        for server in servers:
            turns[server].append(Turn(server, path, options.seconds, connections))
    return turns
