"""Ranges (RFC 9110 14, RFC 9111 3.3 and 3.4)."""

from caching import Table, cases, hit, miss

row = Table()
TEN = {"body": "0123456789", "Cache_Control": "max-age=600", "ETag": '"a"'}
OLD = "Mon, 01 Jan 2024 00:00:00 GMT"


def is_multipart(*parts):
    """Whether a body is these parts and nothing else, whatever the boundary."""
    def check(body):
        boundary = body.split(b"\r\n", 2)[1 if body.startswith(b"\r\n") else 0]
        text = "".join(f"\r\nB\r\nContent-Type: text/x\r\nContent-Range: {where}\r\n\r\n{data}"
                       for where, data in parts) + "\r\nB--\r\n"
        return body.strip(b"\r\n") == text.encode().replace(b"B", boundary, 9).strip(b"\r\n")
    return check


BOUNDARIES = set()


def is_new_boundary(content_type):
    known = content_type in BOUNDARIES
    BOUNDARIES.add(content_type)
    return content_type.startswith("multipart/byteranges; boundary=encore-") and not known


def part(first, last, length=10, tag='"a"', **more):
    """Returns an origin's response to a range of the ten bytes."""
    fields = {"Cache_Control": "max-age=600", "ETag": tag, **more}
    return {"status": 206, "body": "0123456789"[first:last + 1],
            "Content_Range": f"bytes {first}-{last}/{length}", **fields}


def ranged(name, value, sees, told, status=206, **req):
    row("RFC 9110 14.2", f"from a stored 200: {name}", miss(**TEN),
        hit(req={"Range": value, **req}, want_status=status, sees=sees,
            want={"Content-Range": told}))


ranged("the first bytes", "bytes=0-1", "01", "bytes 0-1/10")
ranged("some in the middle", "bytes=4-7", "4567", "bytes 4-7/10")
ranged("to the end", "bytes=8-", "89", "bytes 8-9/10")
ranged("a suffix", "bytes=-3", "789", "bytes 7-9/10")
ranged("a suffix longer than it", "bytes=-30", "0123456789", "bytes 0-9/10")
ranged("beyond the end", "bytes=8-100", "89", "bytes 8-9/10")
ranged("the unit in capitals", "BYTES=0-1", "01", "bytes 0-1/10")
ranged("unsatisfiable", "bytes=10-", "", "bytes */10", 416)
ranged("a suffix of none", "bytes=-0", "", "bytes */10", 416)
ranged("another unit", "lines=0-1", "0123456789", None, 200)
ranged("malformed", "bytes=4-2", "0123456789", None, 200)
ranged("If-Range with the same tag", "bytes=0-1", "01", "bytes 0-1/10", **{"If-Range": '"a"'})
ranged("If-Range with another tag", "bytes=0-1", "0123456789", None, 200, **{"If-Range": '"b"'})
ranged("If-Range with a weak tag", "bytes=0-1", "0123456789", None, 200, **{"If-Range": 'W/"a"'})
row("RFC 9110 13.1.5", "If-Range with the date of a stored 200",
    miss(Last_Modified=OLD, **TEN),
    hit(req={"Range": "bytes=0-1", "If-Range": OLD}, want_status=206, sees="01"))
row("RFC 9110 13.1.5", "If-Range with another date",
    miss(Last_Modified=OLD, **TEN),
    hit(req={"Range": "bytes=0-1", "If-Range": "Tue, 02 Jan 2024 00:00:00 GMT"},
        sees="0123456789"))
row("RFC 9110 15.5.17", "a 416 from the cache has nothing that describes the content, and no cookie",
    miss(A="1", Content_Type="text/x", Set_Cookie="c=1", Content_Encoding="x", **TEN),
    hit(req={"Range": "bytes=10-"}, want_status=416, sees="",
        want={"Content-Range": "bytes */10", "ETag": '"a"', "Content-Length": "0"},
        lacks=["A", "Content-Type", "Set-Cookie", "Content-Encoding", "Cache-Control"]))
row("Encore", "a 416 made of a response on its way has no cookie either",
    miss(req={"Range": "bytes=10-"}, want_status=416, sees="", upstream={"any": 1, "range": None},
         want={"Content-Range": "bytes */10"}, Set_Cookie="c=1", A="1", lacks=["Set-Cookie", "A"],
         **TEN))
