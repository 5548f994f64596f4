// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/regions.hpp"

#include "emu/base/log.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/state/mdh.hpp"
#include "emu/nic/target/amo_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::nic {

Regions::Regions(HostServices& services, NicView view, wire::ProcessSlot self, Arena& arena,
                 const Options& options, Hooks hooks)
    : services_(services),
      view_(view),
      self_(self),
      options_(options),
      clock_(services.clock()),
      hooks_(std::move(hooks)),
      table_(
          view, services.self().generation,
          [&arena](std::uint64_t bytes) { return arena.take(bytes, Arena::Use::segment_list); },
          [&arena](std::uint64_t offset, std::uint64_t bytes) {
            arena.give_back(offset, bytes, Arena::Use::segment_list);
          },
          services.hazard_board()) {}

Result<MemKey> Regions::insert(RegistrationTable::Entry entry, std::uint32_t seen) {
  const auto key = [&]() -> Result<MemKey> {
    // Only their owner may write pages that are being moved, or cut off, right now.
    const std::lock_guard lock(moving_mu_);
    const bool direct = entry.state == RegionState::direct;
    if (direct && cuts_.load(std::memory_order_relaxed) != seen) return Errc::not_done;
    const auto meets = [&entry](const RegistrationTable::Range& range) {
      const auto has = [&range](std::uint64_t address, std::uint64_t length) {
        return address < range.end && range.begin < address + length;
      };
      if (entry.segments.empty()) return has(entry.address, entry.space ? kSpaceBytes : entry.length);
      return std::any_of(entry.segments.begin(), entry.segments.end(),
                         [&has](const Segment& segment) { return has(segment.address, segment.length); });
    };
    if (meets(direct ? cutting_ : moving_)) entry.state = RegionState::moving;
    return table_.insert(entry);
  }();
  if (!key.ok()) return key;
  log::debug("region {}: {} bytes at {:#x}, {}", key.value().index, entry.length, entry.address,
             entry.state == RegionState::direct ? "direct: in the memory file"
             : !options_.may_adopt     ? "by frame for good: ORRERY_ADOPT=never, or there is no memory file"
             : options_.eager_adoption ? "by frame until it has been moved, now: adoption is eager"
                                       : "by frame until it is used often");
  if (options_.eager_adoption && options_.may_adopt && entry.state == RegionState::by_frame && !entry.space) {
    struct Work {
      Regions* regions;
      std::uint32_t index;
    } work{this, key.value().index};
    services_.run_on_service_thread(
        [](void* argument) {
          auto* w = static_cast<Work*>(argument);
          w->regions->adopt_region(w->index);
        },
        &work);
  }
  // No PE waits for what no peer may write; and the program may have mapped it so that it is not writable.
  if ((entry.flags & kReadOnly) == 0) watch(key.value().index);
  return key;
}

Result<MemKey> Regions::register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                        std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held) {
  if (length == 0 || address + length < address) return Errc::invalid_param;
  if (clock_ != nullptr) clock_->before_inspection();
  const std::uint32_t seen = cuts_.load(std::memory_order_acquire);
  const auto range = services_.inspect(address, length);
  if (!range.ok()) return range.code();
  if (!range.value().readable) return Errc::invalid_param;
  if (!range.value().writable && (flags & kReadOnly) == 0) return Errc::permission;
  RegistrationTable::Entry entry;
  entry.domain = port.domain;
  entry.flags = flags;
  if (queue != nullptr) queue->become_destination();
  entry.queue_plus_1 = queue == nullptr ? 0 : queue->index() + 1;
  entry.address = address;
  entry.length = length;
  entry.state = range.value().direct ? RegionState::direct : RegionState::by_frame;
  entry.held = held;
  const auto key = insert(entry, seen);
  return key.code() == Errc::not_done ? register_region(port, address, length, flags, queue, held) : key;
}

Result<MemKey> Regions::register_segments(const Port& port, std::span<const Segment> segments,
                                          std::uint8_t flags, CompletionQueue* queue) {
  if (segments.empty()) return Errc::invalid_param;
  if (clock_ != nullptr) clock_->before_inspection();
  const std::uint32_t seen = cuts_.load(std::memory_order_acquire);
  RegistrationTable::Entry entry;
  bool direct = true;
  for (const Segment& segment : segments) {
    if (segment.length == 0 || segment.address + segment.length < segment.address) return Errc::invalid_param;
    const auto range = services_.inspect(segment.address, segment.length);
    if (!range.ok()) return range.code();
    if (!range.value().readable) return Errc::invalid_param;
    if (!range.value().writable && (flags & kReadOnly) == 0) return Errc::permission;
    direct = direct && range.value().direct;
  }
  entry.domain = port.domain;
  entry.flags = flags;
  if (queue != nullptr) queue->become_destination();
  entry.queue_plus_1 = queue == nullptr ? 0 : queue->index() + 1;
  entry.segments = segments;
  entry.state = direct ? RegionState::direct : RegionState::by_frame;
  const auto key = insert(entry, seen);
  return key.code() == Errc::not_done ? register_segments(port, segments, flags, queue) : key;
}

