// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/fat_tree.hpp"

namespace orrery::model {

namespace {

constexpr std::uint32_t digit(std::uint32_t value, std::uint32_t i) { return (value >> (2 * i)) & 3; }
constexpr std::uint32_t with_digit(std::uint32_t value, std::uint32_t i, std::uint32_t d) {
  return (value & ~(3u << (2 * i))) | d << (2 * i);
}

}  // namespace

Result<FatTree> FatTree::make(std::uint32_t levels) {
  if (levels == 0 || levels > kMaxLevels) return Errc::invalid_param;
  FatTree t;
  t.levels_ = levels;
  return t;
}

LinkEnds FatTree::ends(LinkId link) const {
  const std::uint32_t boundary = boundary_of(link), position = link & (nodes() - 1);
  const std::uint32_t index = position / kArity, port = position % kArity;
  if (is_up(link)) {
    if (boundary == 0) return {vertex_of(position), switch_id(0, index)};
    return {switch_id(boundary - 1, index), switch_id(boundary, with_digit(index, boundary - 1, port))};
  }
  if (boundary == 0) return {switch_id(0, index), vertex_of(position)};
  return {switch_id(boundary, index), switch_id(boundary - 1, with_digit(index, boundary - 1, port))};
}

std::uint32_t FatTree::up_from(std::uint32_t level, std::uint32_t index, std::uint32_t port) const {
  return with_digit(index, level, port);
}

void FatTree::route(NodeId src, NodeId dst, std::uint64_t seed, Route* out) const {
  if (src == dst) return;
  Choices choices(seed);
  const std::uint32_t top = nca_level(src, dst);
  out->push(up_link(0, src));
  std::uint32_t index = src / kArity;
  for (std::uint32_t level = 0; level < top; ++level) {
    const std::uint32_t port = choices.below(kArity);
    out->push(up_link(level + 1, index * kArity + port));
    index = with_digit(index, level, port);
  }
  descend(top, index, dst, out);
}

void FatTree::descend(std::uint32_t level, std::uint32_t index, NodeId dst, Route* out) const {
  for (; level > 0; --level) {
    const std::uint32_t port = digit(dst, level);
    out->push(down_link(level, index * kArity + port));
    index = with_digit(index, level - 1, port);
  }
  out->push(down_link(0, dst));
}

Result<FatTree::Multicast> FatTree::multicast(NodeId src, NodeId first, NodeId last) const {
  if (src >= nodes() || first > last || last >= nodes()) return Errc::invalid_param;
  Multicast m;
  std::uint32_t level = 0;
  while ((src >> (2 * level + 2)) != (first >> (2 * level + 2)) ||
         (src >> (2 * level + 2)) != (last >> (2 * level + 2))) {
    ++level;
  }
  m.root_level = level;
  std::uint32_t index = src / kArity;
  for (std::uint32_t l = 0; l < level; ++l) index = with_digit(index, l, 0);
  m.root = switch_id(level, index);
  // Below the root a subtree of 4^l nodes gets one copy when the set touches it.
  for (std::uint32_t l = 0; l <= level; ++l) m.branches += (last >> (2 * l)) - (first >> (2 * l)) + 1;
  return m;
}

bool FatTree::contiguous(std::span<const NodeId> sorted) {
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] != sorted[i - 1] + 1) return false;
  }
  return !sorted.empty();
}

}  // namespace orrery::model
