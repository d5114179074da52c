"""Conditional requests and validation (RFC 9110 13, RFC 9111 4.3)."""

from caching import Table, cases, date, hit, miss, valid

row = Table()
FRESH = {"Cache_Control": "max-age=600"}
OLD = "Mon, 01 Jan 2024 00:00:00 GMT"
OLDER = "Sun, 01 Jan 2023 00:00:00 GMT"
NEWER = "Wed, 01 Jan 2025 00:00:00 GMT"


def etag(name, stored, sent, status, clause="RFC 9110 13.1.2"):
    row(clause, f"If-None-Match: {name}", miss(ETag=stored, **FRESH),
        hit(req={"If-None-Match": sent}, want_status=status))


etag("the same", '"a"', '"a"', 304)
etag("another", '"a"', '"b"', 200)
etag("a weak one for a strong one", '"a"', 'W/"a"', 304)
etag("a strong one for a weak one", 'W/"a"', '"a"', 304)
etag("weak ones", 'W/"a"', 'W/"a"', 304)
etag("a list", '"a"', '"x", "a"', 304)
etag("a list without spaces", '"a"', '"x","a","y"', 304)
etag("a list that lacks it", '"a"', '"x", "y"', 200)
etag("two lines", '"a"', ['"x"', '"a"'], 304)
etag("a star", '"a"', "*", 304)
etag("a comma within the tag", '"a,b"', '"x", "a,b"', 304)
etag("a part of a tag with a comma", '"a,b"', '"b"', 200)
etag("a backslash within", '"a\\"', '"a\\"', 304)
etag("without quotes", "a", "a", 304)
etag("lower-case w/ is no weak tag", 'W/"a"', 'w/"a"', 200)
etag("no stored tag", None, '"a"', 200)
row("RFC 9110 15.4.5", "a 304 carries what belongs to it and no more",
    miss(ETag='"a"', Expires=date(600), Vary="Foo", Content_Location="/x", Content_Type="text/x",
         Set_Cookie="a=1", Test="1", **FRESH),
    hit(req={"If-None-Match": '"a"'}, want_status=304,
        want={"ETag": '"a"', "Cache-Control": "max-age=600", "Vary": "Foo",
              "Content-Location": "/x", "Expires": lambda text: text, "Date": lambda text: text,
              "Age": lambda text: text},
        lacks=["Content-Type", "Set-Cookie", "Test", "Content-Length"]))


def since(name, stored, sent, status, **more):
    row("RFC 9110 13.1.3", f"If-Modified-Since: {name}",
        miss(**{"Last_Modified": stored, **FRESH, **more}),
        hit(req={"If-Modified-Since": sent}, want_status=status))


since("the same", OLD, OLD, 304)
since("later", OLD, NEWER, 304)
since("earlier", OLD, OLDER, 200)
since("as RFC 850", OLD, "Monday, 01-Jan-24 00:00:00 GMT", 304)
since("no date", OLD, "yesterday", 200)
since("without Last-Modified, Date stands for it", None, date(60), 304)
since("without Last-Modified, before Date", None, OLD, 200)
row("RFC 9110 13.2.2", "If-None-Match comes before If-Modified-Since",
    miss(ETag='"a"', Last_Modified=OLD, **FRESH),
    hit(req={"If-None-Match": '"b"', "If-Modified-Since": NEWER}),
    hit(req={"If-None-Match": '"a"', "If-Modified-Since": OLDER}, want_status=304))
row("RFC 9110 13.1.3", "If-Modified-Since for a HEAD", miss(Last_Modified=OLD, **FRESH),
    hit(method="HEAD", req={"If-Modified-Since": OLD}, want_status=304))
row("RFC 9110 13.2.1", "a condition to a stored 404 is ignored",
    miss(status=404, ETag='"a"', **FRESH),
    hit(req={"If-None-Match": '"a"'}, want_status=404))
for name, sent, status in [("matches", '"a"', 200), ("does not match", '"b"', 412)]:
    row("RFC 9110 13.1.1", f"If-Match that {name} is the origin's to answer",
        miss(ETag='"a"', **FRESH),
        miss(req={"If-Match": sent}, status=status, upstream={"If-Match": sent}, ETag='"a"'))
row("RFC 9110 13.1.4", "If-Unmodified-Since is the origin's to answer",
    miss(Last_Modified=OLD, **FRESH),
    miss(req={"If-Unmodified-Since": OLDER}, status=412,
         upstream={"If-Unmodified-Since": OLDER}))
