#!/usr/bin/env python3
"""Black-box HTTP/1.1 conformance and security runner (Python 3.11, standard library only).

usage: run.py HOST PORT [--cases FILE] [--only REGEX] [--area A,B]
              [--level MUST,SHOULD,SEC,QUALITY] [--no-ext] [--no-slow] [--jobs N]
              [--limit SECONDS] [--bytewise] [-v] [--json OUT]

Every case opens its own connection, plays its steps, reads what comes back, and is
compared with a list of acceptable outcomes; matching one of them is a pass.
One line is printed for each failing case; the last line is 'N passed, N failed'.
Only loopback addresses are ever connected to.

With --bytewise the first bytes of each sending step arrive alone, each in a packet of its own:
what a case expects must not depend on how its bytes are cut.
"""
import argparse, ipaddress, json, os, re, select, socket, struct, sys, threading, time, hashlib
from concurrent.futures import ThreadPoolExecutor

TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)\Z")
BADVAL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
MAXBODY = 64 << 20


class Malformed(Exception):
    pass


class Response:
    __slots__ = ("status", "headers", "body", "complete", "unframed")

    def __init__(self, status):
        self.status, self.headers, self.body = status, [], bytearray()
        self.complete, self.unframed = False, False

    def get(self, name):
        vals = [v for k, v in self.headers if k == name]
        return ", ".join(vals) if vals else None


class Parser:
    """Strict incremental parser for a sequence of HTTP/1.1 responses."""

    def __init__(self, methods):
        self.methods = methods
        self.buf = bytearray()
        self.raw = bytearray()
        self.final, self.interim = [], []
        self.err = None
        self.state, self.cur, self.need = "head", None, 0
        self.eof = False

    def feed(self, data):
        if len(self.raw) < MAXBODY:
            self.raw += data
        self.buf += data
        if self.err is None:
            try:
                while self._step():
                    pass
            except Malformed as e:
                self.err = str(e)

    def close(self):
        if self.eof:
            return
        self.eof = True
        if self.err:
            return
        if self.state == "eofbody":
            self.cur.complete = True
            self.final.append(self.cur)
            self.cur, self.state = None, "head"
        elif self.state != "head" or self.buf:
            self.err = "connection closed inside a response (%s, %d bytes pending)" % (self.state, len(self.buf))

    def _line(self):
        i = self.buf.find(b"\n")
        if i < 0:
            if len(self.buf) > 262144:
                raise Malformed("response line too long")
            return None
        if i == 0 or self.buf[i - 1] != 13:
            raise Malformed("line not ended by CRLF: %r" % bytes(self.buf[:60]))
        line = bytes(self.buf[:i - 1])
        del self.buf[:i + 1]
        return line

    def _step(self):
        if self.state == "head":
            if not self.buf:
                return False
            if len(self.buf) >= 5 and self.buf[:5] != b"HTTP/":
                raise Malformed("not a status line: %r" % bytes(self.buf[:60]))
            line = self._line()
            if line is None:
                return False
            m = STATUS.match(line)
            if not m:
                raise Malformed("bad status line: %r" % line[:80])
            self.cur = Response(int(m.group(1)))
            self.state = "fields"
            return True
        if self.state == "fields":
            line = self._line()
            if line is None:
                return False
            if line:
                name, sep, value = line.partition(b":")
                if not sep or not TOKEN.match(name):
                    raise Malformed("bad field line: %r" % line[:80])
                value = value.strip(b" \t")
                if BADVAL.search(value):
                    raise Malformed("control character in field value: %r" % line[:80])
                self.cur.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
                return True
            return self._framing()
        if self.state == "length":
            n = min(self.need, len(self.buf))
            self.cur.body += self.buf[:n]
            del self.buf[:n]
            self.need -= n
            if self.need:
                return False
            self._done()
            return True
        if self.state == "eofbody":
            self.cur.body += self.buf
            self.buf.clear()
            return False
        if self.state == "csize":
            line = self._line()
            if line is None:
                return False
            size = line.split(b";", 1)[0].rstrip(b" \t")
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
                raise Malformed("bad chunk size: %r" % line[:40])
            self.need = int(size, 16)
            self.state = "cdata" if self.need else "ctrail"
            return True
        if self.state == "cdata":
            n = min(self.need, len(self.buf))
            self.cur.body += self.buf[:n]
            del self.buf[:n]
            self.need -= n
            if self.need:
                return False
            self.state = "cend"
            return True
        if self.state == "cend":
            if len(self.buf) < 2:
                return False
            if self.buf[:2] != b"\r\n":
                raise Malformed("chunk data not ended by CRLF")
            del self.buf[:2]
            self.state = "csize"
            return True
        if self.state == "ctrail":
            line = self._line()
            if line is None:
                return False
            if line:
                name, sep, _ = line.partition(b":")
                if not sep or not TOKEN.match(name):
                    raise Malformed("bad trailer line: %r" % line[:80])
                return True
            self._done()
            return True
        return False

    def _framing(self):
        r = self.cur
        te = [v for k, v in r.headers if k == "transfer-encoding"]
        cl = [v for k, v in r.headers if k == "content-length"]
        if te and cl:
            raise Malformed("response has both Transfer-Encoding and Content-Length")
        if len(cl) > 1 or (cl and not re.fullmatch(r"[0-9]{1,18}", cl[0])):
            raise Malformed("bad Content-Length in response: %r" % cl)
        if te and [t.strip().lower() for t in ",".join(te).split(",")] != ["chunked"]:
            raise Malformed("bad Transfer-Encoding in response: %r" % te)
        if (r.status < 200 or r.status == 204) and (te or cl):
            raise Malformed("status %d with Content-Length or Transfer-Encoding" % r.status)
        if r.status < 200 and r.status != 101:
            self.interim.append(r)
            self.cur, self.state = None, "head"
            return True
        i = len(self.final)
        method = self.methods[i] if i < len(self.methods) else "GET"
        if r.status == 101 or (method == "CONNECT" and 200 <= r.status < 300):
            r.unframed = True
            self.state = "eofbody"
            r.complete = True          # a switched protocol counts as soon as its head is there
            self.final.append(r)
            return True
        if method == "HEAD" or r.status in (204, 304):
            self._done()
            return True
        if te:
            self.state = "csize"
        elif cl:
            self.need = int(cl[0])
            self.state = "length"
        else:
            r.unframed = True
            self.state = "eofbody"
        return True

    def _done(self):
        self.cur.complete = True
        self.final.append(self.cur)
        self.cur, self.state = None, "head"

    @property
    def tunnel(self):
        return bool(self.final) and self.final[-1].unframed and self.final[-1] is self.cur


