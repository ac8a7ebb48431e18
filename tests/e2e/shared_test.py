"""What two workers share: counters, values computed once, leases, the bus; and what outlives a reload."""
import http.client
import json
import os
import socket
import struct
import tempfile
import threading
import unittest

from srv_process import Srv, wait_until, write_app

APP = """
local srv = require "srv"
local app = srv.app()
local d = srv.shared("e2e", { bytes = "1MiB" })

app:get("/worker", function() return { id = srv.worker.id, generation = srv.worker.generation } end)
app:get("/incr/:key", function(req) return { n = d:incr(req.params.key) } end)
app:get("/get/:key", function(req) return { v = d:get(req.params.key) or srv.null, worker = srv.worker.id } end)
app:get("/set/:key/:v", function(req) d:set(req.params.key, req.params.v) return "" end)
app:get("/wait/:key", { timeout = "60s" }, function(req)
  d:incr "waiting"
  return { v = d:wait(req.params.key, "50s") or srv.null, worker = srv.worker.id }
end)
app:get("/compute/:key", { timeout = "60s" }, function(req)
  d:incr "asked"
  local v = d:get_or_compute(req.params.key, "1m", function()
    d:incr "computing"
    srv.sleep(tonumber(req.query.s or 0.3))
    return { by = srv.worker.id, n = d:incr "computed" }
  end)
  return v
end)
app:get("/publish/:topic/:v", function(req) srv.bus.publish(req.params.topic, req.params.v) return "" end)
app:get("/publish-many/:count<int>", function(req)
  for i = 1, req.params.count do srv.bus.publish("many." .. srv.worker.id, i) end
  return ""
end)
app:get("/listen/:topic/:count<int>", { timeout = "60s" }, function(req)
  local sub = srv.bus.subscribe(req.params.topic, { limit = 100000 })
  d:incr "listening"
  local got = {}
  for v, topic in sub:each() do
    got[#got + 1] = topic .. "=" .. tostring(v)
    if #got == req.params.count then break end
  end
  return { got = got, worker = srv.worker.id, dropped = sub.dropped }
end)
return app
"""


class Connections:
    """One keep-alive connection for each of the two workers."""

    def __init__(self, srv):
        self.of = {}

        def both():
            connection = http.client.HTTPConnection("127.0.0.1", srv.port, timeout=60)
            connection.connect()
            worker = self.ask(connection, "/worker")["id"]
            if worker in self.of:
                connection.close()
            else:
                self.of[worker] = connection
            return len(self.of) == 2

        wait_until(both, "a connection to each of the workers")

    @staticmethod
    def ask(connection, path):
        connection.request("GET", path)
        body = connection.getresponse().read()
        return json.loads(body) if body else None

    def get(self, worker, path):
        return self.ask(self.of[worker], path)

    def start(self, worker, path):
        """Asks in a thread; join() gives the answer."""
        return Asking(lambda: self.get(worker, path))

    def close(self):
        for connection in self.of.values():
            connection.close()


class Asking(threading.Thread):
    def __init__(self, fn):
        super().__init__(daemon=True)
        self.fn, self.answer = fn, None
        self.start()

    def run(self):
        self.answer = self.fn()

    def result(self):
        self.join(60)
        return self.answer


