"""Variants (RFC 9111 4.1)."""

from caching import Table, cases, hit, miss, valid

row = Table()
FRESH = {"Cache_Control": "max-age=600"}


def two(name, vary, first, second, result, clause="RFC 9111 4.1", modes=("forward", "reverse")):
    row(clause, name, miss(req=first, Vary=vary, **FRESH), result(req=second), modes=modes)


two("the same value", "Foo", {"Foo": "1"}, {"Foo": "1"}, hit)
two("another value", "Foo", {"Foo": "1"}, {"Foo": "2"}, miss)
two("absent in the second", "Foo", {"Foo": "1"}, {}, miss)
two("absent in the first", "Foo", {}, {"Foo": "1"}, miss)
two("absent in both", "Foo", {}, {}, hit)
two("empty is not absent", "Foo", {"Foo": ""}, {}, miss)
two("a name in another case", "FOO", {"foo": "1"}, {"Foo": "1"}, hit)
two("two names, both the same", "Foo, Bar", {"Foo": "1", "Bar": "2"}, {"Foo": "1", "Bar": "2"}, hit)
two("two names, the second differs", "Foo, Bar", {"Foo": "1", "Bar": "2"},
    {"Foo": "1", "Bar": "3"}, miss)
two("two names, the first differs", "Foo, Bar", {"Foo": "1", "Bar": "2"},
    {"Foo": "2", "Bar": "2"}, miss)
two("two Vary lines", ["Foo", "Bar"], {"Foo": "1", "Bar": "2"}, {"Foo": "1", "Bar": "3"}, miss)
two("two Vary lines that match", ["Foo", "Bar"], {"Foo": "1", "Bar": "2"},
    {"Bar": "2", "Foo": "1"}, hit)
two("other fields do not matter", "Foo", {"Foo": "1", "Other": "1"}, {"Foo": "1", "Other": "2"}, hit)
two("empty members in Vary", ", Foo,,", {"Foo": "1"}, {"Foo": "1"}, hit)
two("lines that together say the same", "Foo", {"Foo": "1, 2"}, {"Foo": ["1", "2"]}, hit)
two("white space around commas of a list", "Prefer", {"Prefer": "a,b"}, {"Prefer": "a ,  b"}, hit)
two("white space around commas of what is not known to be a list", "Foo", {"Foo": "1,2"},
    {"Foo": "1 ,  2"}, miss)
two("an empty member of what is no list", "Origin", {"Origin": ",https://good.example"},
    {"Origin": "https://good.example"}, miss)
two("white space within a member", "Accept-Language", {"Accept-Language": "d e"},
    {"Accept-Language": "de"}, miss)
two("a selecting field that Connection removes selects nothing", "Accept-Language",
    {"Accept-Language": "de", "Connection": "Accept-Language"}, {"Accept-Language": "de"}, miss,
    "RFC 9110 7.6.1")
two("a selecting field that Connection removes is as if absent", "Accept-Language",
    {"Accept-Language": "de", "Connection": "close, Accept-Language"}, {}, hit, "RFC 9110 7.6.1")
two("X-Forwarded-Host of a client chooses nothing", "X-Forwarded-Host",
    {"X-Forwarded-Host": "evil.example"}, {}, hit, "Encore")
two("a response that depends on the client's address is for nobody else", "X-Forwarded-For",
    {}, {}, miss, "Encore", modes=("reverse",))
two("a selecting value of more than 1 KiB", "Cookie", {"Cookie": "a=" + "x" * 1023},
    {"Cookie": "a=" + "x" * 1023}, miss, "Encore")
two("a selecting value of 1 KiB", "Cookie", {"Cookie": "a=" + "x" * 1022},
    {"Cookie": "a=" + "x" * 1022}, hit, "Encore")
two("a selecting list of more than 64 members", "Accept-Language",
    {"Accept-Language": ",".join("de" for _ in range(65))},
    {"Accept-Language": ",".join("de" for _ in range(65))}, miss, "Encore")
two("another order is another value", "Foo", {"Foo": "1, 2"}, {"Foo": "2, 1"}, miss)
two("case of the value", "Foo", {"Foo": "a"}, {"Foo": "A"}, miss)
for star in ("*", "* ", "Foo, *", "*, Foo", ["Foo", "*"], ", *", "*,"):
    two(f"Vary: {star} is never reused", star, {"Foo": "1"}, {"Foo": "1"}, miss)
two("a Vary that is no list of names is never reused", "Foo bar", {}, {}, miss)
two("Accept-Encoding is normalised before keying", "Accept-Encoding",
    {"Accept-Encoding": "gzip, deflate, br"}, {"Accept-Encoding": "br;q=1.0, gzip;q=0.8"}, hit,
    "Encore", modes=("reverse",))
two("Accept-Encoding for another set of codings", "Accept-Encoding",
    {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "gzip, br"}, miss, "Encore")
two("Accept-Encoding that accepts nothing", "Accept-Encoding",
    {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "gzip;q=0"}, miss, "Encore")

row("RFC 9111 4.1", "several variants are stored side by side",
    miss(req={"Foo": "1"}, Vary="Foo", body="one", **FRESH),
    miss(req={"Foo": "2"}, Vary="Foo", body="two", says="fwd=vary-miss", **FRESH),
    miss(req={"Foo": "3"}, Vary="Foo", body="three", **FRESH),
    hit(req={"Foo": "1"}, sees="one"), hit(req={"Foo": "2"}, sees="two"),
    hit(req={"Foo": "3"}, sees="three"))
row("RFC 9111 4.1", "the most recent of the variants that match",
    miss(req={"Foo": "1", "Bar": "1"}, Vary="Foo", body="old", **FRESH),
    miss(req={"Foo": "1", "Bar": "2", "Cache-Control": "no-cache"}, Vary="Bar", body="new",
         upstream={"any": 1}, **FRESH),
    hit(req={"Foo": "1", "Bar": "2"}, sees="new"), hit(req={"Foo": "1", "Bar": "3"}, sees="old"))
row("RFC 9111 4.1", "a variant beside a response without Vary",
    miss(req={"Foo": "1", "Cache-Control": "no-cache"}, Vary="Foo", body="one", **FRESH),
    miss(req={"Foo": "2"}, body="any", **FRESH), hit(req={"Foo": "3"}, sees="any"))
row("RFC 9111 4.3.4", "a 304 freshens the right variant",
    miss(req={"Foo": "1"}, Vary="Foo", body="one", ETag='"1"', Cache_Control="max-age=1"),
    miss(req={"Foo": "2"}, Vary="Foo", body="two", ETag='"2"', Cache_Control="max-age=600"),
    valid(req={"Foo": "1"}, wait=2, sees="one", ETag='"1"', Vary="Foo", Test="x",
          want={"Test": "x"}, **FRESH),
    hit(req={"Foo": "1"}, sees="one", want={"Test": "x"}),
    hit(req={"Foo": "2"}, sees="two", lacks=["Test"]))
row("RFC 9111 4.1", "Vary on a field of the cache's own",
    miss(req={"Cache-Control": "max-age=60"}, Vary="Cache-Control", **FRESH), miss(**FRESH))

Rows = cases(row)