def b(s):
    return s.encode("latin-1")


BYTEWISE_MAX = 1500        # bytes of one step that go alone; the rest follows in one piece
BYTEWISE_GAP = 0.0002      # seconds: several rounds of an idle server


def bytewise(writes):
    """The same bytes, the first of them in writes of one byte."""
    out = []
    for data, gap in writes:
        if gap or len(data) == 0:
            out.append((data, gap))
            continue
        out += [(data[i:i + 1], BYTEWISE_GAP) for i in range(min(len(data), BYTEWISE_MAX))]
        if len(data) > BYTEWISE_MAX:
            out.append((data[BYTEWISE_MAX:], 0))
    return out


def expand(step):
    """Return the list of (bytes, gap seconds) writes for a sending step."""
    if isinstance(step, str):
        return [(b(step), 0)]
    if "repeat" in step:
        return [(b(step["repeat"]) * step["n"], 0)]
    if "count" in step:
        return [(b"".join(b(step["count"].replace("%d", str(i))) for i in range(step["n"])), 0)]
    if "frag" in step:
        d, z, g = b(step["frag"]), step.get("size", 1), step.get("gap", 1) / 1000
        return [(d[i:i + z], g) for i in range(0, len(d), z)]
    if "drip" in step:
        return [(b(step["drip"]), step.get("gap", 100) / 1000)] * step["n"]
    return None


