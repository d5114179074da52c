#include "sim/learn/tree_sum.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace encore::sim {
namespace {

constexpr std::uint32_t kNodesMax = 1U << 20U;

// Takes text and numbers off the front of a line; once something is not there, it stays so.
class LineParts {
 public:
  explicit LineParts(std::string_view line) : rest_(line) {}
  bool has(std::string_view text) const { return rest_.starts_with(text); }
  void skip(std::string_view text) {
    good_ = good_ && has(text);
    rest_.remove_prefix(good_ ? text.size() : 0);
  }
  template <typename Number>
  Number number() {
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    good_ = good_ && error == std::errc();
    rest_.remove_prefix(good_ ? static_cast<std::size_t>(end - rest_.data()) : 0);
    return value;
  }
  bool ended() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

bool TreeSum::parse(std::string_view line, std::uint32_t first, std::vector<Node>& nodes,
                    std::vector<bool>& defined) {
  line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  LineParts parts(line);
  const auto number = parts.number<std::uint32_t>();
  parts.skip(":");
  Node node;
  if (parts.has("leaf=")) {
    parts.skip("leaf=");
    node.value = parts.number<float>();
  } else {
    parts.skip("[f");
    node.feature = parts.number<std::int32_t>();
    parts.skip("<");
    node.value = parts.number<float>();
    parts.skip("] yes=");
    node.yes = first + parts.number<std::uint32_t>();
    parts.skip(",no=");
    node.no = first + parts.number<std::uint32_t>();
    parts.skip(",missing=");
    node.missing = first + parts.number<std::uint32_t>();
  }
  if (!parts.ended() || number >= kNodesMax) {
    return false;
  }
  if (number >= nodes.size()) {
    nodes.resize(number + std::size_t{1});
    defined.resize(number + std::size_t{1});
  }
  nodes[number] = node;
  defined[number] = true;
  return true;
}

Result<void> TreeSum::add(std::string_view dump) {
  const auto first = static_cast<std::uint32_t>(nodes_.size());
  std::vector<Node> nodes;
  std::vector<bool> defined;
  while (!dump.empty()) {
    const std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(line.size() + 1, dump.size()));
    if (!parse(line, first, nodes, defined)) {
      return fail("a tree has the line \"" + std::string(line) +
                  "\", accepted: N:leaf=X, or N:[fN<X] yes=N,no=N,missing=N");
    }
  }
  // A node behind its parent: no walk is endless.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::uint32_t next : {nodes[i].yes, nodes[i].no, nodes[i].missing}) {
      const std::size_t below = next - first;
      if (defined[i] && nodes[i].feature >= 0 &&
          (below <= i || below >= nodes.size() || !defined[below])) {
        return fail("a tree names the node " + std::to_string(below) + ", which it does not have");
      }
    }
  }
  if (nodes.empty() || !defined[0]) {
    return fail("a tree without a first node");
  }
  roots_.push_back(first);
  nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
  return {};
}

float TreeSum::predict(std::span<const float> row) const {
  float sum = base_;
  for (const std::uint32_t root : roots_) {
    const Node* node = &nodes_[root];
    while (node->feature >= 0) {
      const float value = row[static_cast<std::size_t>(node->feature)];
      const std::uint32_t next = value < node->value ? node->yes : node->no;
      node = &nodes_[std::isnan(value) ? node->missing : next];
    }
    sum += node->value;
  }
  return sum;
}

}  // namespace encore::sim