row("RFC 9110 13.1.1", "a 412 leaves what is stored",
    miss(ETag='"a"', **FRESH), miss(req={"If-Match": '"b"'}, status=412),
    hit(sees="body of step 1\n"))

# A miss with a condition: the whole is fetched, for it will be stored.
row("Encore", "a condition on a miss fetches the whole, and is answered with 304",
    miss(req={"If-None-Match": '"a"'}, ETag='"a"', want_status=304, sees=b"",
         upstream={"any": 1, "If-None-Match": None}, **FRESH),
    hit(sees="body of step 1\n"))

# Validation.
row("RFC 9111 4.3.1", "with ETag", miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(upstream={"If-None-Match": '"a"', "If-Modified-Since": None}))
row("RFC 9111 4.3.1", "with Last-Modified", miss(Last_Modified=OLD, Cache_Control="max-age=0"),
    valid(upstream={"If-None-Match": None, "If-Modified-Since": OLD}))
row("RFC 9111 4.3.1", "with both", miss(ETag='"a"', Last_Modified=OLD, Cache_Control="max-age=0"),
    valid(upstream={"If-None-Match": '"a"', "If-Modified-Since": OLD}))
row("RFC 9111 4.3.1", "with a weak tag", miss(ETag='W/"a"', Cache_Control="max-age=0"),
    valid(upstream={"If-None-Match": 'W/"a"'}, ETag='W/"a"'))
row("RFC 9111 4.3.1", "with what has no quotes", miss(ETag="a", Cache_Control="max-age=0"),
    valid(upstream={"If-None-Match": "a"}))
row("RFC 9111 4.3.3", "a 200 replaces", miss(ETag='"a"', Cache_Control="max-age=0"),
    miss(upstream={"any": 1}, ETag='"b"', **FRESH), hit(want={"ETag": '"b"'}))
row("RFC 9111 4.3.3", "a 404 replaces too", miss(ETag='"a"', Cache_Control="max-age=0"),
    miss(status=404, upstream={"any": 1}, **FRESH), hit(want_status=404))
