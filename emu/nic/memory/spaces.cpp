// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Registrations of the whole address space: rights for all of it, and the memory file for what is hot in it.
#include "emu/base/log.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/port.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/state/extent_state.hpp"

#include <chrono>

namespace orrery::nic {

Result<MemKey> Regions::register_space(const Port& port, std::uint8_t flags, CompletionQueue* queue) {
  RegistrationTable::Entry entry;
  entry.domain = port.domain;
  entry.flags = flags;
  if (queue != nullptr) queue->become_destination();
  entry.queue_plus_1 = queue == nullptr ? 0 : queue->index() + 1;
  entry.space = true;
  entry.state = RegionState::by_frame;
  return insert(entry, 0);
}

// Moves what can be moved around a page that peers ask for, and says so to them. Service thread.
void Regions::adopt_extent(std::uint64_t page) {
  // Under a clock memory is moved when it is registered, or not at all.
  if (!options_.may_adopt || clock_ != nullptr || page >= kSpaceBytes) return;
  const std::uint64_t low = page & ~(kExtentBytes - 1);
  ExtentMap& extents = table_.extents();
  // What is around it is asked for only when none of it can leave without being told: from start() on.
  if (!extents.start({low, low + kExtentBytes})) return;
  const HostServices::Pages run = services_.adoptable_around(page, low, low + kExtentBytes);
  const Status adopted =
      run.begin == run.end ? Status{Errc::unsupported} : adopt_range(run.begin, run.end, false);
  Errc published = adopted.code();
  if (adopted.ok()) {
    published = extents.publish({run.begin, run.end}, [&] {
      const auto range = services_.inspect(run.begin, run.end - run.begin);
      return range.ok() && range.value().direct && range.value().writable;
    });
  }
  extents.finish();
  if (published == Errc::ok)
    log::debug("extent at {:#x}: {} pages of it are direct from now on", low,
               (run.end - run.begin) / kPageBytes);
  else
    log::debug("extent at {:#x} is not direct: {}", low, errc_name(published));
}

ExtentMap::Token Regions::leave_pages(std::uint64_t begin, std::uint64_t end) {
  const ExtentMap::Token token = table_.extents().leave(begin, end);
  // A part that the service thread is moving. It does not wait for us, but for a lock of the program's
  // allocator, perhaps, that our thread has: so not for ever.
  {
    std::unique_lock lock(moving_mu_);
    switched_.wait_for(lock, std::chrono::nanoseconds(options_.drain_limit_ns),
                       [&] { return end <= switching_.begin || switching_.end <= begin; });
  }
  // A peer that is stalled stores into a page of the file that no process maps any more. Whether it lives is
  // not asked: that would allocate.
  (void)table_.drain_spaces([](std::uint32_t) { return true; }, options_.drain_limit_ns);
  return token;
}

}  // namespace orrery::nic