def reset(connection):
    """The client is gone, and says so."""
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class SharedTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        write_app(self.folder.name, {"app.lua": APP})
        self.srv = Srv(self.folder.name, "--no-access-log", "--drain-timeout", "300ms", workers=2)
        self.side = Connections(self.srv)  # asks while those of a test wait
        self.two = Connections(self.srv)

    def tearDown(self):
        self.two.close()
        self.side.close()
        try:
            self.assertEqual(self.srv.stop(), 0, self.srv.output)
            self.assertNotIn("Sanitizer", self.srv.output)
        finally:
            self.srv.kill()
            self.folder.cleanup()

    def count(self, key):
        return self.side.get(0, "/get/" + key)["v"]

    def await_count(self, key, at_least):
        wait_until(lambda: (self.count(key) or 0) >= at_least, "%s to be %d" % (key, at_least))

    def test_increments_of_both_workers_under_load_are_all_counted(self):
        def many():
            two = Connections(self.srv)
            for worker in (0, 1):
                for _ in range(250):
                    two.get(worker, "/incr/n")
            two.close()

        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.two.get(0, "/get/n")["v"], 2000)
        self.assertEqual(self.two.get(1, "/get/n")["v"], 2000)

    def test_a_change_by_one_worker_wakes_who_waits_in_the_other(self):
        waiting = self.two.start(1, "/wait/k")
        self.await_count("waiting", 1)
        self.two.get(0, "/set/k/hello")
        self.assertEqual(waiting.result(), {"v": "hello", "worker": 1})

    def test_a_value_is_computed_once_for_both_workers(self):
        asking = [self.two.start(worker, "/compute/k?s=0.5") for worker in (0, 1)]
        more = [Asking(lambda: json.loads(self.srv.get("/compute/k")[2])) for _ in range(8)]
        answers = [asked.result() for asked in asking + more]
        self.assertEqual(answers, [answers[0]] * 10)
        self.assertEqual(answers[0]["n"], 1)
        self.assertEqual(self.count("computing"), 1)

    def test_a_lease_passes_to_the_other_worker_when_the_client_leaves(self):
        computing = self.two.of[0]
        computing.request("GET", "/compute/k?s=50")
        self.await_count("computing", 1)
        waiting = self.two.start(1, "/compute/k?s=0")
        self.await_count("asked", 2)
        reset(computing)
        self.assertEqual(waiting.result(), {"by": 1, "n": 1})

    def reload(self):
        with open(os.path.join(self.folder.name, "app.lua"), "a", encoding="utf-8") as out:
            out.write("-- edited\n")
        for worker in (0, 1):
            wait_until(lambda: self.side.get(worker, "/worker")["generation"] > 1, "a new generation")

    def test_a_lease_of_a_generation_that_ends_passes_to_the_new_one(self):
        self.two.start(0, "/compute/k?s=50")
        self.await_count("computing", 1)
        self.reload()
        self.assertEqual(self.two.get(1, "/compute/k?s=0"), {"by": 1, "n": 1})

    def test_values_outlive_a_reload(self):
        self.two.get(0, "/set/k/kept")
        self.reload()
        for worker in (0, 1):
            self.assertEqual(self.side.get(worker, "/get/k")["v"], "kept")

    def test_a_message_reaches_subscribers_of_both_workers(self):
        listening = [self.two.start(worker, "/listen/room.*/2") for worker in (0, 1)]
        self.await_count("listening", 2)
        self.side.get(0, "/publish/room.1/a")
        self.side.get(1, "/publish/hall/x")
        self.side.get(0, "/publish/room.2/b")
        for worker, asked in enumerate(listening):
            self.assertEqual(asked.result(),
                             {"got": ["room.1=a", "room.2=b"], "worker": worker, "dropped": 0})

    def test_messages_of_each_publisher_come_in_order_and_none_is_lost(self):
        listening = [self.two.start(worker, "/listen/many.*/4000") for worker in (0, 1)]
        self.await_count("listening", 2)
        publishing = [self.side.start(worker, "/publish-many/2000") for worker in (0, 1)]
        for asked in publishing:
            asked.result()
        for asked in listening:
            got = asked.result()["got"]
            for publisher in (0, 1):
                own = [m for m in got if m.startswith("many.%d=" % publisher)]
                self.assertEqual(own, ["many.%d=%d" % (publisher, i) for i in range(1, 2001)])

    def test_a_subscription_ends_when_its_client_leaves(self):
        listening = self.two.of[1]
        listening.request("GET", "/listen/room.*/5")
        self.await_count("listening", 1)
        reset(listening)
        for _ in range(300):
            self.side.get(0, "/publish/room.1/a")
        self.assertEqual(self.side.get(1, "/worker")["id"], 1)

    def test_a_server_that_is_stopped_while_many_wait_ends_cleanly(self):
        asking = [Asking(lambda path=path: self.srv.get(path))
                  for path in ["/wait/k", "/compute/c?s=50", "/listen/t/9"] * 6]
        self.await_count("waiting", 6)
        self.await_count("asked", 6)
        self.await_count("listening", 6)
        self.assertEqual(self.srv.stop(), 0)
        for asked in asking:
            asked.join(60)


SIZED = """
local srv = require "srv"
local app = srv.app()
local d = srv.shared("sized", { bytes = "16MiB" })
app:get("/fits/:bytes<int>", function(req)
  local ok, err = d:set("k", ("x"):rep(req.params.bytes))
  return { fits = ok or false, code = err and err.code or srv.null }
end)
app:get("/config", function() return srv.config.shared end)
return app
"""
TOO_LARGE = {"fits": False, "code": "too_large"}
FITS = {"fits": True, "code": None}


class SizesTest(unittest.TestCase):
    """The setting `shared`: flags beat SRV_SHARED, that config.lua, that the code."""

    def ask(self, path, *flags, config=None, env=None):
        with tempfile.TemporaryDirectory() as folder:
            files = {"app.lua": SIZED}
            if config:
                files["config.lua"] = config
            write_app(folder, files)
            server = Srv(folder, *flags, env=env)
            try:
                return json.loads(server.get(path)[2])
            finally:
                self.assertEqual(server.stop(), 0, server.output)
                server.kill()

    def test_the_code_says_how_large_a_dictionary_is(self):
        self.assertEqual(self.ask("/fits/200000"), FITS)

    def test_config_lua_has_the_last_word_over_the_code(self):
        config = 'return { shared = { sized = "64KiB" } }'
        self.assertEqual(self.ask("/fits/200000", config=config), TOO_LARGE)
        self.assertEqual(self.ask("/config", config=config)["sized"], 65536)

    def test_the_environment_and_flags_stand_above_it(self):
        config = 'return { shared = { sized = "64KiB" } }'
        above = {"SRV_SHARED": "sized=1MiB"}
        self.assertEqual(self.ask("/fits/200000", config=config, env=above), FITS)
        self.assertEqual(self.ask("/fits/200000", "--shared", "sized=64KiB", env=above), TOO_LARGE)


if __name__ == "__main__":
    unittest.main()
