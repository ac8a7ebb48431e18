"""apps/chat in two headless Chromiums that talk to each other: over the socket and without it, through reloads and restarts, on two
workers and on two servers. Skipped where there is no Chromium."""
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import unittest

from devtools import CHROMIUM, Browser
from srv_process import PATIENCE, ROOT, Srv

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from services import Postgres, Redis, free_port  # noqa: E402  (its folder is found above)

SECRET = "a secret that stays the same over restarts"
TEXTS = "[...document.querySelectorAll('#log .text')].map(e => e.textContent)"
COUNT = "document.getElementById('count').textContent"

# From here on `left` tells whether there was a moment without a stream: it may be over before anybody looks.
LEFT = """window.left = false;
  new MutationObserver(() => { window.left ||= !document.body.dataset.stream; }).observe(document.body, { attributes: true });"""

# What is true of each page at each width.
LAYOUT = """(() => ({
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  wide: [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className),
  unlabelled: [...document.querySelectorAll("input:not([type=hidden]), textarea")].filter(e => !e.labels.length).length,
  styles: document.querySelectorAll("style, [style*=color]").length,
  small: [...document.querySelectorAll("input:not([type=hidden]), textarea")]
    .filter(e => parseFloat(getComputedStyle(e).fontSize) < 16).length,
  lang: document.documentElement.lang,
}))()"""
SOUND = {"overflow": 0, "wide": [], "unlabelled": 0, "styles": 0, "small": 0, "lang": "en"}

# The contrast of a text's colour with what lies behind it (WCAG 2).
CONTRAST = """(selector => {
  const element = document.querySelector(selector);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => { const [r, g, b] = numbers(text).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let behind = element;
  while (numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
})"""