row("RFC 9110 14.6", "several ranges are sent as multipart",
    miss(Content_Type="text/x", **TEN),
    hit(req={"Range": "bytes=0-1,8-9"}, want_status=206, sees=is_multipart(
        ("bytes 0-1/10", "01"), ("bytes 8-9/10", "89"))))
row("RFC 9110 14.6", "the boundary of multipart is another each time",
    miss(Content_Type="text/x", **TEN),
    *(hit(req={"Range": "bytes=0-1,8-9"}, want_status=206, sees=lambda body: True,
          want={"Content-Type": is_new_boundary}) for _ in range(3)))
row("RFC 9110 15.3.7", "a 206 from the cache has the stored fields",
    miss(A="1", Content_Type="text/x", Set_Cookie="c=1", **TEN),
    hit(req={"Range": "bytes=0-1"}, want_status=206, sees="01",
        want={"A": "1", "ETag": '"a"', "Cache-Control": "max-age=600", "Content-Type": "text/x",
              "Content-Length": "2", "Date": lambda text: text, "Age": lambda text: text}))
row("RFC 9110 14.2", "Range on a HEAD means nothing", miss(**TEN),
    hit(method="HEAD", req={"Range": "bytes=0-1"}, want={"Content-Length": "10"}))
row("RFC 9110 14.2", "two Range lines mean nothing", miss(**TEN),
    hit(req={"Range": ["bytes=0-1", "bytes=2-3"]}, sees="0123456789"))
row("RFC 9110 14.2", "a range of a stored 404 is the whole of it",
    miss(status=404, **TEN), hit(req={"Range": "bytes=0-1"}, want_status=404, sees="0123456789"))
row("RFC 9110 13.2.2", "a condition comes before the range", miss(**TEN),
    hit(req={"Range": "bytes=0-1", "If-None-Match": '"a"'}, want_status=304, sees=""))
row("Encore", "a range of what will be stored fetches the whole",
    miss(req={"Range": "bytes=2-3"}, want_status=206, sees="23", upstream={"Range": None},
         want={"Content-Range": "bytes 2-3/10"}, **TEN),
    hit(sees="0123456789"))
row("Encore", "an If-Range that holds, for what will be stored",
    miss(req={"Range": "bytes=2-3", "If-Range": '"a"'}, want_status=206, sees="23",
         upstream={"Range": None, "If-Range": None}, **TEN),
    hit(sees="0123456789"))
row("Encore", "a whole fetched for a range serves all of it afterwards",
    miss(req={"Range": "bytes=2-3"}, body="x" * 7000, Cache_Control="max-age=600",
         want_status=206, sees="xx"),
    hit(sees="x" * 7000))



def unsaid(framing, body="0123456789"):
    """The ten bytes, without a word of their length."""
    fields = 'ETag: "a"\r\nCache-Control: max-age=600\r\n'
    if framing == "chunked":
        return (f"HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n"
                f"{len(body):x}\r\n{body}\r\n0\r\n\r\n").encode()
    return (f"HTTP/1.{int(framing == 'close')} 200 OK\r\n{fields}\r\n{body}").encode()


def until_close(framing):
    """The same, and the connection ends where it must."""
    def send(exchange):
        if framing != "chunked":
            exchange.close()
        return unsaid(framing)
    return send


def told_or_not(text):
    """A place whose whole length may have been known."""
    return lambda said: said in (text + "/10", text + "/*")


for how in ("chunked", "close", "http/1.0"):
    for text, sees, told in (("bytes=2-3", "23", told_or_not("bytes 2-3")),
                             ("bytes=8-100", "89", "bytes 8-9/10"),
                             ("bytes=-3", "789", "bytes 7-9/10"),
                             ("bytes=7-", "789", "bytes 7-9/10"),
                             ("bytes=10-", "", "bytes */10"),
                             ("bytes=-0", "", "bytes */10")):
        row("RFC 9110 14.4", f"{text} of what does not say its length ({how}) is one request",
            miss(req={"Range": text}, want_status=206 if sees else 416, sees=sees,
                 upstream={"Range": None}, want={"Content-Range": told}, raw=until_close(how)),
            # One that is answered before the end may be asked about before that, too.
            *([hit(sees="0123456789", want={"Content-Length": "10"})] if text != "bytes=2-3" else []))
    row("RFC 9110 13.1.5", f"If-Range for what does not say its length ({how})",
        miss(req={"Range": "bytes=8-99", "If-Range": '"a"'}, want_status=206, sees="89",
             upstream={"Range": None, "If-Range": None}, raw=until_close(how)),
        hit(sees="0123456789"))
    row("RFC 9110 13.1.5", f"If-Range of another for what does not say its length ({how})",
        miss(req={"Range": "bytes=2-3", "If-Range": '"b"'}, want_status=200, sees="0123456789",
             upstream={"Range": None, "If-Range": None}, raw=until_close(how)),
        hit(sees="0123456789"))
    row("RFC 9110 14.6", f"several ranges of what does not say its length ({how})",
        miss(req={"Range": "bytes=0-1,-1"}, want_status=206, upstream={"Range": None},
             sees=lambda body: b"bytes 0-1/10\r\n\r\n01\r\n" in body
             and b"bytes 9-9/10\r\n\r\n9\r\n" in body, raw=until_close(how)),
        hit(sees="0123456789"))
    row("RFC 9110 14.2", f"Range on a HEAD of what does not say its length ({how})",
        miss(raw=until_close(how), sees="0123456789"),
        hit(method="HEAD", req={"Range": "bytes=0-1"}, sees="", want={"Content-Range": None}))

