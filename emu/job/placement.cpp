// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/placement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace orrery::job {

namespace {

constexpr std::uint32_t kMaxPes = HostDirectory::kMaxPes;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Takes the next word of `line`; empty at its end.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  std::size_t length = 0;
  while (length < line.size() && !is_space(line[length])) ++length;
  const auto word = line.substr(0, length);
  line.remove_prefix(length);
  return word;
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t most) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size() || number > most) return std::nullopt;
  return number;
}

// What stands in a line, quoted in messages: bounded, and printable whatever the file holds.
std::string quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (word.size() > 40 ? "...'" : "'");
}

class PlaceFileParser {
 public:
  explicit PlaceFileParser(std::uint32_t pes) : places_(pes), placed_(pes, false) {}

  // An empty string when all is well.
  std::string parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const auto newline = text.find('\n');
      std::string_view line = text.substr(0, newline);
      text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
      line = line.substr(0, line.find('#'));
      const std::string problem = parse_line(line);
      if (!problem.empty()) return fmt::format("line {}: {}", line_, problem);
    }
    for (std::size_t pe = 0; pe < placed_.size(); ++pe) {
      if (!placed_[pe])
        return fmt::format("PE {} has no node: expected each of PEs 0..{}", pe, placed_.size() - 1);
    }
    return {};
  }
  std::vector<PePlace> take() { return std::move(places_); }

 private:
  std::string parse_line(std::string_view line) {
    const auto keyword = next_word(line);
    if (keyword.empty()) return {};
    if (keyword != "node") return fmt::format("{} is not accepted: expected 'node NUMBER'", quoted(keyword));
    const auto nid_word = next_word(line);
    const auto nid = parse_number(nid_word, Placement::kMaxAddress);
    if (!nid) return fmt::format("node number {}: expected 0..{}", quoted(nid_word), Placement::kMaxAddress);
    std::uint32_t address = *nid;
    auto word = next_word(line);
    if (word == "nic") {
      const auto address_word = next_word(line);
      const auto number = parse_number(address_word, Placement::kMaxAddress);
      if (!number) {
        return fmt::format("NIC address {}: expected 0..{:#x}", quoted(address_word), Placement::kMaxAddress);
      }
      address = *number;
      word = next_word(line);
    }
    if (word != "pes") return fmt::format("{} is not accepted: expected 'pes LIST'", quoted(word));
    for (const auto& node : nodes_) {
      if (node.nid == *nid) return fmt::format("node {} stands in an earlier line: expected once", *nid);
      if (node.nic_address == address) {
        return fmt::format("NIC address {:#x} is that of node {}: expected another", address, node.nid);
      }
    }
    nodes_.push_back({*nid, address, static_cast<std::uint32_t>(nodes_.size())});
    const auto list = next_word(line);
    const auto rest = next_word(line);
    if (!rest.empty()) return fmt::format("{} is not accepted: expected the end of the line", quoted(rest));
    return parse_list(list, nodes_.back());
  }

  std::string parse_list(std::string_view list, const PePlace& node) {
    const auto most = static_cast<std::uint32_t>(places_.size() - 1);
    if (list.empty()) return fmt::format("no PEs given: expected a list such as 0-{}", most);
    while (!list.empty()) {
      const auto comma = list.find(',');
      const auto item = list.substr(0, comma);
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
      if (comma != std::string_view::npos && list.empty())
        return "a list ends with a comma: expected a PE after it";
      const auto dash = item.find('-');
      const auto first = parse_number(item.substr(0, dash), most);
      const auto last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1), most);
      if (!first || !last || *last < *first) {
        return fmt::format("PEs {}: expected a PE or a range FIRST-LAST within 0..{}", quoted(item), most);
      }
      for (std::uint32_t pe = *first; pe <= *last; ++pe) {
        if (placed_[pe]) return fmt::format("PE {} has a node already: expected once", pe);
        placed_[pe] = true;
        places_[pe] = node;
      }
    }
    return {};
  }

  std::vector<PePlace> places_;
  std::vector<bool> placed_;
  std::vector<PePlace> nodes_;
  int line_ = 0;
};

// Numbers nodes in the order of first mention by PE.
std::uint32_t number_nodes(std::vector<PePlace>& pes) {
  std::vector<std::uint32_t> nids;
  for (PePlace& pe : pes) {
    auto found = std::find(nids.begin(), nids.end(), pe.nid);
    if (found == nids.end()) found = nids.insert(nids.end(), pe.nid);
    pe.node_index = static_cast<std::uint32_t>(found - nids.begin());
  }
  return static_cast<std::uint32_t>(nids.size());
}

bool accepted_pe_count(std::uint32_t pes, std::string* why) {
  if (pes >= 1 && pes <= kMaxPes) return true;
  *why = fmt::format("{} PEs: expected 1..{}", pes, kMaxPes);
  return false;
}

}  // namespace

