"""Stale responses (RFC 5861, RFC 9111 4.2.4), and invalidation (4.4)."""

from caching import Table, between, cases, date, hit, miss, valid

row = Table()
FRESH = {"Cache_Control": "max-age=600"}


def swr(name, cc, *steps, **fields):
    row("RFC 5861 3", name, miss(ETag='"a"', Cache_Control=cc, **fields), *steps)


swr("within the window the stale one is served and refreshed behind it",
    "max-age=1, stale-while-revalidate=3600",
    hit(wait=2, settle=True, status=200, sees="body of step 1\n", **FRESH),
    hit(sees="body of step 2\n"))
swr("a 304 in the background freshens", "max-age=1, stale-while-revalidate=3600",
    hit(wait=2, settle=True, status=304, sees="body of step 1\n", Test="2", **FRESH),
    hit(sees="body of step 1\n", want={"Test": "2", "Age": between(0, 2)}))
swr("beyond the window the origin is asked first", "max-age=60, stale-while-revalidate=60",
    valid(ETag='"a"'), Age="130")
swr("not with no-cache in the request", "max-age=60, stale-while-revalidate=600",
    valid(req={"Cache-Control": "no-cache"}), Age="70")
swr("not with must-revalidate", "max-age=60, stale-while-revalidate=600, must-revalidate",
    valid(), Age="70")
swr("not with proxy-revalidate", "max-age=60, stale-while-revalidate=600, proxy-revalidate",
    valid(), Age="70")
swr("not with s-maxage", "s-maxage=60, stale-while-revalidate=600", valid(), Age="70")
row("RFC 5861 3", "the refresh carries the fields that select the variant",
    miss(req={"Foo": "1"}, Vary="Foo", ETag='"a"',
         Cache_Control="max-age=1, stale-while-revalidate=3600"),
    hit(req={"Foo": "1"}, wait=2, settle=True, status=200, sees="body of step 1\n", Vary="Foo",
        upstream={"Foo": "1", "If-None-Match": '"a"'}, **FRESH),
    hit(req={"Foo": "1"}, sees="body of step 2\n"))


def error_page(body):
    return body == b"body of step 2\n"


def closes(exchange):
    exchange.close()


def error(name, cc, step, clause="RFC 5861 4", age="70", **fields):
    row(clause, name, miss(ETag='"a"', Cache_Control=cc, Age=age, **fields), step)


def served(**options):
    """The stored one in an error's stead: the origin was asked, and is not believed."""
    return valid(want_status=200, says="fwd=stale", **options)


for status in (500, 502, 503, 504):
    error(f"stale-if-error on {status}", "max-age=60, stale-if-error=600",
          served(status=status))
    error(f"{status} without stale-if-error is passed on", "max-age=60",
          miss(status=status, upstream={"any": 1}))
    error(f"stale-if-error whose window has passed, on {status}",
          "max-age=60, stale-if-error=5", miss(status=status, upstream={"any": 1}))
error("stale-if-error on a closed connection", "max-age=60, stale-if-error=600",
      served(raw=closes))
error("stale-if-error does not hide a 404", "max-age=60, stale-if-error=600",
      miss(status=404, upstream={"any": 1}))
error("stale-if-error does not hide a 501", "max-age=60, stale-if-error=600",
      miss(status=501, upstream={"any": 1}))
error("by default a closed connection is answered with the stale one", "max-age=60",
      served(raw=closes), "RFC 9111 4.2.4")
for directive in ("min-fresh=600", "max-age=10"):
    error(f"{directive} of a request is a preference: closed", "max-age=600",
          valid(raw=closes, want_status=200, says="fwd=request",
                req={"Cache-Control": directive}), "RFC 9111 5.2.1")
for directive in ("must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"):
    error(f"never with {directive}: closed", f"max-age=60, stale-if-error=600, {directive}",
          miss(raw=closes, sees=lambda body: True, want_status=502, upstream={"any": 1}),
          "RFC 9111 4.2.4")
    error(f"never with {directive}: 503", f"max-age=60, stale-if-error=600, {directive}",
          miss(status=503, upstream={"any": 1}), "RFC 9111 4.2.4")
error("a request's own stale-if-error", "max-age=60",
      served(status=503, req={"Cache-Control": "stale-if-error=600"}))
error("an error that was passed on does not replace what is stored",
      "max-age=60, stale-if-error=600",
      served(status=503), age="70")
for status in (500, 502, 503, 504):
    row("RFC 9111 4.3.3", f"{status} to a validation is passed on, and leaves what is stored",
        miss(ETag='"a"', Cache_Control="max-age=60", Age="70"),
        miss(status=status, upstream={"any": 1, "If-None-Match": '"a"'}, sees=error_page),
        valid(ETag='"a"', sees="body of step 1\n", **FRESH), hit(sees="body of step 1\n"))
row("RFC 5861 4", "after the error the origin is asked again",
    miss(ETag='"a"', Cache_Control="max-age=60, stale-if-error=600", Age="70"),
    served(status=503), valid(ETag='"a"', **FRESH), hit())

# Invalidation.
for method in ("POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO"):
    for status in (200, 204, 302):
        row("RFC 9111 4.4", f"{method} with {status} invalidates",
            miss(**FRESH), miss(method=method, status=status, sees=lambda body: True, send_body=b""),
            miss(**FRESH))
    for status in (404, 500):
        row("RFC 9111 4.4", f"{method} with {status} does not",
            miss(**FRESH), miss(method=method, status=status, sees=lambda body: True), hit())
    for name in ("Location", "Content-Location"):
        row("RFC 9111 4.4", f"{method} invalidates its {name}",
            miss(url="/other", **FRESH),
            miss(method=method, sees=lambda body: True,
                 **{name.replace("-", "_"): "{path}/other"}),
            miss(url="/other", **FRESH))
        row("RFC 9111 4.4", f"{method} that fails does not invalidate its {name}",
            miss(url="/other", **FRESH),
            miss(method=method, status=500, sees=lambda body: True,
                 **{name.replace("-", "_"): "{path}/other"}), hit(url="/other"))
        row("RFC 9111 4.4", f"{method} does not invalidate a {name} elsewhere",
            miss(url="/other", **FRESH),
            miss(method=method, sees=lambda body: True,
                 **{name.replace("-", "_"): "http://elsewhere.example{path}/other"}),
            hit(url="/other"))
for method in ("OPTIONS", "HEAD", "PROPFIND", "SEARCH", "REPORT"):
    if method in ("OPTIONS", "HEAD"):
        row("RFC 9111 4.4", f"{method} does not invalidate",
            miss(**FRESH), (hit if method == "HEAD" else miss)(
                method=method, **({} if method == "HEAD" else {"sees": lambda body: True})), hit())
row("RFC 9111 4.4", "all variants are invalidated",
    miss(req={"Foo": "1"}, Vary="Foo", **FRESH), miss(req={"Foo": "2"}, Vary="Foo", **FRESH),
    miss(method="POST", sees=lambda body: True, send_body=b"x"),
    miss(req={"Foo": "1"}, Vary="Foo", **FRESH), miss(req={"Foo": "2"}, Vary="Foo", **FRESH))

Rows = cases(row)
