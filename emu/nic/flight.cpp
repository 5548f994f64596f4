// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/flight.hpp"

#include "emu/base/check.hpp"

namespace orrery::nic {

namespace {
constexpr std::uint32_t name_of(std::uint32_t index, std::uint16_t generation) {
  return static_cast<std::uint32_t>(generation) << 16 | index;
}
}  // namespace

FlightTable::FlightTable() : flights_(kCapacity) {
  free_.reserve(kCapacity);
  for (std::uint32_t i = kCapacity; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
}

std::optional<std::uint32_t> FlightTable::open() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = free_.back();
  free_.pop_back();
  const auto generation = static_cast<std::uint16_t>(flights_[index].generation + 1);
  flights_[index] = Flight{};
  flights_[index].generation = generation;
  flights_[index].open = true;
  ++open_count_;
  return name_of(index, generation);
}

Flight* FlightTable::find(std::uint32_t name) {
  const std::uint32_t index = name & 0xffff;
  if (index >= kCapacity) return nullptr;
  Flight& flight = flights_[index];
  return flight.open && flight.generation == name >> 16 ? &flight : nullptr;
}

void FlightTable::close(std::uint32_t name) {
  Flight* flight = find(name);
  ORRERY_CHECK(flight != nullptr, "flight {} is not open", name);
  flight->open = false;
  free_.push_back(static_cast<std::uint16_t>(name & 0xffff));
  --open_count_;
}

std::vector<std::uint32_t> FlightTable::names_for(const Peer& peer) const {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    if (flights_[i].open && flights_[i].peer == &peer) names.push_back(name_of(i, flights_[i].generation));
  }
  return names;
}

}  // namespace orrery::nic