// Under a clock, a program may wait by reading what peers store here.
void Regions::watch(std::uint32_t index) {
  if (clock_ == nullptr || table_.state_of(index) != RegionState::direct) return;
  for (const auto& range : table_.ranges_of(index)) clock_->watch(range.begin, range.end);
}

Status Regions::deregister(const MemKey& key) {
  const auto word = table_.find(key);
  if (!word.ok()) return word.code();
  if (clock_ != nullptr) {
    clock_->before_inspection();
    if ((key.flags & kSpace) == 0)
      for (const auto& range : table_.ranges_of(key.index)) clock_->unwatch(range.begin, range.end);
  }
  // Looked at before a successor's list may stand there.
  const auto ranges =
      AmoCache(view_).was_used() ? table_.ranges_of(key.index) : std::vector<RegistrationTable::Range>{};
  const Status removed = table_.remove(
      key,
      {.alive = [this](std::uint32_t slot) { return alive(slot); },
       .stopped =
           [this](std::uint32_t slot) {
             return services_.slot_stopped(static_cast<wire::ProcessSlot>(slot));
           }},
      options_.drain_limit_ns,
      [this, &key](std::span<const RegistrationTable::Range> moving) {
        hooks_.await_frames();
        await_switch(key.index);
        for (const auto& range : moving) services_.settle(range.begin, range.end);
      },
      [this](std::uint64_t begin, std::uint64_t end) { cut_off(begin, end); });
  if (!removed.ok()) return removed;
  for (const auto& range : ranges) hooks_.flush_amo_cache(range.begin, range.end);
  hooks_.removed();
  return {};
}

// Returns when the service thread is at no page of the region, which is no one's any more: the program may
// give the pages back to the system then.
void Regions::await_switch(std::uint32_t region) {
  std::unique_lock lock(moving_mu_);
  if (switching_.begin == switching_.end) return;
  const auto ranges = table_.ranges_of(region);
  switched_.wait(lock, [&] {
    return std::none_of(ranges.begin(), ranges.end(), [&](const RegistrationTable::Range& range) {
      return range.begin < switching_.end && switching_.begin < range.end;
    });
  });
}

// Gives pages private memory again; before that it ends direct access to other registrations of them.
void Regions::cut_off(std::uint64_t begin, std::uint64_t end) {
  struct Work {
    Regions* regions;
    std::uint64_t begin, end;
  } work{this, begin, end};
  // On the service thread, where nothing is being adopted meanwhile.
  services_.run_on_service_thread(
      [](void* argument) {
        const auto* w = static_cast<Work*>(argument);
        RegistrationTable& table = w->regions->table_;
        HostServices& services = w->regions->services_;
        w->regions->set_cutting({w->begin, w->end});
        const ExtentMap::Token token = table.extents().leave(w->begin, w->end);
        table.change_state(w->begin, w->end, RegionState::direct, RegionState::moving);
        // Of the whole space too, whose state says nothing of these pages.
        table.change_state(w->begin, w->end, RegionState::by_frame, RegionState::moving);
        (void)table.drain_range(
            w->begin, w->end,
            [&](std::uint32_t slot) { return services.slot_alive(static_cast<wire::ProcessSlot>(slot)); },
            w->regions->options_.drain_limit_ns);
        services.cut_off(w->begin, w->end);
        table.extents().left(token);
        w->regions->set_cutting({});
        table.settle_moving([&](std::uint64_t from, std::uint64_t to) {
          const auto info = services.inspect(from, to - from);
          return info.ok() && info.value().direct;
        });
      },
      &work);
}

void Regions::set_cutting(RegistrationTable::Range range) {
  const std::lock_guard lock(moving_mu_);
  cutting_ = range;
  cuts_.fetch_add(1, std::memory_order_release);
}

bool Regions::forget_queue(std::uint32_t queue) {
  const bool unused = table_.forget_queue(
      queue, [this](std::uint32_t slot) { return alive(slot); }, options_.drain_limit_ns);
  hooks_.await_frames();
  return unused;
}

MemKey Regions::own_by_number(std::uint16_t domain, const MemKey& key, std::uint64_t* address) const {
  const NumberedEntry entry = find_numbered(view_, domain, key.index, (key.flags & kVirtual) != 0);
  if (entry.index == kMaxRegions) return {};
  *address = address_by_number(view_.region(entry.index), entry.control, *address);
  return {.index = static_cast<std::uint16_t>(entry.index),
          .generation = control::generation(entry.control),
          .process = self_,
          .flags = static_cast<std::uint8_t>(control::flags(entry.control) & (kReadOnly | kSegmented))};
}

}  // namespace orrery::nic
