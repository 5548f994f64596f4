// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/wait.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/guarded.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"
#include "lib/cci/mapping.hpp"

#include <bit>
#include <cstring>
#include <ctime>

// Remote memory access by the peer's memory file (mapping.hpp). The initiator asks for it by a frame when it
// has used a registration often; the owner's thread moves the memory and sends the file's descriptor, once.
namespace orrery::cci {

namespace {

constexpr std::size_t kMostWork = 64;             // requests that wait for the thread
constexpr std::int64_t kDrainNs = 2'000'000'000;  // for a peer's write that has begun

memory::Range range_of(const Registration& entry) {
  const std::uint64_t start = entry.start.load(std::memory_order_relaxed);
  return {start, start + entry.length.load(std::memory_order_relaxed)};
}

}  // namespace

// ---- the initiator's side ----

// `count`: operations on the registration that did not go by the file. Asked after ORRERY_ADOPT_AFTER, and
// then at each doubling: the owner may refuse, or be at it.
void Endpoint::ask_to_map(Connection* connection, std::uint64_t count, std::uint64_t name) {
  if (clock_ != nullptr || !connection->outgoing.empty()) return;
  static const std::uint64_t after =
      config::text("ORRERY_ADOPT") == "never" ? 0 : config::number("ORRERY_ADOPT_AFTER");
  if (after == 0 || count < after || count % after != 0 || !std::has_single_bit(count / after)) return;
  connection->peer->asked = true;
  send_frame(connection, FrameKind::map, 0, 0, name, 0, nullptr, 0);
}

// Copies by the peer's file. Outcomes: ok; unsupported: not by the file; bounds: memory of this process, or a
// page of the file, is not there.
Errc Endpoint::copy_mapped(Connection* connection, const Op& op, std::uint64_t target) {
  memory::PeerMemory* const file = connection->peer->memory.get();
  if (file == nullptr) return Errc::unsupported;
  // Mapped here, before the copy: that takes a lock.
  for (std::uint64_t at = target; at < target + op.length;) {
    const auto window = file->window(at);
    if (!window.ok()) return Errc::unsupported;
    at = window.value().va_end;
  }
  struct Copy {
    memory::PeerMemory* file;
    std::byte* local;
    std::uint64_t at;
    std::uint64_t end;
    bool write;
  } copy{file, op.local, target, target + op.length, op.kind == OpKind::write};
  const bool whole = memory::run_guarded(
      [](void* argument) {
        auto& all = *static_cast<Copy*>(argument);
        while (all.at < all.end) {
          const memory::Window window = all.file->window(all.at).value();
          const std::uint64_t bytes = std::min(all.end, window.va_end) - all.at;
          if (all.write)
            std::memcpy(window.at(all.at), all.local, bytes);
          else
            std::memcpy(all.local, window.at(all.at), bytes);
          all.local += bytes;
          all.at += bytes;
        }
      },
      &copy);
  return whole ? Errc::ok : Errc::bounds;
}

// ---- the owner's side ----

// A frame that asks for a registration to be moved, or brings the peer's file.
Errc Endpoint::handle_mapping(Connection* connection, const FrameHeader& header) {
  if (!connection->shared || !connection->same_user) return Errc::corrupt;
  MapWork work{connection->slot, connection->generation, 0, UniqueFd()};
  if (header.kind == FrameKind::map) {
    const auto index = static_cast<std::uint32_t>(header.b);
    if (index >= fresh_registrations_) return Errc::ok;
    work.name = header.b;
  } else {
    if (connection->descriptors.empty() || connection->peer->memory != nullptr) return Errc::ok;
    work.file = std::move(connection->descriptors.front());
    connection->descriptors.clear();
  }
  if (map_work_.size() >= kMostWork || clock_ != nullptr) return Errc::ok;
  map_work_.push_back(std::move(work));
  wake_thread();
  return Errc::ok;
}

Connection* Endpoint::connection_of(const MapWork& work) const {
  Connection* const connection = work.slot < slots_.size() ? slots_[work.slot] : nullptr;
  const bool same = connection != nullptr && connection->generation == work.generation &&
                    connection->state == ConnectionState::open && connection->shared;
  return same ? connection : nullptr;
}

// On the endpoint's thread, without its lock.
void Endpoint::do_map_work(std::vector<MapWork> all) {
  for (MapWork& work : all) {
    if (work.file.valid()) {
      if (!mapping::can_guard()) continue;
      auto file = memory::PeerMemory::open(work.file.get(), memory::AddressSpace::kSpan);
      const std::lock_guard lock(lock_);
      Connection* const connection = connection_of(work);
      if (file.ok() && connection != nullptr && connection->peer->memory == nullptr)
        connection->peer->memory = std::move(file).value();
      continue;
    }
    const auto index = static_cast<std::uint32_t>(work.name);
    const auto stands = [&] {
      const std::lock_guard lock(lock_);
      return has_thread_ &&
             segment_->registration(index).control.load(std::memory_order_relaxed) >> 32 == work.name >> 32;
    };
    if (!stands() || !mapping::move(range_of(segment_->registration(index)), stands)) continue;
    mapping::with_file([&](int fd) {
      const std::lock_guard lock(lock_);
      Connection* const connection = connection_of(work);
      // A descriptor goes with the first byte of a frame that the socket takes at once.
      if (fd < 0 || connection == nullptr || !connection->outgoing.empty()) return;
      const int descriptors[2] = {fd, fd};
      send_frame(connection, FrameKind::memory, 0, 0, 0, 0, nullptr, 0, descriptors);
    });
  }
}

// Keeps peers' writes away from memory of this endpoint that is about to be moved. False: one is under way
// and does not end.
bool Endpoint::hold_off(memory::Range chunk) {
  std::vector<std::uint32_t> used;
  announce_move(chunk, &used);
  const std::int64_t limit = monotonic_ns() + kDrainNs;
  for (const std::uint32_t index : used) {
    for (;;) {
      {
        // Not for long: the client's calls need it.
        const std::lock_guard lock(lock_);
        if (!is_touched(index)) break;
      }
      if (monotonic_ns() >= limit) return false;
      const timespec pause{0, 50'000};
      ::nanosleep(&pause, nullptr);
    }
  }
  return true;
}

void Endpoint::announce_move(memory::Range chunk, std::vector<std::uint32_t>* used) {
  const std::lock_guard lock(lock_);
  for (std::uint32_t index = 0; index < fresh_registrations_; ++index) {
    if (handle_at(index).stuff[1] == 0) continue;
    Registration& entry = segment_->registration(index);
    const std::uint64_t control = entry.control.load(std::memory_order_relaxed);
    if ((control & (kMapped | kMoving)) != 0 || !memory::page_hull(range_of(entry)).overlaps(chunk)) continue;
    entry.control.store(control | kMoving, std::memory_order_seq_cst);
    if (entry.touched.load(std::memory_order_seq_cst) != 0) used->push_back(index);
  }
}

// Tells peers which registrations in `range` they reach by the file, from now on. For one that is no longer
// in the file it waits, at most 100 ms, until no peer uses it; a peer that is stopped may use it still.
void Endpoint::set_mapped(memory::Range range, const std::function<bool(memory::Range)>& in_file) {
  const std::lock_guard lock(lock_);
  for (std::uint32_t index = 0; index < fresh_registrations_; ++index) {
    if (handle_at(index).stuff[1] == 0) continue;
    Registration& entry = segment_->registration(index);
    const memory::Range own = range_of(entry);
    if (!memory::page_hull(own).overlaps(range)) continue;
    const std::uint64_t before = entry.control.load(std::memory_order_relaxed);
    std::uint64_t now = before & ~(kMapped | kMoving);
    if (in_file(own)) now |= kMapped;
    if (now == before) continue;
    entry.control.store(now, std::memory_order_seq_cst);
    if ((before & kMapped) != 0 && entry.touched.load(std::memory_order_seq_cst) != 0) wait_for_peers(index);
  }
}

}  // namespace orrery::cci
