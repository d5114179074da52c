// Characters of origins. The weights are made so that the kinds which are dangerous for a shared
// cache (personal, with Set-Cookie, without freshness, with no-cache) are as common as the plain.
#include <string>

#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {
namespace {

std::vector<std::string> random_vary(Random& random) {
  switch (random.below(12)) {
    case 0:
    case 1:
      return {"Accept-Encoding"};
    case 2:
      return {"Cookie"};
    case 3:
      return {"X-Lang"};
    case 4:
      return {"Accept-Encoding", "X-Lang"};
    case 5:
      return {"Cookie", "Accept-Encoding"};
    case 6:
      return random.percent(30) ? std::vector<std::string>{"*"} : std::vector<std::string>{};
    default:
      return {};
  }
}

// Most that are not in the future are no dates (RFC 9111 5.3).
std::string random_expires(Random& random) {
  if (!random.percent(25)) return {};
  return random.pick<const char*>({"+", "+", "0", "-1", "Thu, 01 Jan 1970 00:00:00 GMT"});
}

std::uint32_t random_size_max(Random& random) {
  // A few large ones take as many bytes as all others.
  if (random.percent(3)) return 300000;
  return random.pick<std::uint32_t>(
      {0, 60, 60, 500, 500, 500, 3000, 3000, 3000, 3000, 20000, 20000, 70000});
}

// A file, of which a shared cache keeps parts and joins them.
void make_file(Random& random, Character& out) {
  const bool is_guessed = random.percent(30);  // its freshness
  out.cache_control = is_guessed ? "" : "max-age=" + std::to_string(random.pick({2, 5, 60}));
  out.expires.clear();
  out.etag = 1;
  out.last_modified = out.last_modified || is_guessed;
  out.vary.clear();
  out.personal = false;
  out.set_cookie = 0;
  out.framing = 0;
  out.size_max = random.pick<std::uint32_t>({3000, 20000, 70000});
  out.change = random.pick({0, 1});
  out.ranges = true;
  out.redirect = 0;
}

}  // namespace

std::string random_cache_control(Random& random) {
  const std::string age = std::to_string(random.pick({1, 1, 2, 5, 60}));
  switch (random.below(27)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return "max-age=" + age;
    case 5:
      return "max-age=0";
    case 6:
      return "no-cache";
    case 7:
      return "no-store";
    case 8:
      return random.percent(50) ? "private" : "private, max-age=" + age;
    case 9:
      return "private=\"x-foo\", max-age=" + age;
    case 10:
      return "no-cache=\"x-foo, set-cookie\", max-age=" + age;
    case 11:
      return "no-cache=\"set-cookie\", max-age=" + age;
    case 12:
      return "s-maxage=" + age;
    case 13:
      return "public, s-maxage=" + age + ", max-age=0";
    case 14:
      return "max-age=" + age + ", must-revalidate";
    case 15:
    case 16:
      return "max-age=1, stale-while-revalidate=" + age;
    case 17:
      return "max-age=1, stale-if-error=" + age;
    case 18:
    case 19:
      return "public, max-age=" + age;
    case 20:
      return "public";
    case 21:
      return "max-age=0, stale-while-revalidate=" + age;
    case 22:
      return "max-age=0, stale-if-error=" + age;
    default:
      return "";
  }
}

Character random_character(Random& random) {
  Character out;
  const auto sometimes = [&random](double chance, double percent) {
    return random.percent(chance) ? percent : 0;
  };
  out.cache_control = random_cache_control(random);
  out.expires = random_expires(random);
  out.pragma = random.percent(10);
  out.etag = random.pick({0, 1, 1, 1, 2});
  out.last_modified = random.percent(50);
  out.vary = random_vary(random);
  out.personal = random.percent(35);
  out.set_cookie = random.percent(40) ? random.pick({20, 100}) : 0;
  out.age = sometimes(10, 50);
  out.secret_field = sometimes(50, 70);
  out.framing = random.pick({0, 0, 1, 1, 2, 3});
  out.size_max = random_size_max(random);
  out.trailers = sometimes(30, 60);
  out.slow_head = random.percent(30) ? random.pick({5, 30, 100}) : 0;
  out.slow_body = random.percent(25) ? random.pick({5, 30, 100}) : 0;
  out.drop = sometimes(10, 10);
  out.cut = sometimes(15, 15);
  out.error = sometimes(15, 20);
  out.missing = random.percent(10) ? random.pick({30, 95}) : 0;
  out.interim = sometimes(10, 30);
  out.change = random.pick({0, 1, 5, 30});
  out.change_of_mind = sometimes(20, 5);
  out.not_modified = random.percent(85);
  out.thin_304 = random.percent(40);
  out.ranges = random.percent(70);
  out.withhold = sometimes(20, 15);
  out.redirect = random.percent(20) ? random.pick({30, 80}) : 0;
  out.guarded = random.percent(12);
  out.content_type = random.pick<const char*>(
      {"text/plain", "text/plain", "text/html; charset=utf-8", "image/png"});
  if (random.percent(8)) make_file(random, out);
  return out;
}

}  // namespace encore::proxyfuzz
