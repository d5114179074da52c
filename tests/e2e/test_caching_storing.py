"""The responses that are stored (RFC 9111 3), and their stored parts (3.1)."""

from caching import Step, Table, cases, date, hit, miss, refused, valid
from origin import Closed

row = Table()
BOTH = {"Last_Modified": date(-100000)}

# Explicit freshness makes every final status cacheable.
for status in (200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 405, 410, 414, 499, 500, 501,
               502, 503, 504, 599):
    row("RFC 9111 3", f"status {status} with explicit freshness is stored",
        miss(status=status, Cache_Control="max-age=600"), hit(want_status=status))
    row("RFC 9111 4.2", f"status {status} with an Expires in the future is stored",
        miss(status=status, Expires=date(600)), hit(want_status=status))
    row("RFC 9111 4.2", f"status {status} that is stale at once is not reused without validation",
        miss(status=status, Cache_Control="max-age=0"), miss(Cache_Control="no-store"))

# But what is said of one client, or of the network before it, never is.
for status in (428, 429, 431, 511):
    row("RFC 6585", f"status {status} is not stored, whatever its freshness",
        miss(status=status, Cache_Control="public, max-age=600"), miss())

# Without it, the list of RFC 9110 15.1 and Last-Modified.
for status in (200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501):
    row("RFC 9111 4.2.2", f"status {status} with Last-Modified is given heuristic freshness",
        miss(status=status, **BOTH), hit(want_status=status))
for status in (201, 202, 302, 303, 307, 400, 403, 499, 500, 502, 503, 504, 599):
    row("RFC 9111 4.2.2", f"status {status} with Last-Modified alone is given no freshness",
        miss(status=status, **BOTH), miss(status=status, upstream={"any": 1}, **BOTH))
row("RFC 9111 4.2.2", "an unknown status with public and Last-Modified may be kept heuristically",
    miss(status=599, Cache_Control="public", **BOTH), hit(want_status=599))
row("RFC 9111 3", "neither freshness nor validator: not stored", miss(), miss())
row("RFC 9111 4.2.2", "a heuristic of less than a second is stale at once",
    miss(Last_Modified=date(-3)), miss(upstream={"any": 1}))

row("RFC 9111 5.2.2.5", "no-store", miss(Cache_Control="no-store"), miss())
row("RFC 9111 5.2.2.5", "no-store beside max-age", miss(Cache_Control="max-age=600, no-store"),
    miss())
row("RFC 9111 5.2.2.5", "no-store in another case", miss(Cache_Control="No-StOrE, max-age=600"),
    miss())
row("RFC 9111 5.2.2.5", "no-store on a line of its own",
    miss(Cache_Control=["max-age=600", "no-store"]), miss())
row("RFC 9111 5.2.2.5", "a directive that only begins like no-store",
    miss(Cache_Control="no-store-it, max-age=600"), hit())
row("RFC 9111 5.2.2.5", "no-store in quotes is no directive",
    miss(Cache_Control='ext="no-store", max-age=600'), hit())
row("RFC 9111 5.2.2.5", "no-store behind an escaped quote is still within the quotes",
    miss(Cache_Control=r'ext="a\", no-store", max-age=600'), hit())
row("RFC 9111 5.2.2.7", "private", miss(Cache_Control="private, max-age=600"), miss())
row("RFC 9111 5.2.2.7", "private with a list keeps the rest",
    miss(Cache_Control='private="a", max-age=600', A="1", B="2"),
    hit(want={"B": "2"}, lacks=["A"]))
row("RFC 9111 5.2.2.4", "no-cache with a list keeps the rest",
    miss(Cache_Control='no-cache="a, C", max-age=600', A="1", B="2", C="3"),
    hit(want={"B": "2"}, lacks=["A", "C"]))
row("RFC 9111 5.2.2.7", "the first client sees the fields that private names",
    miss(Cache_Control='private="a", max-age=600', A="1", want={"A": "1"}))
row("RFC 9111 5.2.2.4", "no-cache is validated every time",
    miss(Cache_Control="no-cache, max-age=600", ETag='"a"'),
    miss(Cache_Control="no-cache", upstream={"any": 1, "If-None-Match": '"a"'}, ETag='"b"'))
row("RFC 9111 5.2.2.4", "no-cache without a validator is fetched every time",
    miss(Cache_Control="no-cache, max-age=600"), miss())