def match_value(m, v):
    """v is bytes or None."""
    if isinstance(m, str):
        return v is not None and v == b(m)
    if "absent" in m:
        return (v is None) == m["absent"]
    if "any" in m:
        return any(match_value(x, v) for x in m["any"])
    if v is None:
        return False
    if "present" in m:
        return True
    if "re" in m:
        return re.search(b(m["re"]), v, re.S) is not None
    if "not_re" in m:
        return re.search(b(m["not_re"]), v, re.S) is None
    if "token" in m:
        toks = [t.strip().lower() for t in v.decode("latin-1").split(",")]
        return m["token"].lower() in toks
    if "no_token" in m:
        toks = [t.strip().lower() for t in v.decode("latin-1").split(",")]
        return m["no_token"].lower() not in toks
    if "len" in m:
        return len(v) == m["len"] and ("fill" not in m or v == b(m["fill"]) * m["len"])
    if "rep" in m:
        return v == b(m["rep"]) * m["n"]
    if "json" in m:
        try:
            return json.loads(v.decode("utf-8")) == m["json"]
        except (ValueError, UnicodeDecodeError):
            return False
    if "json_valid" in m:
        try:
            json.loads(v.decode("utf-8"))
            return True
        except (ValueError, UnicodeDecodeError):
            return False
    raise KeyError("unknown matcher %r" % m)


def match_status(m, s):
    if isinstance(m, int):
        return s == m
    if isinstance(m, str):
        return s // 100 == int(m[0])
    return any(match_status(x, s) for x in m)


def match_response(spec, r):
    if not match_status(spec["status"], r.status):
        return "status %d" % r.status
    for name, m in spec.get("headers", {}).items():
        v = r.get(name)
        if isinstance(m, dict) and "no_token" in m and v is None:
            continue
        if not match_value(m, None if v is None else b(v)):
            return "header %s = %r" % (name, v)
    if "body" in spec and not match_value(spec["body"], bytes(r.body)):
        return "body %r" % (bytes(r.body[:60]),)
    return None


def match_outcome(o, p, closed, elapsed):
    if "raw" in o:
        if not match_value(o["raw"], bytes(p.raw)):
            return "raw bytes differ"
        if "close" in o and o["close"] is not None and o["close"] != closed:
            return "close=%s" % closed
        return None
    if p.err:
        return "malformed: " + p.err
    want = o.get("responses", [])
    if len(p.final) != len(want):
        return "%d responses, want %d" % (len(p.final), len(want))
    if p.state != "head" and not p.tunnel:
        return "response unfinished"
    for i, (w, r) in enumerate(zip(want, p.final)):
        why = match_response(w, r)
        if why:
            return "response %d: %s" % (i + 1, why)
    if o.get("close") is not None and o["close"] != closed:
        return "connection %s" % ("closed" if closed else "not closed")
    n = len(p.interim)
    if n < o.get("interim_min", 0) or n > o.get("interim_max", 99):
        return "%d interim responses" % n
    if "max_ms" in o and elapsed * 1000 > o["max_ms"]:
        return "took %d ms" % (elapsed * 1000)
    if "min_ms" in o and elapsed * 1000 < o["min_ms"]:
        return "took only %d ms" % (elapsed * 1000)
    return None


def summary(p, closed):
    parts = []
    for r in p.final[:6]:
        parts.append("%d%s" % (r.status, (":" + repr(bytes(r.body[:32]))) if r.body else ""))
    if len(p.final) > 6:
        parts.append("... %d in all" % len(p.final))
    if p.interim:
        parts.insert(0, "interim %s" % [r.status for r in p.interim])
    if p.err:
        parts.append("[%s]" % p.err)
    elif p.state != "head" and not p.tunnel:
        parts.append("[unfinished %s]" % p.state)
    return (", ".join(parts) or "nothing") + (", closed" if closed else ", open")


