// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "emu/clock/look_source.hpp"

#include "emu/base/check.hpp"
#include "emu/base/log.hpp"
#include "emu/base/patient_wait.hpp"
#include "emu/nic/gate/timed.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <bit>

namespace orrery::nic {

namespace {

// A blocking wait looks again at least this often: a thread that polls takes in answers to frames of ours.
constexpr std::int64_t kWaitSliceNs = 50'000'000;
// How long a process that ends waits for room for what it has posted. A peer that is stopped makes none.
constexpr std::int64_t kLastWordsNs = 1'000'000'000;

}  // namespace

Nic::Nic(HostServices& services, NicView view, wire::ProcessSlot self, const Options& options)
    : view_(view),
      always_moves_(services.clock() != nullptr || options.faults.any()),
      polls_(services.wait_budget().spins == 0),
      services_(services),
      self_(self),
      options_(options),
      clock_(services.clock()),
      board_(services.hazard_board()),
      timed_(clock_ != nullptr ? std::make_unique<TimedOps>() : nullptr),
      arena_(view),
      registrations_(
          view, services.self().generation,
          [this](std::uint64_t bytes) { return arena_.take(bytes, Arena::Use::segment_list); },
          [this](std::uint64_t offset, std::uint64_t bytes) {
            arena_.give_back(offset, bytes, Arena::Use::segment_list);
          },
          board_),
      ports_(errors_),
      queues_(view, arena_),
      peers_(services, self_),
      // A multiplier that spreads neighbouring process ids over the generations.
      outstanding_(static_cast<std::uint32_t>(view.header().pid) * 2654435761u >> 10),
      faults_(options.faults.any()
                  ? std::make_unique<FaultUnit>(options.faults, options.fault_pe, error_state(view_).faults)
                  : nullptr),
      datagrams_(
          services, view,
          {.connect = [this](ProcessName process) { return peers_.connect(process); },
           .send = [this](Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> data,
                          const Completion& told) { return send_packet(peer, header, data, told); },
           .is_cut = [this](std::uint32_t from,
                            std::uint32_t to) { return faults_ != nullptr && faults_->is_cut(from, to); },
           .progress = [this] { progress(clock::free_source(&view_)); }}),
      channels_(services, view),
      collective_(*this),
      bte_(*this) {
  if (clock_ != nullptr) {
    clock_->set_look([](void* self) { static_cast<Nic*>(self)->collective_.progress_in_turn(); }, this);
  }
  AmoCache(view_).set_up(options_.amo_cache_entries, options_.amo_cache_mode);
  // Accesses of our own threads to our own memory are announced like those of peers.
  view_.service().sources[self_ / 64].fetch_or(1ull << self_ % 64, std::memory_order_seq_cst);
}

Nic::~Nic() { close(); }

// What was posted and found no room in a lane yet is in this process's memory alone: the lanes take it before
// the process is gone, if their owners live and make room. Locks are tried for only: the program may end in a
// signal handler, above a call that holds one.
void Nic::send_the_rest() {
  if (clock_ != nullptr) return;  // under a clock an end has its place in the order of time
  const auto any_waits = [this] {
    const std::unique_lock lock(frames_mu_, std::try_to_lock);
    return !lock.owns_lock() || std::any_of(lane_peers_.begin(), lane_peers_.end(), [](const Peer* peer) {
      return !peer->waiting.empty() && !peer->dead.load(std::memory_order_relaxed);
    });
  };
  const std::int64_t deadline = monotonic_ns() + kLastWordsNs;
  for (; any_waits() && monotonic_ns() < deadline; yield_cpu()) (void)poll_responses();
}

void Nic::end() {
  bte_.end();
  send_the_rest();
  close();
}

void Nic::close() {
  bte_.end();
  view_.header().stage.store(Stage::closed, std::memory_order_release);
}

// ---- ports ----

Port* Nic::open_port(std::uint16_t domain, std::uint32_t nic_address, std::uint32_t instance) {
  return ports_.open(domain, nic_address, instance);
}

void Nic::close_port(Port* port) {
  collective_.forget(*port);
  ports_.close(port);
}

// ---- memory ----

Result<MemKey> Nic::insert_region(RegistrationTable::Entry entry) {
  const auto key = [&] {
    // Only their owner may write pages that are being moved right now.
    const std::lock_guard lock(moving_mu_);
    const auto moves = [&](std::uint64_t address, std::uint64_t length) {
      return address < moving_.end && moving_.begin < address + length;
    };
    bool any = entry.segments.empty() && moves(entry.address, entry.space ? kSpaceBytes : entry.length);
    for (const Segment& segment : entry.segments) any = any || moves(segment.address, segment.length);
    if (any && entry.state == RegionState::by_frame) entry.state = RegionState::moving;
    return registrations_.insert(entry);
  }();
  if (!key.ok()) return key;
  log::debug("region {}: {} bytes at {:#x}, {}", key.value().index, entry.length, entry.address,
             entry.state == RegionState::direct ? "direct: in the memory file"
             : !options_.may_adopt     ? "by frame for good: ORRERY_ADOPT=never, or there is no memory file"
             : options_.eager_adoption ? "by frame until it has been moved, now: adoption is eager"
                                       : "by frame until it is used often");
  if (options_.eager_adoption && options_.may_adopt && entry.state == RegionState::by_frame && !entry.space) {
    struct Work {
      Nic* nic;
      std::uint32_t index;
    } work{this, key.value().index};
    services_.run_on_service_thread(
        [](void* argument) {
          auto* w = static_cast<Work*>(argument);
          w->nic->adopt_region(w->index);
        },
        &work);
  }
  // No PE waits for what no peer may write; and the program may have mapped it so that it is not writable.
  if ((entry.flags & kReadOnly) == 0) watch_region(key.value().index);
  return key;
}

Result<MemKey> Nic::register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                    std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held) {
  if (length == 0 || address + length < address) return Errc::invalid_param;
  if (clock_ != nullptr) clock_->before_inspection();
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
  return insert_region(entry);
}