row("RFC 9111 5.2.2.3", "must-understand overrides no-store for a known status",
    miss(Cache_Control="must-understand, no-store, max-age=600"), hit())
row("RFC 9111 5.2.2.3", "must-understand forbids an unknown status",
    miss(status=599, Cache_Control="must-understand, max-age=600"), miss())
row("RFC 9111 5.2.2.3", "must-understand, no-store and an unknown status",
    miss(status=599, Cache_Control="must-understand, no-store, max-age=600"), miss())

AUTH = {"Authorization": "Basic YTpi"}
row("RFC 9111 3.5", "Authorization alone is not stored",
    miss(req=AUTH, Cache_Control="max-age=600"), miss())
for directive in ("public", "must-revalidate", "s-maxage=600"):
    row("RFC 9111 3.5", f"Authorization with {directive} is stored",
        miss(req=AUTH, Cache_Control=f"max-age=600, {directive}"), hit())
row("RFC 9111 3.5", "what is stored answers a request with Authorization",
    miss(Cache_Control="max-age=600"), hit(req=AUTH))
row("RFC 9111 7.3", "Set-Cookie of what is marked public is stored and replayed",
    miss(Cache_Control="max-age=600, public", Set_Cookie="a=1", want={"Set-Cookie": "a=1"}),
    hit(want={"Set-Cookie": "a=1"}))
row("RFC 9111 7.3", "Set-Cookie of what has s-maxage is stored and replayed",
    miss(Cache_Control="s-maxage=600", Set_Cookie="a=1"), hit(want={"Set-Cookie": "a=1"}))
row("RFC 9111 7.3", "several Set-Cookie lines stay several",
    miss(Cache_Control="max-age=600, public", Set_Cookie=["a=1", "b=2"]),
    hit(want={"Set-Cookie": "a=1, b=2"}))
row("RFC 9111 7.3", "a response that is not marked is stored without its Set-Cookie",
    miss(Cache_Control="max-age=600", Set_Cookie="a=1", want={"Set-Cookie": "a=1"}),
    hit(lacks=["Set-Cookie"]))
row("RFC 9111 7.3", "a Set-Cookie to a request with Cookie is not stored",
    miss(Cache_Control="max-age=600, public", Set_Cookie="a=1", req={"Cookie": "s=1"},
         want={"Set-Cookie": "a=1"}),
    miss(Cache_Control="max-age=600"))
row("RFC 9111 7.3", "a Set-Cookie beside heuristic freshness is not stored",
    miss(Last_Modified=date(-1000000), Set_Cookie="a=1", want={"Set-Cookie": "a=1"}), miss())
OLD = date(-1000000)()
COOKIE = {"Cookie": "s=1"}
row("RFC 9111 4.2.2", "Last-Modified alone gives no freshness to what came to a request with Cookie",
    miss(Last_Modified=OLD, req=COOKIE), valid(Last_Modified=OLD), valid(Last_Modified=OLD),
    valid(Last_Modified=OLD, req=COOKIE), valid(Last_Modified=OLD, req={"Cookie": "s=2"}))
row("RFC 9111 4.2.2", "a new response to a request without Cookie has heuristic freshness again",
    miss(Last_Modified=OLD, req=COOKIE), miss(Last_Modified=OLD, upstream={"any": 1}), hit())
row("RFC 9111 4.2.2", "heuristic freshness serves requests with Cookie, too",
    miss(Last_Modified=OLD), hit(req=COOKIE))
row("RFC 9111 4.2.2", "a 304 to a request with Cookie changes nothing of a guessed freshness",
    miss(Last_Modified=OLD),
    valid(Last_Modified=OLD, X_User="ann", req={"Cache-Control": "no-cache", **COOKIE},
          want={"X-User": "ann"}),
    hit(lacks=["X-User"]))
row("RFC 9111 4.2.2", "a HEAD with Cookie changes nothing of a guessed freshness",
    miss(Last_Modified=OLD, Test="1"),
    miss(method="HEAD", Last_Modified=OLD, Test="2", body="15 bytes long.\n", upstream={"any": 1},
         req={"Cache-Control": "no-cache", **COOKIE}),
    hit(sees="body of step 1\n", want={"Test": "1"}))
row("RFC 9111 4.2.2", "a stated freshness serves all, with Cookie or without",
    miss(Last_Modified=OLD, Cache_Control="max-age=600", req=COOKIE), hit(), hit(req=COOKIE))
