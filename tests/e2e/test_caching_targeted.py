"""CDN-Cache-Control (RFC 9213): in reverse mode it replaces Cache-Control and Expires for us."""

from caching import Table, between, cases, date, hit, miss, valid

row = Table()
REVERSE = ("reverse",)


def cdn(name, value, result, **fields):
    row("RFC 9213", name, miss(CDN_Cache_Control=value, **fields), result, modes=REVERSE)


def stale():
    return miss(upstream={"any": 1})


cdn("max-age", "max-age=600", hit())
cdn("max-age over a shorter one", "max-age=600", hit(), Cache_Control="max-age=0")
cdn("max-age over no-store", "max-age=600", hit(), Cache_Control="no-store")
cdn("max-age over Expires", "max-age=600", hit(), Expires=date(-600))
cdn("a shorter max-age", "max-age=0", stale(), Cache_Control="max-age=600")
cdn("no-store", "no-store", stale(), Cache_Control="max-age=600")
cdn("private", "private", stale(), Cache_Control="max-age=600")
cdn("no-cache", "no-cache", valid(), Cache_Control="max-age=600", ETag='"a"')
cdn("Age counts against it", "max-age=600", stale(), Age="700")
cdn("Expires does not count where it is present", "public", stale(), Expires=date(600))
cdn("an unknown directive", "foo, max-age=600", hit())
cdn("a directive with a parameter", "max-age=600;foo=bar", hit())
cdn("a name in capitals does not parse", "Max-Age=600", stale(), Cache_Control="max-age=0")
cdn("a value in quotes is not an integer", 'max-age="600"', stale(), Cache_Control="max-age=600")
cdn("a value with a fraction", "max-age=600.0", stale(), Cache_Control="max-age=0")
cdn("negative", "max-age=-600", stale(), Cache_Control="max-age=600")
cdn("what does not parse is ignored as a whole", "max-age=0, &&&", hit(),
    Cache_Control="max-age=600")
cdn("what does not parse gives no freshness", "max-age=600, &&&", stale(),
    Cache_Control="max-age=0")
cdn("an empty one is ignored", "", hit(), Cache_Control="max-age=600")
cdn("the last of two values counts", "max-age=0, max-age=600", hit())
cdn("two lines are one", ["foo", "max-age=600"], hit())
cdn("s-maxage", "s-maxage=600", hit(), Cache_Control="max-age=0")
cdn("s-maxage within it over max-age", "max-age=0, s-maxage=600", hit())
cdn("stale-while-revalidate", "max-age=1, stale-while-revalidate=600",
    hit(wait=2, settle=True, status=200, sees="body of step 1\n", CDN_Cache_Control="max-age=600",
        ETag='"a"'), ETag='"a"')
row("RFC 9213", "it is forwarded unchanged",
    miss(CDN_Cache_Control="max-age=600, foo", want={"CDN-Cache-Control": "max-age=600, foo"}),
    hit(want={"CDN-Cache-Control": "max-age=600, foo", "Age": between(0, 2)}), modes=REVERSE)
row("RFC 9213", "a forward proxy is not its target",
    miss(CDN_Cache_Control="max-age=600", Cache_Control="max-age=0"), stale(), modes=("forward",))
row("RFC 9213", "in forward mode no-store counts in spite of it",
    miss(CDN_Cache_Control="max-age=600", Cache_Control="no-store"), miss(), modes=("forward",))

Rows = cases(row)