# 206 from the origin, although the whole was asked for or the cache would not store.
row("RFC 9110 15.3.7", "a 206 is never served as a 200",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(sees="0123456789", upstream={"any": 1}, **TEN))
row("RFC 9111 3.3", "a stored 206 serves the same range",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    hit(req={"Range": "bytes=0-4"}, want_status=206, sees="01234",
        want={"Content-Range": "bytes 0-4/10", "Content-Length": "5"}))
row("RFC 9111 3.3", "a stored 206 serves a range within",
    miss(req={"Range": "bytes=2-6"}, **part(2, 6)),
    hit(req={"Range": "bytes=3-4"}, want_status=206, sees="34",
        want={"Content-Range": "bytes 3-4/10"}))
row("RFC 9111 3.3", "a stored 206 serves a suffix that it holds",
    miss(req={"Range": "bytes=5-9"}, **part(5, 9)),
    hit(req={"Range": "bytes=-2"}, want_status=206, sees="89"))
row("RFC 9111 3.3", "a stored 206 does not serve what it lacks",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(req={"Range": "bytes=3-7"}, upstream={"any": 1}, says="fwd=partial", **part(3, 7)))
row("RFC 9111 3.4", "two parts with the same strong tag become the whole",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9)),
    hit(sees="0123456789", want={"Content-Range": None, "Content-Length": "10"}))
row("RFC 9111 3.4", "joined parts have the fields of both, the new ones first",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, A="1", B="1")),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9, B="2", C="2")),
    hit(sees="0123456789", want={"A": "1", "B": "2", "C": "2", "ETag": '"a"',
                                 "Content-Range": None}))
STALE = {"Cache_Control": "max-age=0"}
row("RFC 9111 3.4", "a stale part is asked for again",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(req={"Range": "bytes=0-4"}, upstream={"any": 1}, says="fwd=stale",
         **part(0, 4, tag='"b"', A="2")),
    hit(req={"Range": "bytes=0-4"}, want_status=206, sees="01234",
        want={"ETag": '"b"', "A": "2"}))
row("RFC 9111 3.4", "a stale part asked for again brings the whole",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(req={"Range": "bytes=1-2"}, upstream={"any": 1, "Range": None}, want_status=206,
         sees="12", **TEN),
    hit(sees="0123456789"))
row("RFC 9111 3.4", "a stale part is joined with a new one of the same strong tag",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9)),
    hit(sees="0123456789", want={"Content-Range": None}))
row("RFC 9111 3.4", "a stale part is dropped for a new one of another tag",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9, tag='"b"')),
    hit(req={"Range": "bytes=5-9"}, want_status=206, sees="56789", want={"ETag": '"b"'}),
    miss(req={"Range": "bytes=0-4"}, upstream={"any": 1}, **part(0, 4, tag='"b"')),
    hit(sees="0123456789"))
row("RFC 9111 3.4", "a part of another length is not joined",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9, length=11)),
    miss(sees="0123456789", upstream={"any": 1}, **TEN))
row("RFC 9111 4.3.1", "the whole is asked for where a stale part is stored",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(upstream={"If-None-Match": None}, **TEN), hit(sees="0123456789"))
row("RFC 9111 3.3", "the rest of a stored part is asked for, and the whole answered and stored",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, A="1", B="1")),
    miss(upstream={"any": 1, "Range": "bytes=5-", "If-Range": '"a"'}, want_status=200,
         sees="0123456789", says="fwd=partial", **part(5, 9, B="2"),
         want={"Content-Range": None, "Content-Length": "10", "A": "1", "B": "2"}),
    hit(sees="0123456789", want={"Content-Range": None, "A": "1", "B": "2"}))