row("RFC 9111 5.4", "Pragma: no-cache without Cache-Control gives no freshness by Last-Modified",
    miss(Last_Modified=OLD, Pragma="no-cache"), valid(Last_Modified=OLD))
row("RFC 9111 5.2.2.7", "trailers that private names are for nobody else",
    miss(raw=(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600, private=\"x-user\"\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-User: ann\r\nX-Sum: 1\r\n\r\n"),
         sees="a"),
    hit(sees="a", req={"TE": "trailers", "Connection": "TE"}, trailers=[("x-sum", "1")]))
row("RFC 9111 7.3", "a request with Cookie alone is answered from the cache",
    miss(Cache_Control="max-age=600", req={"Cookie": "s=1"}), hit(req={"Cookie": "s=2"}))

row("RFC 9110 9.3.3", "POST with freshness and its own Content-Location serves a GET",
    miss(method="POST", send_body=b"x", Cache_Control="max-age=600",
         Content_Location="{path}"),
    hit())
row("RFC 9110 9.3.3", "POST without Content-Location does not",
    miss(method="POST", send_body=b"x", Cache_Control="max-age=600"), miss())
row("RFC 9110 9.3.3", "POST with another Content-Location does not",
    miss(method="POST", send_body=b"x", Cache_Control="max-age=600", Content_Location="/other"),
    miss())
row("RFC 9110 9.3.3", "POST without freshness does not",
    miss(method="POST", send_body=b"x", Content_Location="{path}", **BOTH), miss())
row("RFC 9110 9.3.3", "POST is never answered from the cache", miss(Cache_Control="max-age=600"),
    miss(method="POST", send_body=b"x", Cache_Control="max-age=600"))
for method in ("PUT", "DELETE", "PATCH", "M-SEARCH", "OPTIONS", "PROPFIND"):
    row("RFC 9111 3", f"the response to {method} is not stored",
        miss(method=method, Cache_Control="max-age=600"), miss())
row("RFC 9111 4", "a stored GET answers a HEAD", miss(Cache_Control="max-age=600"),
    hit(method="HEAD", want={"Content-Length": "15"}))
for cc in ("max-age=600", "no-store", None):
    row("RFC 9110 9.3.2", f"a HEAD that misses names the length: {cc}",
        miss(method="HEAD", Cache_Control=cc, want={"Content-Length": "15"}))
row("RFC 9110 10.1.1", "an expectation that is not known is refused, stored or not",
    refused(417, req={"Expect": "x"}), miss(Cache_Control="max-age=600"),
    refused(417, req={"Expect": "x"}), refused(417, method="HEAD", req={"Expect": "x"}), hit())
row("RFC 9111 4", "a HEAD's response answers no GET",
    miss(method="HEAD", Cache_Control="max-age=600"), miss(Cache_Control="max-age=600"), hit())

# Hop-by-hop fields are neither forwarded nor stored.
HOPS = {"Connection": "a, keep-alive", "A": "1", "Keep_Alive": "timeout=5",
        "Proxy_Authenticate": "Basic", "Proxy_Authentication_Info": "x", "Upgrade": "h2c",
        "Proxy_Connection": "close", "Proxy_Authorization": "x", "TE": "x"}
row("RFC 9111 3.1", "hop-by-hop fields and those that Connection names",
    miss(Cache_Control="max-age=600", B="2", want={"B": "2"}, lacks=list(HOPS), **HOPS),
    hit(want={"B": "2"}, lacks=list(HOPS)))
row("RFC 9110 7.6.1", "Connection cannot name Cache-Control away",
    miss(Cache_Control="no-store", Connection="cache-control"), miss())
row("RFC 9110 7.6.1", "Connection cannot name Set-Cookie away",
    miss(Cache_Control="max-age=600, public", Connection="set-cookie", Set_Cookie="a=1"),
    hit(want={"Set-Cookie": "a=1"}))
for name, value in {"X-Test": "a  b", "Content-Foo": "1", "Test-Header": '"', "ETag": '"a"',
                    "Content-Type": "text/x;a=b", "Clear-Site-Data": "cookies",
                    "Public-Key-Pins": "x", "X-Frame-Options": "deny", "WWW-Authenticate": "Basic",
                    "Content-Security-Policy": "default-src 'self'", "Location": "/x",
                    "X-XSS-Protection": "1", "Content-Encoding": "x", "Retry-After": "9",
                    "Content-MD5": "x", "Content-Range": "bytes 0-1/9", "Warning": '199 - "x"',
                    "Link": "</>;rel=x", "Server": "a/1", "Trailer": "x"}.items():
    row("RFC 9111 3.1", f"{name} is stored as it came",
        miss(Cache_Control="max-age=600", want={name: value}, **{name.replace("-", "_"): value}),
        hit(want={name: value}))
