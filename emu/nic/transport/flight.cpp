// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/flight.hpp"

#include "emu/base/check.hpp"

#include <bit>

namespace orrery::nic {

namespace {
constexpr std::uint32_t kIndexBits = std::countr_zero(FlightTable::kCapacity);
constexpr std::uint32_t kIndexMask = FlightTable::kCapacity - 1;
constexpr std::uint32_t name_of(std::uint32_t index, std::uint32_t generation) {
  return generation << kIndexBits | index;
}
}  // namespace

FlightTable::FlightTable(std::uint32_t first_generation) : flights_(kCapacity) {
  for (Flight& flight : flights_) flight.generation = first_generation & (UINT32_MAX >> kIndexBits);
  free_.reserve(kCapacity);
  for (std::uint32_t i = kCapacity; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

std::optional<std::uint32_t> FlightTable::open() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Flight& flight = flights_[index];
  flight.generation = (flight.generation + 1) & (UINT32_MAX >> kIndexBits);
  flight.open = true;
  ++open_count_;
  return name_of(index, flight.generation);
}

Flight* FlightTable::find(std::uint32_t name) {
  Flight& flight = flights_[name & kIndexMask];
  return flight.open && flight.generation == name >> kIndexBits ? &flight : nullptr;
}

void FlightTable::close(std::uint32_t name) {
  Flight* flight = find(name);
  ORRERY_CHECK(flight != nullptr, "flight {} is not open", name);
  flight->open = false;
  flight->start_anew();
  free_.push_back(static_cast<std::uint16_t>(name & kIndexMask));
  --open_count_;
}

std::vector<std::uint32_t> FlightTable::names() const {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    if (flights_[i].open) names.push_back(name_of(i, flights_[i].generation));
  }
  return names;
}

std::vector<std::uint32_t> FlightTable::names_for(const Peer& peer) const {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    if (flights_[i].open && flights_[i].peer == &peer) names.push_back(name_of(i, flights_[i].generation));
  }
  return names;
}

}  // namespace orrery::nic