row("RFC 9111 4.3.3", "an answer that may not be stored ends what was",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    miss(upstream={"any": 1}, Cache_Control="no-store"), miss(upstream={"any": 1}))
row("RFC 9111 4.3.4", "a 304 makes fresh", miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', **FRESH), hit())
row("RFC 9111 4.3.4", "a 304 without a validator makes fresh",
    miss(ETag='"a"', Cache_Control="max-age=0"), valid(**FRESH), hit())
row("RFC 9111 4.3.4", "a client's condition against what was validated",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', **FRESH), hit(req={"If-None-Match": '"a"'}, want_status=304))
row("RFC 9111 4.3.4", "a 304 without matching validator does not confirm",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    miss(raw=lambda x: (b"HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n"
                        if any(n == "if-none-match" for n, _ in x.request.fields) else
                        b"HTTP/1.1 200 OK\r\nETag: \"b\"\r\nCache-Control: max-age=600\r\n"
                        b"Content-Length: 3\r\n\r\nnew"), sees="new", upstream={"any": 1}),
    hit(sees="new"))
row("RFC 9111 4.3.4", "a 304 with another tag and the same strong date confirms, and updates the tag",
    miss(ETag='"a"', Last_Modified=OLD, Cache_Control="max-age=0"),
    valid(ETag='"b"', Last_Modified=OLD, want={"ETag": '"b"'}, **FRESH), hit(want={"ETag": '"b"'}))
UPDATED = {"Test": "2", "Cache_Control": "max-age=600", "Expires": date(600), "X-New": "3",
           "Content-Foo": "4", "Content_Type": "text/y",
           "Content-MD5": "x", "Content_Location": "/y", "X-Frame-Options": "deny",
           "Clear-Site-Data": "cookies", "Content-Security-Policy": "default-src 'none'"}
for name, new in UPDATED.items():
    shown = name.replace("_", "-")
    row("RFC 9111 3.2", f"a 304 updates {shown}",
        miss(**{"ETag": '"a"', "Cache_Control": "max-age=0", name.replace("-", "_"): "max-age=0"
                if name == "Cache_Control" else "1" if name != "Expires" else date(-1)}),
        valid(**{"ETag": '"a"', **FRESH, name.replace("-", "_"): new}),
        hit(want={shown: lambda text, new=new: text == new if isinstance(new, str) else text}))
for name, old, new in [("Content-Encoding", "x", "y"), ("Content-Range", "bytes 0-1/9", "x")]:
    row("RFC 9111 3.2", f"a 304 does not update {name}",
        miss(**{"ETag": '"a"', "Cache_Control": "max-age=0", name.replace("-", "_"): old}),
        valid(**{"ETag": '"a"', **FRESH, name.replace("-", "_"): new}), hit(want={name: old}))
row("RFC 9111 3.2", "a 304 does not update Content-Length",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', Content_Length="3", **FRESH), hit(want={"Content-Length": "15"}))
row("RFC 9111 3.2", "fields that a 304 does not name stay",
    miss(ETag='"a"', Cache_Control="max-age=0", Test="1"), valid(ETag='"a"', **FRESH),
    hit(want={"Test": "1"}))
row("RFC 9111 3.2", "Set-Cookie of a 304 goes to the one who asked, and is not stored",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', Set_Cookie="b=2", want={"Set-Cookie": "b=2"}, **FRESH),
    hit(lacks=["Set-Cookie"]))
row("RFC 9111 3.2", "Set-Cookie of a 304 does not replace what is stored",
    miss(ETag='"a"', Cache_Control="max-age=0, public", Set_Cookie="a=1"),
    valid(ETag='"a"', Set_Cookie="b=2", Cache_Control="max-age=600, public"),
    hit(want={"Set-Cookie": "a=1"}))
row("RFC 9111 4.3.4", "a 304 that says private ends the reuse",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', Cache_Control="private, max-age=600"), miss(upstream={"any": 1}))
row("RFC 9111 4.3.4", "a 304 that varies by everything ends the reuse",
    miss(ETag='"a"', Cache_Control="max-age=0"), valid(ETag='"a"', Vary="*", **FRESH),
    miss(upstream={"any": 1}))
row("RFC 9111 4.3.4", "a 304 that varies by what cannot be read ends the reuse",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', Vary="Cookie, Accept Encoding", **FRESH), miss(upstream={"any": 1}))
row("RFC 9111 4.3.4", "a 304 that varies by more makes it that request's variant",
    miss(ETag='"a"', Cache_Control="max-age=0", req={"X-Lang": "de"}),
    valid(ETag='"a"', Vary="X-Lang", req={"X-Lang": "de"}, **FRESH),
    hit(sees="body of step 1\n", req={"X-Lang": "de"}),
    miss(Vary="X-Lang", req={"X-Lang": "en"}, **FRESH),
    hit(sees="body of step 1\n", req={"X-Lang": "de"}))
row("RFC 9111 3.5", "a 304 to a request with Authorization freshens nothing for others",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', X_User="ann", req={"Authorization": "Basic x"}, want={"X-User": "ann"},
          **FRESH),
    valid(ETag='"a"', lacks=["X-User"], **FRESH), hit(lacks=["X-User"]))
row("RFC 9111 3.5", "a 304 to a request with Authorization freshens where it says public",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    valid(ETag='"a"', req={"Authorization": "Basic x"}, Cache_Control="public, max-age=600"), hit())
row("RFC 9111 4.3.5", "a HEAD that tells nothing of the content freshens nothing",
    miss(Cache_Control="max-age=1", ETag='"a"'),
    miss(method="HEAD", wait=2, upstream={"any": 1}, Content_Length=None, X_New="1", **FRESH),
    valid(ETag='"a"', lacks=["X-New"], **FRESH))
row("RFC 9111 4.3.5", "a HEAD's 200 of the same length freshens",
    miss(Cache_Control="max-age=1", Last_Modified=OLD),
    miss(method="HEAD", wait=2, upstream={"any": 1}, body="15 bytes long.\n", **FRESH),
    hit(sees="body of step 1\n"))
row("RFC 9111 4.3.5", "a HEAD that says private ends the reuse",
    miss(Cache_Control="max-age=1", ETag='"a"'),
    miss(method="HEAD", wait=2, upstream={"any": 1}, ETag='"a"', Cache_Control="private"),
    miss(upstream={"any": 1}, **FRESH))
row("RFC 9111 4.3.5", "Set-Cookie of a HEAD is not stored",
    miss(Cache_Control="max-age=1", ETag='"a"'),
    miss(method="HEAD", wait=2, upstream={"any": 1}, ETag='"a"', Set_Cookie="a=1", **FRESH),
    hit(sees="body of step 1\n", lacks=["Set-Cookie"]))
row("RFC 9111 4.3.4", "a 304 that says no-store ends the reuse",
    miss(ETag='"a"', Cache_Control="max-age=0"), valid(ETag='"a"', Cache_Control="no-store"),
    miss(upstream={"any": 1}))

# HEAD (4.3.5).
row("RFC 9111 4.3.5", "a HEAD for what is stale goes to the origin as a HEAD",
    miss(Cache_Control="max-age=1", Last_Modified=OLD),
    miss(method="HEAD", wait=2, upstream={"method": "HEAD", "any": 1}, Last_Modified=OLD,
         Cache_Control="max-age=600"))
row("RFC 9111 4.3.5", "a HEAD's 200 that matches updates and freshens",
    miss(Cache_Control="max-age=1", ETag='"a"', Test="1", Keep="1"),
    miss(method="HEAD", wait=2, upstream={"any": 1}, ETag='"a"', Test="2", **FRESH),
    hit(sees="body of step 1\n", want={"Test": "2", "Keep": "1"}))
row("RFC 9111 4.3.5", "a HEAD's 200 with another tag makes stale",
    miss(ETag='"a"', **FRESH),
    miss(method="HEAD", req={"Cache-Control": "no-cache"}, upstream={"any": 1}, ETag='"b"', **FRESH),
    miss(upstream={"any": 1}, ETag='"b"', **FRESH))
row("RFC 9111 4.3.5", "a HEAD's 200 with another length makes stale",
    miss(ETag='"a"', **FRESH),
    miss(method="HEAD", req={"Cache-Control": "no-cache"}, upstream={"any": 1}, body="other",
         ETag='"a"', **FRESH),
    miss(upstream={"any": 1}, **FRESH))
for status in (203, 206, 301, 302, 401, 403, 404, 410, 416, 429, 500, 501, 503):
    for said in ("", "private", "no-store"):
        row("RFC 9111 4.3.5", f"a HEAD's {status} changes nothing stored for GET: {said or 'fresh'}",
            miss(ETag='"a"', Test="1", **FRESH),
            miss(method="HEAD", status=status, req={"Cache-Control": "no-cache"},
                 upstream={"any": 1}, body="other", ETag='"b"', Test="2",
                 Cache_Control=said or "max-age=6000"),
            hit(sees="body of step 1\n", want={"Test": "1"}))
    row("RFC 9111 4.3.5", f"a HEAD's {status} freshens nothing stored for GET",
        miss(ETag='"a"', Cache_Control="max-age=60", Age="70"),
        miss(method="HEAD", status=status, upstream={"any": 1}, ETag='"a"', body="15 bytes long.\n",
             **FRESH),
        valid(ETag='"a"', sees="body of step 1\n", **FRESH))
row("RFC 9111 4.3.5", "a HEAD's 404 changes no stored 404",
    miss(status=404, ETag='"a"', Cache_Control="max-age=60", Age="70"),
    miss(method="HEAD", status=404, upstream={"any": 1}, ETag='"a"', body="15 bytes long.\n", **FRESH),
    valid(ETag='"a"', sees="body of step 1\n", want_status=404, **FRESH))
row("RFC 9111 4.3.5", "a HEAD of the same length freshens nothing that never was fresh",
    miss(ETag='"a"', Cache_Control="max-age=0"),
    miss(method="HEAD", upstream={"any": 1}, body="15 bytes long.\n", **FRESH),
    valid(ETag='"a"', sees="body of step 1\n", **FRESH))

# An error of one client's request leaves the stored response for the others.
for status in (400, 405, 406, 408, 412, 413, 414, 421, 429, 431):
    row("RFC 9111 4.3.3", f"a {status} to a reload leaves what is stored",
        miss(ETag='"a"', **FRESH),
        miss(status=status, req={"Cache-Control": "no-cache"}, upstream={"any": 1}),
        hit(sees="body of step 1\n"))
for status in (302, 401, 403, 404, 410):
    row("RFC 9111 4.3.3", f"a {status} to a reload outdates what is stored",
        miss(ETag='"a"', **FRESH),
        miss(status=status, req={"Cache-Control": "no-cache"}, upstream={"any": 1}),
        miss(**FRESH))

Rows = cases(row)
