"""How long a response is fresh (RFC 9111 4.2), and what requests ask of it (5.2.1)."""

import time

from caching import Table, between, cases, date, hit, miss, refused, valid

row = Table()
STALE = {"upstream": {"any": 1}}


def fresh(name, clause="RFC 9111 4.2.1", **fields):
    row(clause, name, miss(**fields), hit())


def stale(name, clause="RFC 9111 4.2.1", **fields):
    row(clause, name, miss(**fields), miss(**STALE))


fresh("max-age", Cache_Control="max-age=600")
stale("max-age of zero", Cache_Control="max-age=0")
fresh("s-maxage", Cache_Control="s-maxage=600")
fresh("s-maxage beats a shorter max-age", Cache_Control="max-age=0, s-maxage=600")
stale("s-maxage beats a longer max-age", Cache_Control="max-age=600, s-maxage=0")
fresh("max-age beats Expires", Cache_Control="max-age=600", Expires=date(-600))
stale("a short max-age beats Expires", Cache_Control="max-age=0", Expires=date(600))
fresh("s-maxage beats Expires", Cache_Control="s-maxage=600", Expires=date(-600))
fresh("names in any case", Cache_Control="MaX-aGe=600")
fresh("an unknown directive beside it", Cache_Control="foobar, max-age=600")
fresh("an unknown directive with a value beside it", Cache_Control='foo="bar, max-age=0", max-age=600')
fresh("a quoted value", Cache_Control='max-age="600"')
stale("a quoted zero", Cache_Control='max-age="0"')
fresh("empty members", Cache_Control=",, max-age=600 ,")
fresh("several lines", Cache_Control=["foo", "max-age=600"])
fresh("a value beyond 32 bits", Cache_Control="max-age=8589934592")
fresh("a value beyond 64 bits", Cache_Control="max-age=99999999999999999999")
fresh("leading zeros", Cache_Control="max-age=000600")
for name, text in {"negative": "-600", "with a fraction": "600.0", "hexadecimal": "0x600",
                   "not a number": "abc", "empty": "", "with white space before": " 600",
                   "with a letter behind": "600s", "in single quotes": "'600'"}.items():
    stale(f"a max-age that is {name}", Cache_Control=f"max-age={text}")
stale("white space before the equals sign", Cache_Control="max-age =600")
stale("two values: the shorter one, first", Cache_Control="max-age=0, max-age=600")
stale("two values: the shorter one, last", Cache_Control="max-age=600, max-age=0")
stale("two values on two lines", Cache_Control=["max-age=600", "max-age=0"])
stale("a name that only begins with max-age", Cache_Control="max-age-no=600")
stale("a name that only ends with max-age", Cache_Control="x-max-age=600")
stale("within a quoted string", Cache_Control='foo="max-age=600"')
stale("max-age wins over an Age as old", Cache_Control="max-age=600", Age="601")
fresh("max-age is longer than Age", Cache_Control="max-age=600", Age="500")

fresh("Expires in the future", Expires=date(600))
stale("Expires in the past", Expires=date(-600))
stale("Expires equal to Date", Expires=date(0))
fresh("Expires without Date", Expires=date(600), Date=None)
fresh("Expires counts from Date", Expires=date(0), Date=date(-600), Cache_Control="max-age=1200")
stale("Expires in the future, older by its Age", Expires=date(30), Age="60")
stale("Date in the past counts as age", Cache_Control="max-age=60", Date=date(-600))
fresh("a date far in the future", Expires="Thu, 31 Dec 2099 23:59:59 GMT")
for name, text in {"0": "0", "-1": "-1", "empty": "", "text": "never"}.items():
    stale(f"Expires is invalid: {name}", "RFC 9111 5.3", Expires=text)


def at(form, offset=600, **replaced):
    def text():
        when = time.strftime(form, time.gmtime(time.time() + offset))
        for old, new in replaced.items():
            when = when.replace(old, new)
        return when
    return text


GOOD = "%a, %d %b %Y %H:%M:%S GMT"
for name, text in {"IMF-fixdate": at(GOOD), "RFC 850": at("%A, %d-%b-%y %H:%M:%S GMT"),
                   "asctime": at("%a %b %e %H:%M:%S %Y"),
                   "lower case": lambda: at(GOOD)().lower(),
                   "upper case": lambda: at(GOOD)().upper()}.items():
    fresh(f"Expires as {name}", "RFC 9110 5.6.7", Expires=text)
for name, text in {"the zone UTC": at(GOOD, GMT="UTC"), "the zone AEST": at(GOOD, GMT="AEST"),
                   "no zone": at("%a, %d %b %Y %H:%M:%S"), "no comma": at("%a %d %b %Y %H:%M:%S GMT"),
                   "two spaces": at("%a, %d  %b %Y %H:%M:%S GMT"),
                   "a two-digit year": at("%a, %d %b %y %H:%M:%S GMT"),
                   "a numeric zone": at("%a, %d %b %Y %H:%M:%S +0000"),
                   "dots in the time": at("%a, %d %b %Y %H.%M.%S GMT"),
                   "ISO 8601": at("%Y-%m-%dT%H:%M:%SZ"), "a number": at("%s"),
                   "an hour of one digit": lambda: at("%a, %d %b %Y ", 86400)() + "9:00:00 GMT",
                   "something behind": at(GOOD + " x")}.items():
    stale(f"Expires with {name}", "RFC 9110 5.6.7", Expires=text)

