#include "proxy/coding/negotiation.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "proxy/http/list.h"

namespace encore::coding {
namespace {

constexpr int kUnnamed = -1;
constexpr int kWhole = 1000;

// "0.5", "1", "0.125" in thousandths (RFC 9110 12.4.2).
int read_weight(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[1] != '.')) return 0;
  if (text[0] != '0' && text[0] != '1') return 0;
  int weight = text[0] == '1' ? kWhole : 0;
  int worth = kWhole / 10;
  for (const char c : text.substr(std::min<std::size_t>(text.size(), 2))) {
    if (!http::is_digit(c)) return 0;
    weight += (c - '0') * worth;
    worth /= 10;
  }
  return weight <= kWhole ? weight : 0;
}

// The weights of codings in a request; the last one of a repeated coding counts.
class Weights {
 public:
  void read(std::string_view member) {
    std::size_t end = std::min(member.find(';'), member.size());
    const std::string_view name = http::trim_ows(member.substr(0, end));
    int weight = kWhole;
    while (end != member.size()) {
      member.remove_prefix(end + 1);
      end = std::min(member.find(';'), member.size());
      const std::string_view parameter = http::trim_ows(member.substr(0, end));
      if (parameter.size() < 2 || http::to_lower(parameter[0]) != 'q' || parameter[1] != '=') {
        continue;
      }
      weight = read_weight(parameter.substr(2));
    }
    if (int* const place = place_of(name)) *place = weight;
  }

  int of(Coding coding) const noexcept { return named_or_others(codings_[number_of(coding)]); }
  int of_identity() const noexcept { return named_or_others(identity_); }

 private:
  int* place_of(std::string_view name) noexcept {
    if (name == "*") return &others_;
    if (http::equals_lower(name, "identity")) return &identity_;
    if (http::equals_lower(name, "x-gzip")) return &codings_[number_of(Coding::kGzip)];
    for (const Coding coding : {Coding::kZstd, Coding::kBrotli, Coding::kGzip}) {
      if (http::equals_lower(name, to_string(coding))) return &codings_[number_of(coding)];
    }
    return nullptr;
  }
  int named_or_others(int weight) const noexcept {
    return std::max(weight == kUnnamed ? others_ : weight, 0);
  }

  std::array<int, kCodings> codings_{kUnnamed, kUnnamed, kUnnamed};
  int identity_ = kUnnamed;
  int others_ = kUnnamed;
};

}  // namespace

std::optional<Coding> choose(const http::Fields& request, std::span<const Coding> offered) {
  if (!request.has(http::FieldId::kAcceptEncoding)) return std::nullopt;
  Weights weights;
  request.for_each_member(http::FieldId::kAcceptEncoding,
                          [&weights](std::string_view member) { weights.read(member); });
  std::optional<Coding> chosen;
  int best = std::max(weights.of_identity() - 1, 0);
  for (const Coding coding : offered) {
    const int weight = weights.of(coding);
    if (weight <= best) continue;
    best = weight;
    chosen = coding;
  }
  return chosen;
}

}  // namespace encore::coding