def copy_app(case):
    folder = tempfile.mkdtemp(prefix="srv-chat-")
    case.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    app = os.path.join(folder, "chat")
    shutil.copytree(os.path.join(ROOT, "apps", "chat"), app, ignore=shutil.ignore_patterns("*.db*"))
    return app


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class ChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browsers = Browser(), Browser()

    @classmethod
    def tearDownClass(cls):
        for browser in cls.browsers:
            browser.close()

    def setUp(self):
        self.app = copy_app(self)

    def start(self, *flags, env=None, **more):
        srv = Srv(self.app, *(flags or ("--no-watch",)), env={"SRV_SECRET": SECRET, **(env or {})}, **more)
        self.addCleanup(srv.kill)
        return srv

    def come_in(self, srv, number, name, room="lobby", **view):
        """A page of browser NUMBER in which NAME is in ROOM."""
        page = self.browsers[number].open(srv.url + "/rooms/" + room, **view)
        self.addCleanup(page.close)
        page.fill("#name", name)
        page.press("Enter")
        page.wait("document.body.className === 'room' && document.readyState === 'complete'")
        return page

    def both(self, srv, other=None):
        """Ann in one browser, Ben in the other, both connected."""
        ann, ben = self.come_in(srv, 0, "Ann", width=390), self.come_in(other or srv, 1, "Ben")
        for page in (ann, ben):
            self.connected(page)
        return ann, ben

    def connected(self, page, way="socket"):
        page.wait("document.body.dataset.stream === %s" % json.dumps(way))

    def say(self, page, text):
        page.fill("#text", text)
        page.press("Enter")

    def shows(self, page, texts):
        page.wait("(list => list.length === %d && list)(%s)" % (len(texts), TEXTS), "shows %s" % texts)
        self.assertEqual(page.run(TEXTS), texts)
        self.assertEqual(page.run("[...document.querySelectorAll('#log li')].map(e => Number(e.dataset.number))"),
                         list(range(1, len(texts) + 1)))

    def is_quiet(self, *pages, but="WebSocket"):
        """The console has said nothing, but for connections that could not be made."""
        for page in pages:
            self.assertEqual([text for text in page.said if but not in text and "net::ERR" not in text], [])

    def talk(self, ann, ben):
        texts = []
        for i in range(5):
            for page, name in ((ann, "Ann"), (ben, "Ben")):
                texts.append("%s says %d" % (name, i))
                self.say(page, texts[-1])
                for reader in (ann, ben):
                    self.shows(reader, texts)
        self.assertEqual(ann.run("document.querySelectorAll('#log .own').length"), 5)
        self.assertEqual(ann.run("document.querySelectorAll('#outbox li').length"), 0)

    def test_two_browsers_talk_over_the_socket_on_two_workers(self):
        srv = self.start(workers=2)
        ann, ben = self.both(srv)
        self.talk(ann, ben)
        self.is_quiet(ann, ben, but="-")

    def test_two_browsers_talk_without_a_socket(self):
        srv = self.start(workers=2, env={"SOCKETS": "false"})
        ann, ben = self.come_in(srv, 0, "Ann"), self.come_in(srv, 1, "Ben")
        for page in (ann, ben):
            self.connected(page, "events")
        self.talk(ann, ben)
        self.is_quiet(ann, ben)

    def test_a_room_shows_who_is_in_it(self):
        srv = self.start(workers=2, env={"ALIVE": "3s"})
        ann, ben = self.both(srv)
        for page in (ann, ben):
            page.wait(COUNT + " === '2'")
            self.assertEqual(page.run("[...document.querySelectorAll('#people li')].map(e => e.textContent)"), ["Ann", "Ben"])
        ben.go(srv.url + "/")
        ann.wait(COUNT + " === '1'")
        ben.wait("document.querySelector('.count')?.textContent === '1 here' || (location.reload(), false)")

    def test_what_is_typed_is_text_and_stays_it(self):
        srv = self.start()
        ann, ben = self.both(srv)
        texts = ["<script>window.hurt = 1</script>", "<img src=x onerror='window.hurt = 1'>", "\"><svg onload=window.hurt=1>",
                 "javascript:window.hurt=1", "{{ 7 * 7 }} ${7 * 7}", "two\nlines", "\u202egnp.exe", "a" * 1000]
        for i, text in enumerate(texts):
            if "\n" in text:
                ann.fill("#text", text.split("\n")[0])
                ann.press("Enter", shift=True)
                text = text.split("\n")[1]
            self.say(ann, text)
            self.shows(ben, texts[:i + 1])
        self.say(ann, "see https://example.com/a?b=<c>&d. And http://x.example!")
        links = "[...document.querySelectorAll('#log a')].map(e => [e.href, e.rel.includes('noopener')])"
        ben.wait("document.querySelectorAll('#log a').length === 2")
        self.assertEqual(ben.run(links), [["https://example.com/a?b=", True], ["http://x.example/", True]])
        for page in (ann, ben):
            page.go(srv.url + "/rooms/lobby")
            self.assertEqual(page.run(TEXTS)[:len(texts)], texts)
            self.assertIsNone(page.run("window.hurt"))
            self.assertEqual(page.run("document.querySelectorAll('#log script, #log img, #log svg').length"), 0)
        self.is_quiet(ann, ben, but="-")

    def test_pages_fit_phone_and_desk_light_and_dark(self):
        srv = self.start()
        door = self.browsers[0].open(srv.url + "/")
        self.addCleanup(door.close)
        self.fill_history(["word " * 40, "unbroken" * 40] * 20)
        ann = self.come_in(srv, 0, "W" * 24)
        self.say(ann, "mine")
        ann.wait("Boolean(document.querySelector('.own'))")
        rooms = self.come_in(srv, 1, "Ben")
        rooms.go(srv.url + "/")
        for page, text in ((door, ".card > p"), (ann, ".own .text"), (rooms, ".count")):
            for width in (360, 390, 1280):
                for dark in (False, True):
                    page.view(width, 740, dark)
                    self.assertEqual(page.run(LAYOUT), SOUND, "at %d" % width)
                    for selector in (text, "button", ".fault, .author"):
                        if page.run("Boolean(document.querySelector(%s))" % json.dumps(selector)):
                            self.assertGreater(page.run("%s(%s)" % (CONTRAST, json.dumps(selector))), 4.5, selector)
        box = "document.getElementById('text').getBoundingClientRect().bottom <= innerHeight"
        self.assertTrue(ann.run(box))

    def test_keyboard_and_screen_reader(self):
        srv = self.start()
        ann = self.come_in(srv, 0, "Ann", width=390)
        self.connected(ann)
        log = "document.getElementById('log').getAttribute"
        self.assertEqual([ann.run("%s('%s')" % (log, name)) for name in ("role", "aria-live")], ["log", "polite"])
        seen = set()
        ann.run("document.activeElement.blur()")
        for _ in range(12):
            ann.press("Tab")
            seen.add(ann.run("document.activeElement.id || document.activeElement.className || document.activeElement.tagName"))
        self.assertTrue({"back", "SUMMARY", "scroll", "text", "BUTTON"} <= seen, seen)
        ann.run("document.querySelector('summary').focus()")
        ann.press("Enter")
        ann.wait("document.getElementById('here').open")
        ann.press("Escape")
        ann.wait("!document.getElementById('here').open")

    def test_history_is_loaded_back_in_pages_and_stays_where_it_was(self):
        srv = self.start()
        ann = self.come_in(srv, 0, "Ann")
        self.fill_history(["text %d" % i for i in range(1, 121)])
        ben = self.come_in(srv, 1, "Ben", width=390)
        self.connected(ben)
        self.assertEqual(ben.run(TEXTS), ["text %d" % i for i in range(71, 121)])
        at = "document.querySelector('[data-number=\"71\"]').getBoundingClientRect().top"
        ben.run("document.getElementById('scroll').scrollTop = 0")
        before = ben.run(at)
        ben.run("document.getElementById('older').click()")
        ben.wait(TEXTS + ".length === 100")
        self.assertAlmostEqual(ben.run(at), before, delta=3)
        ben.run("document.getElementById('older').click()")
        self.shows(ben, ["text %d" % i for i in range(1, 121)])
        self.assertTrue(ben.run("document.getElementById('older').hidden"))
        self.say(ann, "new")
        ben.wait("!document.getElementById('down').hidden")  # who reads what is old is told, and not moved
        self.assertTrue(ben.run("document.title").startswith("(1) "))
        ben.run("document.getElementById('down').click()")
        ben.wait("document.getElementById('down').hidden")

    def test_a_reload_of_the_app_loses_nothing(self):
        srv = self.start("--watch", workers=2)
        ann, ben = self.both(srv)
        texts = []
        for turn in range(3):
            for i in range(4):
                texts.append("turn %d, %d" % (turn, i))
                self.say(ann, texts[-1])
            ben.run(LEFT)
            with open(os.path.join(self.app, "app.lua"), "a", encoding="utf-8") as out:
                out.write("-- edited\n")
            ben.wait("window.left", "told to come back")
            texts.append("turn %d, while Ben was away" % turn)
            self.say(ann, texts[-1])
            for page in (ann, ben):
                self.shows(page, texts)
                self.connected(page)
        ann.wait(COUNT + " === '2'")

    def restart(self, way, **env):
        port = free_port()
        srv = self.start(workers=2, port=port, env=env)
        ann, ben = self.come_in(srv, 0, "Ann"), self.come_in(srv, 1, "Ben")
        for page in (ann, ben):
            self.connected(page, way)
        self.say(ann, "before")
        self.shows(ben, ["before"])
        self.assertEqual(srv.stop(), 0)
        ann.wait("!document.body.dataset.stream")
        self.say(ann, "while it was away")
        ann.wait("document.querySelectorAll('#outbox .waits').length === 1")
        self.start(workers=2, port=port, env=env)
        for page in (ann, ben):
            self.shows(page, ["before", "while it was away"])
            self.connected(page, way)
        self.assertEqual(ann.run("document.querySelectorAll('#outbox li').length"), 0)
        self.say(ben, "after")
        self.shows(ann, ["before", "while it was away", "after"])

    def test_a_restart_of_the_server_loses_nothing(self):
        self.restart("socket")

    def test_a_restart_of_the_server_loses_nothing_without_a_socket(self):
        self.restart("events", SOCKETS="false")

    def sign_out_elsewhere(self, way, **env):
        srv = self.start(env=env)
        ann = self.come_in(srv, 0, "Ann")
        self.connected(ann, way)
        ann.run("void fetch('/sign-out', { method: 'POST' })")
        ann.wait("location.pathname === '/' && Boolean(document.getElementById('name'))")

    def test_who_signs_out_elsewhere_is_led_to_the_door(self):
        self.sign_out_elsewhere("socket")

    def test_who_signs_out_elsewhere_is_led_to_the_door_without_a_socket(self):
        self.sign_out_elsewhere("events", SOCKETS="false")

    def too_much(self, way, **env):
        srv = self.start(env=env)
        ann = self.come_in(srv, 0, "Ann")
        self.connected(ann, way)
        for i in range(24):
            self.say(ann, "text %d" % i)
        ann.wait("document.getElementById('state').textContent.startsWith('Not so fast')")
        self.shows(ann, ["text %d" % i for i in range(24)])  # after a pause, in the order in which they were typed
        self.assertEqual(ann.run("document.querySelectorAll('#outbox li').length"), 0)

    def test_too_much_at_once_is_said_a_little_later(self):
        self.too_much("socket")

    def test_too_much_at_once_is_said_a_little_later_without_a_socket(self):
        self.too_much("events", SOCKETS="false")

    def on_two_servers(self, alive):
        """(the second server, Ann's page on the first, Ben's on the second)"""
        redis, postgres = self.enterContext(Redis()), self.enterContext(Postgres())
        env = {"REDIS_URL": redis.url, "DATABASE_URL": postgres.url, "ALIVE": alive}
        one, two = self.start(env=env), self.start(workers=2, env=env)
        ann, ben = self.both(one, two)
        for page in (ann, ben):
            page.wait(COUNT + " === '2'")
        self.talk(ann, ben)
        return two, ann, ben

    def test_two_servers_share_rooms_and_one_that_dies_takes_its_people_along(self):
        two, ann, ben = self.on_two_servers("3s")
        two.kill()
        ann.wait(COUNT + " === '1'")
        self.say(ann, "alone")
        self.shows(ann, ben.run(TEXTS) + ["alone"])

    def test_a_server_that_is_stopped_says_that_its_people_have_gone(self):
        two, ann, _ = self.on_two_servers("10m")
        self.assertEqual(two.stop(), 0)
        ann.wait(COUNT + " === '1'")

    def fill_history(self, texts):
        """What somebody has said long ago."""
        with sqlite3.connect(os.path.join(self.app, "chat.db"), timeout=PATIENCE) as db:
            for i, text in enumerate(texts, 1):
                db.execute("insert into messages values ('lobby', ?, 'x', 'Old', ?, ?, '2020-01-01T00:00:00Z')", (i, text, "nonce-%d" % i))
            db.execute("update rooms set last = ? where slug = 'lobby'", (len(texts),))
        db.close()


if __name__ == "__main__":
    unittest.main()