row("RFC 9111 3.1", "field lines keep their number and order",
    miss(Cache_Control="max-age=600", A=["1", "2", "3"]), hit(want={"A": "1, 2, 3"}))
row("RFC 9110 6.6.1", "a missing Date is supplied, and kept",
    miss(Cache_Control="max-age=600", Date=None, want={"Date": lambda text: text}),
    hit(want={"Date": lambda text: text}))
row("RFC 9110 6.6.1", "Date is never rewritten",
    miss(Cache_Control="max-age=600", Date="Mon, 01 Jan 2024 00:00:00 GMT",
         want={"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}))

# Incomplete bodies.
CUT = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 100\r\n\r\npart"
CHUNKS = (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n\r\n"
          b"4\r\npart\r\n")


def cut(data):
    def send(exchange):
        exchange.send(data)
        exchange.close()
    return send


row("RFC 9111 3.3", "a body shorter than its Content-Length is an error and not stored",
    miss(raw=cut(CUT), sees=Closed), miss(Cache_Control="max-age=600"), hit())
row("RFC 9111 3.3", "a chunked body without its end is an error and not stored",
    miss(raw=cut(CHUNKS), sees=Closed), miss(Cache_Control="max-age=600"), hit())
row("RFC 9112 6.3", "a body until the close is stored",
    miss(raw=cut(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n\r\nall of it"),
         sees="all of it"), hit(sees="all of it", want={"Content-Length": "9"}))
row("RFC 9112 6.3", "the body of an HTTP/1.0 origin is stored",
    miss(raw=cut(b"HTTP/1.0 200 OK\r\nCache-Control: max-age=600\r\n\r\nall of it"),
         sees="all of it"), hit(sees="all of it"))
row("RFC 9112 6.1", "a transfer coding that was not asked for is refused and not stored",
    miss(raw=cut(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nTransfer-Encoding: x\r\n\r\n"
                 b"coded"), want_status=502, sees=lambda body: b"coded" not in body), miss())
row("RFC 9112 6.3", "surplus bytes are never the next response",
    miss(raw=b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nok"
             b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", sees="ok"),
    hit(sees="ok"), miss(url="/other", Cache_Control="max-age=600"))
TRAILED = CHUNKS + b"0\r\nX-After: 1\r\n\r\n"
row("RFC 9112 7.1.2", "trailers are stored with the body, for clients that take them",
    miss(raw=TRAILED, sees="part", trailers=[("x-after", "1")], req={"TE": "trailers",
                                                                      "Connection": "TE"}),
    hit(sees="part", trailers=[("x-after", "1")], req={"TE": "trailers", "Connection": "TE"},
        want={"Content-Length": None}),
    hit(sees="part", trailers=[], want={"Content-Length": "4"}))
row("RFC 9112 7.1.2", "trailers of a body in several chunks of memory",
    miss(raw=TRAILED.replace(b"4\r\npart", b"%x\r\n" % 300000 + b"p" * 300000),
         sees="p" * 300000),
    hit(sees="p" * 300000, trailers=[("x-after", "1")], req={"TE": "trailers",
                                                             "Connection": "TE"}))
for status in (204, 304):
    row("RFC 9112 6.3", f"bytes behind a {status} are never the next response",
        miss(ETag='"a"', Cache_Control="max-age=0"),
        Step("valid" if status == 304 else "miss", status=status, want_status=200 if status == 304
             else 204, upstream={"any": 1}, sees=None if status == 304 else "",
             raw=b"HTTP/1.1 %d Said\r\nETag: \"a\"\r\n\r\n" % status
             + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        miss(url="/other", Cache_Control="max-age=600"))

# Interim responses.
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nok"
for code in (100, 102, 103, 199):
    row("RFC 9110 15.2", f"behind a {code} the final response is stored",
        miss(raw=EARLY.replace(b"103", b"%d" % code) + FINAL, sees="ok", lacks=["Link"]),
        hit(sees="ok", lacks=["Link"]))

Rows = cases(row)
