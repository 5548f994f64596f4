// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/outstanding.hpp"

#include "emu/base/check.hpp"

#include <bit>

namespace orrery::nic {

namespace {
constexpr std::uint32_t kIndexBits = std::countr_zero(OutstandingTable::kCapacity);
constexpr std::uint32_t kIndexMask = OutstandingTable::kCapacity - 1;
constexpr std::uint32_t name_of(std::uint32_t index, std::uint32_t generation) {
  return generation << kIndexBits | index;
}
}  // namespace

OutstandingTable::OutstandingTable(std::uint32_t first_generation) : outstanding_(kCapacity) {
  for (Outstanding& outstanding : outstanding_)
    outstanding.generation = first_generation & (UINT32_MAX >> kIndexBits);
  free_.reserve(kCapacity);
  for (std::uint32_t i = kCapacity; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

std::optional<std::uint32_t> OutstandingTable::open() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Outstanding& outstanding = outstanding_[index];
  outstanding.generation = (outstanding.generation + 1) & (UINT32_MAX >> kIndexBits);
  outstanding.open = true;
  ++open_count_;
  return name_of(index, outstanding.generation);
}

Outstanding* OutstandingTable::find(std::uint32_t name) {
  Outstanding& outstanding = outstanding_[name & kIndexMask];
  return outstanding.open && outstanding.generation == name >> kIndexBits ? &outstanding : nullptr;
}

void OutstandingTable::close(std::uint32_t name) {
  Outstanding* outstanding = find(name);
  ORRERY_CHECK(outstanding != nullptr, "outstanding request {} is not open", name);
  outstanding->open = false;
  outstanding->start_anew();
  free_.push_back(static_cast<std::uint16_t>(name & kIndexMask));
  --open_count_;
}

std::vector<std::uint32_t> OutstandingTable::names() const {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    if (outstanding_[i].open) names.push_back(name_of(i, outstanding_[i].generation));
  }
  return names;
}

std::vector<std::uint32_t> OutstandingTable::names_for(const Peer& peer) const {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    if (outstanding_[i].open && outstanding_[i].peer == &peer)
      names.push_back(name_of(i, outstanding_[i].generation));
  }
  return names;
}

}  // namespace orrery::nic