Result<MemKey> Nic::register_segments(const Port& port, std::span<const Segment> segments, std::uint8_t flags,
                                      CompletionQueue* queue) {
  if (segments.empty()) return Errc::invalid_param;
  if (clock_ != nullptr) clock_->before_inspection();
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
  return insert_region(entry);
}

// Under a clock, a program may wait by reading what peers store here.
void Nic::watch_region(std::uint32_t index) {
  if (clock_ == nullptr || registrations_.state_of(index) != RegionState::direct) return;
  for (const auto& range : registrations_.ranges_of(index)) clock_->watch(range.begin, range.end);
}

Status Nic::deregister(const MemKey& key) {
  const auto word = registrations_.find(key);
  if (!word.ok()) return word.code();
  if (clock_ != nullptr) {
    clock_->before_inspection();
    if ((key.flags & kSpace) == 0)
      for (const auto& range : registrations_.ranges_of(key.index)) clock_->unwatch(range.begin, range.end);
  }
  // Looked at before a successor's list may stand there.
  const auto ranges = AmoCache(view_).was_used() ? registrations_.ranges_of(key.index)
                                                 : std::vector<RegistrationTable::Range>{};
  const Status removed = registrations_.remove(
      key,
      {.alive =
           [this](std::uint32_t slot) { return services_.slot_alive(static_cast<wire::ProcessSlot>(slot)); },
       .stopped =
           [this](std::uint32_t slot) {
             return services_.slot_stopped(static_cast<wire::ProcessSlot>(slot));
           }},
      options_.drain_limit_ns,
      [this, &key](std::span<const RegistrationTable::Range> moving) {
        // A thread of ours that is applying a frame right now holds this.
        { const std::lock_guard lock(requests_mu_); }
        await_switch(key.index);
        for (const auto& range : moving) services_.settle(range.begin, range.end);
      },
      [this](std::uint64_t begin, std::uint64_t end) { cut_off(begin, end); });
  if (!removed.ok()) return removed;
  for (const auto& range : ranges) flush_amo_cache(range.begin, range.end);
  collective_.settle();
  return {};
}

