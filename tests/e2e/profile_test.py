"""The admin socket's command `profile`: all workers are sampled, the lines and waits of the app are found."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from srv_process import Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
local list = {}
for i = 1, 3000 do list[i] = { key = "k" .. i, value = i } end

local function find(key)
  for i = 1, #list do
    if list[i].key == key then return list[i] end
  end
end

app:get("/", function() return "hello" end)
app:get("/scan", function()
  local found
  for i = 1, 20 do found = find("k2999") end
  return found
end)
app:get("/json", function()
  local text = srv.json.encode(list)
  return tostring(#text)
end)
app:get("/sleep", function()
  srv.sleep(0.3)
  return "slept"
end)
app:get("/burn", function()
  local n, till = 0, os.clock() + 1
  repeat for i = 1, 1e5 do n = n + i % 3 end until os.clock() > till
  return "burnt"
end)
app:get("/endless", function() while true do end end)
return app
"""
FIND, JSON, SLEEP = (8, 9), 20, 24  # lines of the app


class Answer:
    """What the server says to `profile`, once it is asked to stop."""

    def __init__(self, lines):
        self.frames, self.stacks, self.done = [], [], None
        for line in lines:
            told = json.loads(line)
            if "frame" in told:
                assert told["frame"] == len(self.frames), told
                self.frames.append(told)
            elif "state" in told:
                self.stacks.append(told)
            else:
                self.done = told

    def path(self, stack):
        return [self.frames[i] for i in stack["stack"]]

    def count(self, claim):
        """Of stacks for which CLAIM(stack, its frames) holds."""
        return sum(s["count"] for s in self.stacks if claim(s, self.path(s)))

    def samples_of(self, worker):
        return self.count(lambda s, _: s["worker"] == worker and s["state"] != "wait")

    def hottest_line(self):
        """Of the app, as innermost Lua frame of what used the CPU."""
        lines = {}
        for stack in self.stacks:
            apps = [f for f in self.path(stack) if f["kind"] in ("app", "srv")]
            if stack["state"] != "wait" and apps and apps[-1]["kind"] == "app":
                place = (apps[-1].get("name"), apps[-1]["line"])
                lines[place] = lines.get(place, 0) + stack["count"]
        return max(lines, key=lines.get)


class Client:
    def __init__(self, path, command="profile 1000"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.socket.sendall(command.encode() + b"\n")
        self.file = self.socket.makefile("r")
        self.first = json.loads(self.file.readline())

    def stop(self):
        self.socket.sendall(b"stop\n")
        answer = Answer(self.file)
        self.close()
        return answer

    def close(self):
        self.file.close()
        self.socket.close()


class Load:
    """Threads that ask for PATHS until the block is left; statuses of all answers."""

    def __init__(self, srv, *paths, threads=4):
        self.srv, self.paths, self.over, self.statuses = srv, paths, False, {}
        self.threads = [threading.Thread(target=self.run) for _ in range(threads)]

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.srv.port, timeout=60)
        while not self.over:
            for path in self.paths:
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: self.statuses, "the first answer")
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()


class ProfileTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.app = write_app(os.path.join(self.folder.name, "app"), {"app.lua": APP})

    def start(self, *flags, workers=1):
        srv = Srv(self.app, "--no-access-log", *flags, workers=workers,
                  env={"XDG_RUNTIME_DIR": self.folder.name})
        self.addCleanup(srv.kill)
        self.path = os.path.join(self.folder.name, "srv", "%d.sock" % srv.process.pid)
        wait_until(lambda: os.path.exists(self.path), "the admin socket")
        return srv

    def profile(self, seconds):
        client = Client(self.path)
        self.assertEqual({"profiling": True, "hz": 1000}.items() - client.first.items(), set())
        time.sleep(seconds)  # this is how long it samples
        return client.stop()

    def test_the_line_that_takes_the_time_is_found(self):
        srv = self.start()
        with Load(srv, "/scan"):
            answer = self.profile(1)
        name, line = answer.hottest_line()
        self.assertEqual(name, "find")
        self.assertIn(line, FIND)
        self.assertGreater(answer.count(lambda s, path: path and path[0]["kind"] == "task" and
                                        path[0]["name"] == "GET /scan"), answer.done["samples"] / 3)
        self.assertEqual(answer.done["lost"], 0)
        self.assertEqual(answer.done["silent"], [])
        self.assertEqual(answer.done["samples"], answer.count(lambda s, _: s["state"] != "wait"))
        if answer.done["compiled"]:
            self.assertGreater(answer.count(lambda s, _: s["state"] == "jit"), 0)

    def test_c_functions_stand_below_the_line_of_the_app_that_called_them(self):
        srv = self.start()
        with Load(srv, "/json"):
            answer = self.profile(1)
        below = answer.count(lambda s, path: s["state"] == "c" and
                             any(f["kind"] == "app" and f["line"] == JSON for f in path) and
                             any(f["kind"] == "c" and "encode" in f["name"] for f in path))
        self.assertGreater(below, answer.done["samples"] / 4)
        wrong = answer.count(lambda s, path: any(f["kind"] == "app" and f["line"] == JSON + 1 for f in path)
                             and any(f["kind"] == "c" and "encode" in f["name"] for f in path))
        self.assertLess(wrong, below / 20)

    def test_waits_are_told_with_what_is_waited_for(self):
        srv = self.start()
        with Load(srv, "/sleep", threads=8):
            answer = self.profile(1)
        asleep = answer.count(lambda s, path: s.get("wait") == "sleep" and
                              any(f["kind"] == "app" and f["line"] == SLEEP for f in path))
        self.assertGreater(asleep, 8 * 100 / 4)
        self.assertEqual(answer.done["waits"], answer.count(lambda s, _: s["state"] == "wait"))

    def test_samples_follow_the_cpu_time_and_a_sleeping_worker_gets_none(self):
        srv = self.start(workers=2)
        client = Client(self.path)
        before = self.worker_cpu(srv)
        srv.get("/burn")
        used = self.worker_cpu(srv)
        answer = client.stop()
        used = {worker: used[worker] - before[worker] for worker in used}
        busy = max(used, key=used.get)
        self.assertGreater(answer.samples_of(busy), 0.5 * 1000 * used[busy])
        self.assertLess(answer.samples_of(busy), 1.2 * 1000 * used[busy] + 20)
        self.assertLessEqual(answer.samples_of(1 - busy), 2)

    def worker_cpu(self, srv):
        """{worker: seconds}"""
        found = {}
        for pid in [srv.process.pid, *srv.children()]:
            for thread in os.listdir("/proc/%d/task" % pid):
                folder = "/proc/%d/task/%s/" % (pid, thread)
                with open(folder + "comm") as comm, open(folder + "schedstat") as stat:
                    name = comm.read().strip()
                    if name.startswith("worker-"):
                        found[int(name[7:])] = int(stat.read().split()[0]) / 1e9
        return found

    def test_all_workers_get_samples(self):
        srv = self.start(workers=2)
        with Load(srv, "/scan", threads=16):
            answer = self.profile(1)
        self.assertGreater(answer.samples_of(0), 0)
        self.assertGreater(answer.samples_of(1), 0)

    def test_one_client_at_a_time_and_whoever_goes_makes_room(self):
        self.start()
        first = Client(self.path)
        self.assertIn("busy", self.refusal("profile"))
        first.close()
        wait_until(lambda: self.begins(), "room for another client")

    def refusal(self, command):
        client = Client(self.path, command)
        client.close()
        return client.first["error"]

    def begins(self):
        client = Client(self.path)
        client.close()
        return "profiling" in client.first

    def test_a_killed_client_ends_its_profile(self):
        srv = self.start()
        code = ("import socket, time; s = socket.socket(socket.AF_UNIX); s.connect(%r);"
                "s.sendall(b'profile 1000\\n'); print(s.recv(100), flush=True); time.sleep(100)" % self.path)
        with Load(srv, "/scan"):
            child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            self.assertIn(b"profiling", child.stdout.readline())
            child.kill()
            child.wait()
            child.stdout.close()
            wait_until(lambda: self.begins(), "the end of the killed client's profile")
        self.assertEqual(srv.stop(), 0)

    def test_it_begins_and_ends_again_and_again_under_load(self):
        srv = self.start(workers=2)
        with Load(srv, "/", "/scan", "/json", threads=8) as load:
            for _ in range(20):
                answer = self.profile(0.05)
                self.assertEqual(answer.done["lost"], 0)
            self.assertEqual(set(load.statuses), {200})
        self.assertEqual(srv.stop(), 0)

    def test_what_ran_before_a_reload_keeps_its_name(self):
        srv = self.start("--watch")
        client = Client(self.path)
        with Load(srv, "/scan"):
            time.sleep(0.3)
            new = APP.replace("function find", "function search").replace('find("', 'search("')
            write_app(self.app, {"app.lua": "\n" * 100 + new})
            srv.wait_line("app reloaded")
            time.sleep(0.3)
        answer = client.stop()
        places = {(f.get("name"), f.get("line", 0) > 100) for f in answer.frames}
        self.assertLessEqual({("find", False), ("search", True)}, places)

    def test_a_runaway_is_stopped_while_it_is_sampled(self):
        write_app(self.app, {"config.lua": 'return { slice_limit = "300ms" }'})
        srv = self.start()
        client = Client(self.path)
        self.assertEqual(srv.get("/endless")[0], 503)
        self.assertEqual(srv.get("/")[0], 200)
        answer = client.stop()
        if answer.done["compiled"]:
            self.assertGreater(answer.count(lambda s, path: path[-1].get("line") == 32), 20)

    def test_a_server_that_ends_amid_a_profile_ends_well(self):
        srv = self.start()
        client = Client(self.path)
        with Load(srv, "/scan"):
            time.sleep(0.1)
        self.assertEqual(srv.stop(), 0)
        client.close()

    def test_a_wrong_rate_is_refused(self):
        self.start()
        for args in ("0", "1001", "-1", "many", "1 2"):
            self.assertIn("1 to 1000", self.refusal("profile " + args))


if __name__ == "__main__":
    unittest.main()