class Runner:
    def __init__(self, family, addr, spec, args):
        self.family, self.addr, self.args = family, addr, args
        self.named = spec.get("outcomes", {})
        self.quiet = args.quiet / 1000

    def outcomes(self, case):
        out = []
        for o in case["expect"]:
            if isinstance(o, str):
                v = self.named[o]
                out.extend(v if isinstance(v, list) else [v])
            else:
                out.append(o)
        return out

    def connect(self):
        s = socket.socket(self.family, socket.SOCK_STREAM)
        s.settimeout(5)
        s.connect(self.addr)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.setblocking(False)
        return s

    def alive(self):
        try:
            s = socket.create_connection(self.addr[:2], 5)
            s.settimeout(5)
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = b""
            while len(data) < 65536:
                d = s.recv(4096)
                if not d:
                    break
                data += d
            s.close()
            return data.startswith(b"HTTP/1.1 200") and data.endswith(b"ok")
        except OSError:
            return False

    def play(self, case):
        outs = self.outcomes(case)
        limit = case.get("limit_s", self.args.limit)
        quiet = case.get("quiet_ms", 0) / 1000 or self.quiet
        most = max([len(o.get("responses", [])) for o in outs] + [0])
        if any(isinstance(x, dict) and "rst" in x for x in case["send"]):
            most = 1 << 30                      # what arrives before the reset does not matter
        p = Parser(case.get("methods", []))
        start = time.monotonic()
        deadline = start + limit
        try:
            s = self.connect()
        except OSError as e:
            return False, "cannot connect: %s" % e
        closed, sendable, out = False, True, b""
        steps, writes, wait_until, cond = list(case["send"]), [], 0, None
        paused_until = 0
        last = start
        try:
            while True:
                now = time.monotonic()
                # --- advance the script
                while not out and now >= wait_until:
                    if cond is not None:
                        kind, n = cond
                        got = len(p.final) if kind == "await" else len(p.interim) + len(p.final)
                        if got < n and not closed and p.err is None and now < cond_deadline:
                            break
                        cond = None
                    if writes:
                        out, gap = writes.pop(0)
                        wait_until = now + gap if gap else 0
                        if not sendable:
                            out, writes = b"", []
                        break
                    if not steps:
                        break
                    st = steps.pop(0)
                    w = expand(st)
                    if w is not None:
                        if self.args.bytewise:
                            w = bytewise(w)
                        writes = w if sendable else []
                    elif "wait" in st:
                        wait_until = now + st["wait"] / 1000
                    elif "await" in st or "await_interim" in st:
                        cond = ("await", st["await"]) if "await" in st else ("await_interim", st["await_interim"])
                        cond_deadline = now + st.get("for", 3000) / 1000
                    elif "pause_read" in st:
                        paused_until = now + st["pause_read"] / 1000
                        wait_until = paused_until
                    elif "half_close" in st:
                        try:
                            s.shutdown(socket.SHUT_WR)
                        except OSError:
                            pass
                        sendable = False
                    elif "rst" in st:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        s.close()
                        s = None
                        ok = True
                        if case.get("alive"):
                            time.sleep(0.1)
                            ok = self.alive()
                        return ok, "" if ok else "server not answering afterwards"
                    else:
                        return False, "bad step %r" % st
                busy = bool(out or writes or steps or cond or now < wait_until)
                # --- finished?
                if closed:
                    break
                if len(p.final) > most and not any("raw" in o for o in outs):
                    break
                if p.err and not any("raw" in o for o in outs) and not busy:
                    break
                if not busy and now - last >= quiet:
                    if any(match_outcome(o, p, False, now - start) is None for o in outs):
                        break
                if now >= deadline:
                    break
                # --- wait for something
                t = deadline - now
                if now < wait_until:
                    t = min(t, wait_until - now)
                if cond is not None:
                    t = min(t, 0.05)
                elif not busy:
                    t = min(t, max(0.01, quiet - (now - last)))
                reading = now >= paused_until
                r, w, _ = select.select([s] if reading else [], [s] if (out and sendable) else [], [], max(0, min(t, 0.5)))
                if r:
                    try:
                        d = s.recv(262144)
                    except BlockingIOError:
                        d = None
                    except OSError:
                        d = b""
                    if d is not None:
                        last = time.monotonic()
                        if d:
                            p.feed(d)
                        else:
                            closed = True
                            p.close()
                            sendable, out, writes = False, b"", []
                if w and out:
                    try:
                        n = s.send(out[:262144])
                        out = out[n:]
                        last = time.monotonic()
                    except BlockingIOError:
                        pass
                    except OSError:
                        sendable, out, writes = False, b"", []
            elapsed = time.monotonic() - start
            reasons = []
            for o in outs:
                why = match_outcome(o, p, closed, elapsed)
                if why is None:
                    if case.get("alive") and not self.alive():
                        return False, "server not answering afterwards"
                    return True, summary(p, closed)
                reasons.append(why)
            return False, "got %s in %.1fs" % (summary(p, closed), elapsed)
        except (KeyError, ValueError) as e:
            return False, "bad case: %r" % e
        finally:
            if s is not None:
                try:
                    s.close()
                except OSError:
                    pass


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("host")
    ap.add_argument("port", type=int)
    here = os.path.dirname(os.path.abspath(__file__))
    ap.add_argument("--cases", default=os.path.join(here, "cases.json"))
    ap.add_argument("--only")
    ap.add_argument("--area")
    ap.add_argument("--level")
    ap.add_argument("--no-ext", action="store_true")
    ap.add_argument("--no-slow", action="store_true")
    ap.add_argument("--jobs", type=int, default=12)
    ap.add_argument("--limit", type=float, default=6.0)
    ap.add_argument("--quiet", type=int, default=300)
    ap.add_argument("--bytewise", action="store_true")
    ap.add_argument("--json")
    ap.add_argument("-v", action="store_true")
    args = ap.parse_args()

    infos = socket.getaddrinfo(args.host, args.port, type=socket.SOCK_STREAM)
    for fam, _, _, _, sa in infos:
        if not ipaddress.ip_address(sa[0].split("%")[0]).is_loopback:
            sys.exit("refused: %s is not a loopback address" % sa[0])
    family, _, _, _, addr = infos[0]

    with open(args.cases, encoding="utf-8") as f:
        spec = json.load(f)
    cases = spec["cases"]
    if args.only:
        rx = re.compile(args.only)
        cases = [c for c in cases if rx.search(c["id"])]
    if args.area:
        cases = [c for c in cases if c["area"] in args.area.split(",")]
    if args.level:
        cases = [c for c in cases if c["level"] in args.level.split(",")]
    if args.no_ext:
        cases = [c for c in cases if not c.get("ext")]
    if args.no_slow:
        cases = [c for c in cases if not c.get("slow")]

    run = Runner(family, addr, spec, args)
    if not run.alive():
        print("FAIL server: GET / does not answer 200 'ok' at %s:%d" % (args.host, args.port))
        print("0 passed, %d failed" % max(1, len(cases)))
        return 1
    # slow cases first, so that they overlap with the quick ones
    order = sorted(cases, key=lambda c: not c.get("slow", False))
    results = {}
    lock = threading.Lock()

    def one(c):
        t = time.monotonic()
        try:
            ok, why = run.play(c)
        except Exception as e:                      # a bug in the runner is a failure of the case
            ok, why = False, "runner error: %r" % e
        with lock:
            results[c["id"]] = (ok, why, time.monotonic() - t)

    with ThreadPoolExecutor(max(1, min(args.jobs, 64))) as ex:
        list(ex.map(one, order))

    passed = 0
    for c in cases:
        ok, why, dt = results[c["id"]]
        passed += ok
        if not ok:
            print("FAIL %s [%s %s] %s -- %s" % (c["id"], c["area"], c["level"], c["title"], why))
        elif args.v:
            print("ok   %s (%.1fs) %s" % (c["id"], dt, why))
    failed = len(cases) - passed
    if not run.alive():
        print("FAIL server: GET / no longer answers after the run")
        failed += 1
    if args.json:
        with open(args.json, "w") as f:
            json.dump({k: {"ok": v[0], "why": v[1], "s": round(v[2], 3)} for k, v in results.items()}, f, indent=1)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
