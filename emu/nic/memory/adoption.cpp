// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Moving registered memory into the memory file, while peers may be using it.
#include "emu/base/log.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/extent_state.hpp"

#include <bit>

namespace orrery::nic {

void Regions::adopt_wanted() {
  if (table_.has_spaces()) {
    for (auto& word : extent_state(view_).wanted) {
      if (word.load(std::memory_order_relaxed) == 0) continue;
      const std::uint64_t page = word.exchange(0, std::memory_order_acquire);
      if (page != 0) adopt_extent((page - 1) * kPageBytes);
    }
  }
  for (std::uint32_t group = 0; group < kMaxRegions / 64; ++group) {
    auto& word = view_.service().adoption_wanted[group];
    if (word.load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = word.exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      adopt_region(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }
}

// REQUIRES: service thread.
void Regions::adopt_region(std::uint32_t index) {
  if (!options_.may_adopt || table_.state_of(index) != RegionState::by_frame ||
      (control::flags(view_.region(index).control.load(std::memory_order_relaxed)) & kSpace) != 0)
    return;
  for (const auto& range : table_.ranges_of(index)) {
    const Status adopted = adopt_range(range.begin, range.end, true);
    if (!adopted.ok()) log::debug("region {} stays by frame: {}", index, errc_name(adopted.code()));
  }
  if (table_.state_of(index) == RegionState::direct)
    log::debug("region {} has been moved into the memory file: direct from now on", index);
}

Status Regions::adopt_range(std::uint64_t begin, std::uint64_t end, bool registered) {
  struct Guard final : HostServices::SwitchGuard {
    Regions& regions;
    const bool registered;
    Guard(Regions& r, bool has) : regions(r), registered(has) {}
    bool before_switch(std::uint64_t from, std::uint64_t to) override {
      // Peers wait no longer than a part takes to move. What comes by frame may wait for such a peer.
      regions.table_.settle_spaces();
      regions.hooks_.take_frames();
      {
        const std::lock_guard lock(regions.moving_mu_);
        regions.switching_ = {from, to};
      }
      regions.switched_.notify_all();
      // The program may have released it since, and given the pages back. Looked at after the above:
      // deregister() does both the other way round.
      if (registered ? !regions.table_.covers_any(from, to) : regions.table_.extents().is_cancelled())
        return false;
      regions.table_.change_state(from, to, RegionState::by_frame, RegionState::moving);
      return regions.table_.drain_range(
          from, to, [this](std::uint32_t slot) { return regions.alive(slot); },
          regions.options_.drain_limit_ns);
    }
  } guard(*this, registered);
  const auto set_moving = [this](RegistrationTable::Range range) {
    {
      const std::lock_guard lock(moving_mu_);
      moving_ = range;
      switching_ = {};
    }
    switched_.notify_all();
  };
  set_moving({begin, end});
  const Status adopted = services_.adopt(begin, end, guard);
  set_moving({});
  table_.settle_moving([this](std::uint64_t from, std::uint64_t to) {
    const auto info = services_.inspect(from, to - from);
    return info.ok() && info.value().direct;
  });
  return adopted;
}

}  // namespace orrery::nic