Placement::Placement(std::vector<PePlace> pes) : pes_(std::move(pes)), node_count_(number_nodes(pes_)) {}

Result<Placement> Placement::blocks(std::uint32_t pes, std::uint32_t nodes, std::string* why,
                                    std::uint32_t first_nid) {
  if (!accepted_pe_count(pes, why)) return Errc::invalid_param;
  if (nodes == 0 || nodes > pes) {
    *why = fmt::format("{} nodes: expected 1..{}, no more than there are PEs", nodes, pes);
    return Errc::invalid_param;
  }
  std::vector<PePlace> places(pes);
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    // The first pes % nodes nodes have one PE more.
    const std::uint32_t small = pes / nodes;
    const std::uint32_t large_pes = pes % nodes * (small + 1);
    const std::uint32_t node = pe < large_pes ? pe / (small + 1) : pes % nodes + (pe - large_pes) / small;
    places[pe] = {first_nid + node, first_nid + node, node};
  }
  return Placement(std::move(places));
}

Result<Placement> Placement::parse(std::string_view text, std::uint32_t pes, std::string* why) {
  if (!accepted_pe_count(pes, why)) return Errc::invalid_param;
  PlaceFileParser parser(pes);
  *why = parser.parse(text);
  if (!why->empty()) return Errc::invalid_param;
  return Placement(parser.take());
}

Result<Placement> Placement::from_process_mapping(std::string_view text, std::uint32_t pes,
                                                  std::uint32_t first_nid) {
  // "(vector,(first,nodes,per_node),...)": the blocks are repeated until every PE has a node.
  struct Block {
    std::uint32_t first, nodes, per_node;
  };
  if (!text.starts_with("(vector,") || !text.ends_with("))") || pes == 0 || pes > kMaxPes)
    return Errc::corrupt;
  text.remove_prefix(8);
  text.remove_suffix(1);
  std::vector<Block> blocks;
  std::uint64_t in_blocks = 0;
  while (!text.empty()) {
    const auto close = text.find(')');
    if (text.front() != '(' || close == std::string_view::npos) return Errc::corrupt;
    std::string_view inner = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    std::uint32_t numbers[3];
    for (int i = 0; i < 3; ++i) {
      const auto comma = i < 2 ? inner.find(',') : inner.size();
      if (comma == std::string_view::npos) return Errc::corrupt;
      const auto number = parse_number(inner.substr(0, comma), kMaxPes);
      if (!number) return Errc::corrupt;
      numbers[i] = *number;
      inner.remove_prefix(std::min(comma + 1, inner.size()));
    }
    if (numbers[1] == 0 || numbers[2] == 0) return Errc::corrupt;
    blocks.push_back({numbers[0], numbers[1], numbers[2]});
    in_blocks += static_cast<std::uint64_t>(numbers[1]) * numbers[2];
  }
  if (in_blocks == 0) return Errc::corrupt;
  std::vector<PePlace> places;
  while (places.size() < pes) {
    for (const Block& block : blocks) {
      for (std::uint32_t i = 0; i < block.nodes * block.per_node && places.size() < pes; ++i) {
        const std::uint32_t nid = first_nid + block.first + i / block.per_node;
        places.push_back({nid, nid, 0});
      }
    }
  }
  return Placement(std::move(places));
}

Placement Placement::of(const HostDirectory& directory) {
  std::vector<PePlace> places;
  for (std::uint32_t pe = 0; pe < directory.pe_count(); ++pe) {
    places.push_back(directory.place_of(pe).value());
  }
  return Placement(std::move(places));
}

std::vector<std::uint32_t> Placement::clique_of(std::uint32_t pe) const {
  std::vector<std::uint32_t> clique;
  for (std::uint32_t other = 0; other < pe_count(); ++other) {
    if (pes_[other].node_index == pes_[pe].node_index) clique.push_back(other);
  }
  return clique;
}

std::string Placement::process_mapping() const {
  std::string text = "(vector";
  std::uint32_t pe = 0;
  while (pe < pe_count()) {
    // A run of PEs on one node, then as many following nodes with runs of the same length as there are.
    const std::uint32_t first = pes_[pe].node_index;
    const auto run_at = [&](std::uint32_t start) {
      std::uint32_t end = start;
      while (end < pe_count() && pes_[end].node_index == pes_[start].node_index) ++end;
      return end - start;
    };
    const std::uint32_t per_node = run_at(pe);
    std::uint32_t nodes = 0;
    while (pe < pe_count() && pes_[pe].node_index == first + nodes && run_at(pe) == per_node) {
      pe += per_node;
      ++nodes;
    }
    text += fmt::format(",({},{},{})", first, nodes, per_node);
  }
  return text + ")";
}

}  // namespace orrery::job
