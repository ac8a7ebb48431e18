"""apps/news follows a feed of the web: takes it in, asks only for changes, serves on while it is down."""
import json
import os
import shutil
import tempfile
import unittest

from origin import Origin, ask
from srv_process import ROOT, Srv, wait_until

ITEM = """<item><title>%s</title><link>https://news.example/%s</link>
  <pubDate>Tue, 22 Jun 2021 15:54 GMT</pubDate></item>"""


def rss(*names):
    items = "".join(ITEM % (name, name) for name in names)
    return ("<rss version='2.0'><channel><title>Wire</title>%s</channel></rss>" % items).encode()


class Feed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="srv-news-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.app = os.path.join(self.folder, "news")
        shutil.copytree(os.path.join(ROOT, "apps", "news"), self.app, ignore=shutil.ignore_patterns("*.db*"))

    def titles(self, srv):
        status, _, body = ask(srv.port, "GET", "/news?tag=wire")
        self.assertEqual(status, 200)
        return sorted(article["title"] for article in json.loads(body)["articles"])

    def test_a_feed_is_taken_in_and_only_changes_are_asked_for(self):
        told = {"body": rss("one"), "etag": '"1"', "down": False}

        def answer(h, _):
            if told["down"]:
                h.give(500, b"down")
            elif h.headers["If-None-Match"] == told["etag"]:
                h.give(304, ETag=told["etag"])
            else:
                h.give(200, told["body"], ETag=told["etag"], Content_Type="application/rss+xml")

        with Origin(answer) as origin, Srv(self.app, workers=2, env={
                "FEED_URL": origin.url + "/feed", "FEED_EVERY": "1s"}) as srv:
            wait_until(lambda: self.titles(srv) == ["one"], "the feed is taken in")
            wait_until(lambda: any(seen[2]["If-None-Match"] == '"1"' for seen in origin.seen), "changes are asked for")
            told["down"] = True
            asked = len(origin.seen)
            wait_until(lambda: len(origin.seen) > asked, "the feed is asked while it is down")
            srv.wait_line("feed not refreshed")
            self.assertEqual(self.titles(srv), ["one"])
            told.update(down=False, body=rss("one", "two"), etag='"2"')
            wait_until(lambda: self.titles(srv) == ["one", "two"], "what is new is taken in")
