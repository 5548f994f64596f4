// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/fault.hpp"

#include <algorithm>
#include <random>

namespace orrery::nic {

namespace {

std::array<std::uint64_t, 2> name_of(const MemKey& key) {
  return {key.page, std::uint64_t{key.process} << 32 | std::uint64_t{key.generation} << 16 | key.index};
}

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

// Not in the header, which nearly every source of the NIC reads.
struct FaultUnit::Rng {
  std::mt19937_64 random;
};

FaultUnit::FaultUnit(const FaultSpec& spec, std::int32_t pe, FaultCounters& counters)
    : spec_(spec),
      concerned_(spec.pes.empty() || std::find(spec.pes.begin(), spec.pes.end(), pe) != spec.pes.end()),
      counters_(counters),
      // Every PE its own sequence.
      rng_(new Rng{std::mt19937_64(spec.seed * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(pe + 1))}) {}

FaultUnit::~FaultUnit() = default;

// REQUIRES: mu_ is held.
bool FaultUnit::happens(const FaultWhen& when) {
  if (when.operation != 0) return when.operation == operation_;
  return when.chance > 0 && std::uniform_real_distribution<>(0, 1)(rng_->random) < when.chance;
}

// REQUIRES: mu_ is held.
bool FaultUnit::is_dead(std::uint32_t address) const {
  return std::any_of(spec_.dead.begin(), spec_.dead.end(), [&](const DeadNode& node) {
    return node.nic_address == address && operation_ >= node.from;
  });
}

bool FaultUnit::is_cut(std::uint32_t from, std::uint32_t to) {
  const std::lock_guard lock(mu_);
  return concerned_ && (is_dead(from) || is_dead(to));
}

FaultOutcome FaultUnit::decide(const Query& query) {
  FaultOutcome met;
  if (!concerned_) return met;
  const std::lock_guard lock(mu_);
  ++operation_;
  if (is_dead(query.from) || is_dead(query.to)) {
    count(counters_.unreachable);
    met.status = Errc::unreachable;
    return met;
  }
  if (query.key.valid()) {
    if (happens(spec_.revoke)) revoked_.insert(name_of(query.key));
    if (revoked_.count(name_of(query.key)) != 0) {
      count(counters_.revoked);
      met.status = Errc::invalid_handle;
      return met;
    }
  }
  for (std::uint32_t left = std::max(query.tries, 1u);;) {
    --left;
    int crossed = 0;
    // The one operation that was named meets one error; by chance, each try may.
    while (crossed < kLinkTries && (spec_.link.operation == 0 || crossed == 0) && happens(spec_.link))
      ++crossed;
    met.link_errors += static_cast<std::uint32_t>(crossed);
    met.status = crossed == kLinkTries    ? Errc::unreachable
                 : happens(spec_.corrupt) ? Errc::corrupt
                 : happens(spec_.drop)    ? Errc::timeout
                                          : Errc::ok;
    if (met.status == Errc::corrupt) count(counters_.corrupted);
    if (met.status == Errc::timeout) count(counters_.dropped);
    if (met.status == Errc::unreachable) count(counters_.links_failed);
    if (met.status == Errc::ok || met.status == Errc::unreachable || left == 0) break;
    // A fault of one operation alone does not meet it again.
    if ((met.status == Errc::corrupt ? spec_.corrupt : spec_.drop).operation != 0) met.status = Errc::ok;
    count(counters_.retransmitted);
    ++met.retransmits;
    if (met.status == Errc::ok) break;
  }
  count(counters_.link_errors, met.link_errors);
  if (met.status == Errc::ok && query.can_wait && happens(spec_.delay)) {
    count(counters_.delayed);
    met.delay_ns = spec_.delay_ns;
  }
  return met;
}

}  // namespace orrery::nic