// Returns when the service thread is at no page of the region, which is no one's any more: the program may
// give the pages back to the system then.
void Nic::await_switch(std::uint32_t region) {
  std::unique_lock lock(moving_mu_);
  if (switching_.begin == switching_.end) return;
  const auto ranges = registrations_.ranges_of(region);
  switched_.wait(lock, [&] {
    return std::none_of(ranges.begin(), ranges.end(), [&](const RegistrationTable::Range& range) {
      return range.begin < switching_.end && switching_.begin < range.end;
    });
  });
}

// Gives pages private memory again; before that it ends direct access to other registrations of them.
void Nic::cut_off(std::uint64_t begin, std::uint64_t end) {
  struct Work {
    Nic* nic;
    std::uint64_t begin, end;
  } work{this, begin, end};
  // On the service thread, where nothing is being adopted meanwhile.
  services_.run_on_service_thread(
      [](void* argument) {
        const auto* w = static_cast<Work*>(argument);
        RegistrationTable& table = w->nic->registrations_;
        HostServices& services = w->nic->services_;
        const ExtentMap::Token token = table.extents().leave(w->begin, w->end);
        table.change_state(w->begin, w->end, RegionState::direct, RegionState::moving);
        // Of the whole space too, whose state says nothing of these pages.
        table.change_state(w->begin, w->end, RegionState::by_frame, RegionState::moving);
        (void)table.drain_range(
            w->begin, w->end,
            [&](std::uint32_t slot) { return services.slot_alive(static_cast<wire::ProcessSlot>(slot)); },
            w->nic->options_.drain_limit_ns);
        services.cut_off(w->begin, w->end);
        table.extents().left(token);
        table.settle_moving([&](std::uint64_t from, std::uint64_t to) {
          const auto info = services.inspect(from, to - from);
          return info.ok() && info.value().direct;
        });
      },
      &work);
}

void Nic::flush_amo_cache(std::uint64_t begin, std::uint64_t end) {
  struct Work {
    Nic* nic;
    std::uint64_t begin, end;
  } work{this, begin, end};
  // Frames are applied under this lock, and with them everything that a lazy cache does.
  const std::lock_guard lock(requests_mu_);
  // Each page that is not there any more loses the entry that it was found by, so this ends.
  while (services_.guarded(
             [](void* argument) {
               const auto* w = static_cast<Work*>(argument);
               AmoCache(w->nic->view_).flush(w->nic->identity_, w->begin, w->end);
               return Errc::ok;
             },
             &work) != Errc::ok) {
  }
}

// ---- queues ----

Status Nic::destroy_queue(CompletionQueue* queue) {
  return queues_.destroy(queue, [this](std::uint32_t index) {
    const bool unused = registrations_.forget_queue(
        index,
        [this](std::uint32_t slot) { return services_.slot_alive(static_cast<wire::ProcessSlot>(slot)); },
        options_.drain_limit_ns);
    // A thread of ours that is applying a frame right now holds this.
    { const std::lock_guard applying(requests_mu_); }
    // Else a peer that is stalled in the middle of an access may raise one more event.
    return unused;
  });
}

Errc Nic::wait(CompletionQueue& queue, std::optional<std::int64_t> deadline_ns) {
  if (clock_ != nullptr && clock_->is_virtual()) [[unlikely]] {
    CompletionQueue* const only[] = {&queue};
    std::uint32_t found = 0;
    return wait_timed(only, deadline_ns, &found);
  }
  const auto has_news = [&] {
    if (queue.test() != Errc::not_done) return true;
    progress();
    return queue.test() != Errc::not_done;
  };
  if (look_before_sleep(services_.wait_budget(), has_news, deadline_ns)) return Errc::ok;
  hand_frames_back();
  CqState& state = *queue.view().state;
  // Announced before the ring is looked at again: see push_event.
  state.waiters.fetch_add(1, std::memory_order_seq_cst);
  Errc result = Errc::timeout;
  for (;;) {
    const std::uint32_t signal = state.signal.load(std::memory_order_acquire);
    if (has_news()) {
      result = Errc::ok;
      break;
    }
    const std::int64_t now = monotonic_ns();
    if (deadline_ns && now >= *deadline_ns) break;
    const std::int64_t slice = now + kWaitSliceNs;
    futex_wait(state.signal, signal, deadline_ns ? std::min(*deadline_ns, slice) : slice);
  }
  state.waiters.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

}  // namespace orrery::nic
