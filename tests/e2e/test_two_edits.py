"""Two edits within one second: both versions have the same Last-Modified, so a 304 to it proves nothing.
An expired response is validated by a date of another second than its Date, one that is in doubt by a
strong validator only (RFC 9110 8.8.2.2); else the whole is requested."""

import calendar
import email.utils
import http.client
import time

from client import field, get
from harness import Case, eventually
from origin import Origin, response


def http_date(seconds):
    return email.utils.formatdate(seconds, usegmt=True)


class TwoEdits(Case):
    """The origin compares dates as origins do: 304, if nothing is newer than the client's date."""

    def start_with(self, apart=0, etag=None, seconds=600, same_etag=True, **more):
        self.version = 1
        self.seconds = seconds
        self.changed = int(time.time()) - apart
        self.proxy = self.encore(admission={"policy": "always"}, **more)

        def page(exchange):
            asked = dict(exchange.request.fields)
            tag = etag and (etag if same_etag else etag.replace("tag", f"tag{self.version}"))
            named = {"Last_Modified": http_date(self.changed), "ETag": tag,
                     "Date": http_date(self.changed + apart),
                     "Cache_Control": f"max-age={self.seconds}"}
            since = asked.get("if-modified-since")
            if "if-none-match" in asked:
                unchanged = tag and asked["if-none-match"].removeprefix("W/") == tag.removeprefix("W/")
            else:
                unchanged = since and calendar.timegm(email.utils.parsedate(since)) >= self.changed
            if unchanged:
                return response(b"", "304 Not Modified", Content_Length=None,
                                **{**named, "Date": http_date(time.time())})
            answer = response(f"version {self.version}", **named)
            return answer[:answer.index(b"\r\n\r\n") + 4] if exchange.request.method == "HEAD" \
                else answer
        self.origin = Origin(self, {"/page": page})
        self.url = self.origin.url("/page")
        self.assertEqual(b"version 1", self.get().body)

    def get(self, *fields, **options):
        return get(self.proxy.port, self.url, fields=list(fields), **options)

    def edit(self):
        """Another version of the same second."""
        self.version += 1

    def expire(self):
        eventually(lambda: self.get(("Cache-Control", "only-if-cached")).status == 504, "it expires")

    def purge_softly(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request("POST", "/purge?soft=true&url=" + self.url)
        self.assertEqual(200, connection.getresponse().status)
        connection.close()

    def sent(self):
        """The conditions that the origin was asked with last."""
        fields = dict(self.origin.last("/page").fields)
        return {name for name in ("if-none-match", "if-modified-since") if name in fields}


class Expired(TwoEdits):
    def test_a_date_of_the_same_second_is_not_asked_about(self):
        self.start_with(seconds=1)
        self.edit()
        self.seconds = 600
        self.expire()
        self.assertEqual(b"version 2", self.get().body)
        self.assertEqual(set(), self.sent())
        self.assertIn("; hit", field(self.get(), "Cache-Status"))

    def test_one_of_the_second_before_is(self):
        self.start_with(apart=1, seconds=1)
        self.expire()
        self.assertEqual(b"version 1", self.get().body)
        self.assertEqual({"if-modified-since"}, self.sent())

    def test_an_entity_tag_goes_without_such_a_date(self):
        self.start_with(etag='"tag"', same_etag=False, seconds=1)
        self.expire()
        self.assertEqual(b"version 1", self.get().body)
        self.assertEqual({"if-none-match"}, self.sent())
        self.edit()
        self.expire()
        self.assertEqual(b"version 2", self.get().body)

    def test_a_head_does_not_freshen_by_it(self):
        self.start_with(seconds=1)
        self.edit()
        self.seconds = 600
        self.expire()
        self.assertEqual(200, self.get(method="HEAD").status)
        self.assertEqual(b"version 2", self.get().body)


class Reloaded(TwoEdits):
    def test_a_reload_heals(self):
        for apart in (0, 1, 59):
            for etag in (None, 'W/"tag"'):
                with self.subTest(apart=apart, etag=etag):
                    self.start_with(apart=apart, etag=etag)
                    self.edit()
                    self.assertEqual(b"version 2", self.get(("Cache-Control", "no-cache")).body)
                    self.assertEqual(b"version 2", self.get().body)

    def test_what_is_sure_is_validated(self):
        for options, conditions in (({"apart": 60}, {"if-modified-since"}),
                                    ({"etag": '"tag"'}, {"if-none-match"})):
            with self.subTest(options):
                self.start_with(**options)
                self.assertEqual(b"version 1", self.get(("Cache-Control", "no-cache")).body)
                self.assertEqual(conditions, self.sent())


class Purged(TwoEdits):
    def test_a_soft_purge_is_a_doubt(self):
        for apart in (0, 1, 59):
            for etag in (None, 'W/"tag"'):
                with self.subTest(apart=apart, etag=etag):
                    self.start_with(apart=apart, etag=etag)
                    self.edit()
                    self.purge_softly()
                    self.assertEqual(b"version 2", self.get().body)
                    self.assertEqual(set(), self.sent())

    def test_also_for_what_is_on_disk_after_a_restart(self):
        self.start_with(disk=[{"path": str(self.directory / "disk"), "size": "128MiB"}])
        self.edit()
        self.purge_softly()
        self.proxy.stop()
        self.proxy.start()
        self.assertEqual(b"version 2", self.get().body)

    def test_also_in_the_background(self):
        self.start_with(rule=[{"name": "swr", "stale_while_revalidate": "600s"}])
        self.edit()
        self.purge_softly()
        self.assertEqual(b"version 1", self.get().body)
        eventually(lambda: self.origin.count("/page") == 2, "it is validated")
        self.assertEqual(set(), self.sent())
        eventually(lambda: self.get().body == b"version 2", "it is replaced")

    def test_a_sure_date_stays_one(self):
        self.start_with(apart=60)
        self.purge_softly()
        self.assertEqual(b"version 1", self.get().body)
        self.assertEqual({"if-modified-since"}, self.sent())
        self.purge_softly()
        self.assertEqual(b"version 1", self.get().body)
        self.assertEqual({"if-modified-since"}, self.sent())

    def test_a_304_makes_no_date_sure(self):
        # Confirmed by a weak tag, its Date is a later one: that of the body has not changed.
        self.start_with(etag='W/"tag"', seconds=1)
        self.expire()
        self.seconds = 600
        self.assertEqual(b"version 1", self.get().body)
        self.edit()
        self.purge_softly()
        self.assertEqual(b"version 2", self.get().body)


class Clients(TwoEdits):
    def test_a_client_may_have_the_other_version(self):
        self.start_with()
        self.edit()
        self.assertEqual(b"version 2", self.get(("Cache-Control", "no-cache")).body)
        answer = self.get(("If-Modified-Since", http_date(self.changed)))
        self.assertEqual((200, b"version 2"), (answer.status, answer.body))
        self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_a_part_of_one_is_not_joined_to_the_other(self):
        self.start_with(etag='W/"tag"', seconds=1)
        self.expire()
        self.seconds = 600
        self.get()
        self.assertEqual({"if-none-match"}, self.sent())
        answer = self.get(("Range", "bytes=4-"), ("If-Range", http_date(self.changed)))
        self.assertEqual((200, b"version 1"), (answer.status, answer.body))

    def test_of_another_second_it_is(self):
        self.start_with(apart=1)
        answer = self.get(("If-Modified-Since", http_date(self.changed)))
        self.assertEqual(304, answer.status)
        answer = self.get(("Range", "bytes=4-"), ("If-Range", http_date(self.changed)))
        self.assertEqual((206, b"ion 1"), (answer.status, answer.body))