LONG = bytes(range(256)) * 2400
row("RFC 9111 3.3", "the rest of a part of many pages",
    miss(req={"Range": "bytes=0-399999"}, status=206, body=LONG[:400000], ETag='"a"',
         Content_Range=f"bytes 0-399999/{len(LONG)}", Cache_Control="max-age=600"),
    miss(upstream={"any": 1, "Range": "bytes=400000-"}, status=206, body=LONG[400000:],
         ETag='"a"', Content_Range=f"bytes 400000-{len(LONG) - 1}/{len(LONG)}", want_status=200,
         sees=LONG, Cache_Control="max-age=600"),
    hit(sees=LONG), hit(req={"Range": "bytes=399999-400000"}, want_status=206,
                        sees=LONG[399999:400001]))
row("RFC 9111 3.3", "the rest of a stale part makes it whole and fresh",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, **STALE)),
    miss(upstream={"any": 1, "Range": "bytes=5-"}, want_status=200, sees="0123456789",
         **part(5, 9)),
    hit(sees="0123456789"))
row("RFC 9111 3.3", "the rest of a part that has become something else",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(upstream={"any": 1}, sees="0123456789", **{**TEN, "ETag": '"b"'}),
    hit(sees="0123456789", want={"ETag": '"b"'}))
row("RFC 9111 3.3", "the rest of a part without a strong tag is not asked for",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, tag='W/"a"')),
    miss(upstream={"Range": None}, sees="0123456789", **TEN))


def other_rest(exchange):
    """A 206 of another representation to our range, the whole without it."""
    if any(name == "range" for name, _ in exchange.request.fields):
        return (b'HTTP/1.1 206 Partial\r\nETag: "b"\r\nContent-Range: bytes 5-9/10\r\n'
                b"Content-Length: 5\r\nCache-Control: max-age=600\r\n\r\nfghij")
    return (b'HTTP/1.1 200 OK\r\nETag: "b"\r\nContent-Length: 10\r\n'
            b"Cache-Control: max-age=600\r\n\r\nabcdefghij")


row("RFC 9111 3.4", "a rest with another tag is not joined: the whole is asked for",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(upstream={"any": 1}, raw=other_rest, sees="abcdefghij", want={"ETag": '"b"'}),
    hit(sees="abcdefghij"))
row("RFC 9111 3.4", "a 416 to the rest: the whole is asked for",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(upstream={"any": 1}, sees="abc", raw=lambda x: (
        b"HTTP/1.1 416 No\r\nContent-Range: bytes */3\r\nContent-Length: 0\r\n\r\n"
        if any(n == "range" for n, _ in x.request.fields) else
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: max-age=600\r\n\r\nabc")),
    hit(sees="abc"))
row("RFC 9111 3.4", "two parts that overlap are one",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(req={"Range": "bytes=3-7"}, upstream={"any": 1}, **part(3, 7)),
    hit(req={"Range": "bytes=1-6"}, want_status=206, sees="123456"))
row("RFC 9111 3.4", "parts with other tags are not joined",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9, tag='"b"')),
    miss(sees="0123456789", upstream={"any": 1}, **TEN))
row("RFC 9111 3.4", "parts with weak tags are not joined",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4, tag='W/"a"')),
    miss(req={"Range": "bytes=5-9"}, upstream={"any": 1}, **part(5, 9, tag='W/"a"')),
    miss(sees="0123456789", upstream={"any": 1}, **TEN))
row("RFC 9110 14.4", "a 206 without Content-Range is not stored",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4) | {"Content_Range": None}),
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)))
row("RFC 9110 14.4", "a 206 with a wrong Content-Range is not stored",
    miss(req={"Range": "bytes=0-4"}, **part(0, 4) | {"Content_Range": "bytes 0-7/10"}),
    miss(req={"Range": "bytes=0-4"}, **part(0, 4)))
row("RFC 9110 15.3.7", "a 206 that nobody asked for is passed on and not stored",
    miss(**part(0, 4)), miss(sees="0123456789", upstream={"any": 1}, **TEN))
row("RFC 9110 15.5.17", "a 416 of the origin is passed on",
    miss(req={"Range": "bytes=20-"}, status=416, Content_Range="bytes */10", body=""),
    miss(**TEN))

Rows = cases(row)