for name, text, good in [("digits", "500", True), ("too old", "700", False),
                         ("negative", "-700", True), ("a fraction", "700.0", True),
                         ("text", "abc", True), ("a list, the first counts", "0, 700", True),
                         ("a list, the first is old", "700, 0", False),
                         ("a number with a letter", "700s", True), ("empty", "", True),
                         ("with a parameter", "700;a=b", True),
                         ("beyond 32 bits", "8589934592", False),
                         ("beyond 64 bits", "99999999999999999999", False)]:
    (fresh if good else stale)(f"Age is {name}", "RFC 9111 5.1", Cache_Control="max-age=600",
                               Age=text)
row("RFC 9111 5.1", "Age lines: the first one counts",
    miss(Cache_Control="max-age=600", Age=["0", "700"]), hit())
row("RFC 9111 5.1", "Age is generated on a hit and grows",
    miss(Cache_Control="max-age=600", lacks=["Age"]), hit(want={"Age": between(0, 1)}),
    hit(wait=2, want={"Age": between(2, 4)}))
row("RFC 9111 5.1", "Age counts on from the one received",
    miss(Cache_Control="max-age=600", Age="100"), hit(want={"Age": between(100, 102)}))
row("RFC 9111 4.2.3", "Age counts from a Date in the past",
    miss(Cache_Control="max-age=600", Date=date(-100)), hit(want={"Age": between(99, 102)}))
row("RFC 9111 4.2.3", "a Date in the future makes no negative age",
    miss(Cache_Control="max-age=600", Date=date(100)), hit(want={"Age": between(0, 2)}))


def slow(exchange):
    time.sleep(2)
    return (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nAge: 10\r\nContent-Length: 2\r\n"
            b"\r\nok")


row("RFC 9111 4.2.3", "the response's delay is counted", miss(raw=slow, sees="ok"),
    hit(sees="ok", want={"Age": between(12, 14)}))
row("RFC 9111 4.2", "what was fresh becomes stale", miss(Cache_Control="max-age=1"), hit(),
    miss(wait=2, **STALE))
row("RFC 9111 4.2", "a response that replaces a stale one is reused",
    miss(Cache_Control="max-age=1"), miss(wait=2, Cache_Control="max-age=600", **STALE), hit())
row("RFC 9111 5.2.2.4", "pragma in a response means nothing",
    miss(Cache_Control="max-age=600", Pragma="no-cache"), hit())
row("RFC 9111 5.4", "pragma alone in a response is no freshness", miss(Pragma="max-age=600"), miss())

FRESH = {"Cache_Control": "max-age=600"}


def asks(name, text, result, clause="RFC 9111 5.2.1", before=None, **options):
    row(clause, name, miss(**{**FRESH, **(before or {})}),
        result(req={"Cache-Control": text}, **options))


asks("request: max-age that is older", "max-age=60", hit)
asks("request: max-age=0", "max-age=0", miss, **STALE)
asks("request: max-age below the age", "max-age=60", miss, before={"Age": "100"}, **STALE)
asks("request: min-fresh that is met", "min-fresh=60", hit)
asks("request: min-fresh that is not met", "min-fresh=6000", miss, **STALE)
asks("request: min-fresh and Age", "min-fresh=300", miss, before={"Age": "400"}, **STALE)
asks("request: no-cache", "no-cache", miss, **STALE)
asks("request: no-cache in another case", "No-Cache", miss, **STALE)
asks("request: no-store does not bar a stored response", "no-store", hit)
asks("request: only-if-cached with something cached", "only-if-cached", hit)
asks("request: stale-if-error means nothing to a fresh one", "stale-if-error=60", hit)
row("RFC 9111 5.2.1.5", "request: no-store is not stored",
    miss(req={"Cache-Control": "no-store"}, **FRESH), miss(**FRESH), hit())
row("RFC 9111 5.2.1.7", "request: only-if-cached with nothing cached",
    refused(504, req={"Cache-Control": "only-if-cached"}), miss(**FRESH))
row("RFC 9111 5.2.1.7", "request: only-if-cached with something stale",
    miss(Cache_Control="max-age=0", ETag='"a"'), refused(504, req={"Cache-Control": "only-if-cached"}))
row("RFC 9111 5.2.1.2", "request: max-stale without a limit",
    miss(Cache_Control="max-age=1", ETag='"a"'), hit(wait=3, req={"Cache-Control": "max-stale"}))
row("RFC 9111 5.2.1.2", "request: max-stale that is met",
    miss(Cache_Control="max-age=1", ETag='"a"'),
    hit(wait=3, req={"Cache-Control": "max-stale=600"}))
row("RFC 9111 5.2.1.2", "request: max-stale that is not met",
    miss(Cache_Control="max-age=600", Age="700", ETag='"a"'),
    valid(req={"Cache-Control": "max-stale=10"}))
row("RFC 9111 5.2.1.2", "request: max-stale does not override must-revalidate",
    miss(Cache_Control="max-age=0, must-revalidate", ETag='"a"'),
    valid(req={"Cache-Control": "max-stale=600"}))
row("RFC 9111 5.4", "request: Pragma without Cache-Control",
    miss(**FRESH), miss(req={"Pragma": "no-cache"}, **STALE))
row("RFC 9111 5.4", "request: Pragma beside Cache-Control means nothing",
    miss(**FRESH), hit(req={"Pragma": "no-cache", "Cache-Control": "max-age=60"}))
row("RFC 9111 5.4", "request: another Pragma", miss(**FRESH), hit(req={"Pragma": "foo"}))
row("RFC 8246 2", "immutable is not validated on a reload with max-age=0",
    miss(Cache_Control="max-age=600, immutable", ETag='"a"'), hit(req={"Cache-Control": "max-age=0"}))
row("RFC 8246 2", "immutable and stale is validated",
    miss(Cache_Control="max-age=0, immutable", ETag='"a"'), valid())

Rows = cases(row)
