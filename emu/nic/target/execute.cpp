// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/execute.hpp"

#include "emu/base/copy.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/memory/guarded.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/message/channel.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/mdh.hpp"
#include "emu/nic/target/amo_cache.hpp"
#include "emu/nic/target/amo_unit.hpp"
#include "emu/nic/target/datagram_state.hpp"

#include <atomic>
#include <cstring>

namespace orrery::nic {

namespace {

template <typename Word>
bool store_word(std::byte* to, const std::byte* from) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) != 0) return false;
  Word word;
  std::memcpy(&word, from, sizeof word);
  // Release: a target that polls this word sees what was put before it.
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
  return true;
}

template <typename Word>
bool load_word(std::byte* to, const std::byte* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) != 0) return false;
  auto* source = const_cast<Word*>(reinterpret_cast<const Word*>(from));
  const Word word = std::atomic_ref<Word>(*source).load(std::memory_order_acquire);
  std::memcpy(to, &word, sizeof word);
  return true;
}

// Blocks of up to a line without a call, of which each costs as much as the copy. False: it is not one.
[[gnu::always_inline]] inline bool copy_line(std::byte* to, const std::byte* from, std::size_t bytes) {
  struct Quarter {
    std::byte bytes[16];
  };
  if (bytes < sizeof(Quarter) || bytes > 4 * sizeof(Quarter)) return false;
  const std::size_t last = bytes - sizeof(Quarter);
  Quarter a;
  Quarter d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&d, from + last, sizeof d);
  if (bytes > 2 * sizeof(Quarter)) {
    Quarter b;
    Quarter c;
    std::memcpy(&b, from + sizeof(Quarter), sizeof b);
    std::memcpy(&c, from + last - sizeof(Quarter), sizeof c);
    std::memcpy(to + sizeof(Quarter), &b, sizeof b);
    std::memcpy(to + last - sizeof(Quarter), &c, sizeof c);
  }
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + last, &d, sizeof d);
  return true;
}

// Calls part(here, done, bytes) for each piece of [address, address + length) in the target's memory; the
// address is a virtual one, or an offset in the registration's segments. False when a piece cannot be
// reached.
template <typename Part>
bool for_each_piece(const Target& target, const MrtEntry& entry, std::uint64_t word, std::uint64_t address,
                    std::uint64_t length, Part part) {
  const auto run_through = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t done) {
    while (bytes != 0) {
      const Run run = target.memory->find(at);
      if (run.end <= at || run.begin > at) return false;
      const std::uint64_t piece = bytes < run.end - at ? bytes : run.end - at;
      part(run.at(at), done, piece);
      at += piece;
      done += piece;
      bytes -= piece;
    }
    return true;
  };
  if ((control::flags(word) & kSegmented) == 0) [[likely]]
    return run_through(address, length, 0);

  const std::uint32_t count = entry.segment_count.load(std::memory_order_relaxed);
  const auto* segments = target.nic.arena<Segment>(entry.segments.load(std::memory_order_relaxed), count);
  if (segments == nullptr) return false;
  std::uint64_t skip = address;
  std::uint64_t done = 0;
  for (std::uint32_t i = 0; i < count && done < length; ++i) {
    const Segment segment = segments[i];
    if (skip >= segment.length) {
      skip -= segment.length;
      continue;
    }
    const std::uint64_t left = segment.length - skip;
    const std::uint64_t bytes = length - done < left ? length - done : left;
    if (!run_through(segment.address + skip, bytes, done)) return false;
    done += bytes;
    skip = 0;
  }
  return done == length;
}

Errc execute_put(const Target& target, MrtEntry& entry, std::uint64_t word, const wire::PacketHeader& header,
                 std::span<const std::byte> payload) {
  bool reached = true;
  const bool stored =
      for_each_piece(target, entry, word, header.address + header.offset, payload.size(),
                     [&](std::byte* here, std::uint64_t done, std::uint64_t bytes) {
                       if (target.is_protected) [[unlikely]]
                         reached = memory::store_protected(here, payload.data() + done, bytes) && reached;
                       else
                         store_bytes(here, payload.data() + done, bytes);
                     });
  return stored && reached ? Errc::ok : Errc::bounds;
}

Errc execute_get(const Target& target, MrtEntry& entry, std::uint64_t word, const wire::PacketHeader& header,
                 std::span<std::byte> out) {
  bool reached = true;
  const bool loaded =
      for_each_piece(target, entry, word, header.address + header.offset, out.size(),
                     [&](std::byte* here, std::uint64_t done, std::uint64_t bytes) {
                       if (target.is_protected) [[unlikely]]
                         reached = memory::load_protected(out.data() + done, here, bytes) && reached;
                       else
                         load_bytes(out.data() + done, here, bytes);
                     });
  return loaded && reached ? Errc::ok : Errc::bounds;
}

Errc store_sync_flag(const Target& target, MrtEntry& entry, std::uint64_t word, std::uint64_t address,
                     std::uint64_t value) {
  std::byte bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  const bool stored = for_each_piece(target, entry, word, address, sizeof value,
                                     [&](std::byte* here, std::uint64_t done, std::uint64_t size) {
                                       store_bytes(here, bytes + done, size);
                                     });
  return stored ? Errc::ok : Errc::bounds;
}

// What the AMO cache holds of the bytes that a packet is for goes to memory first, when memory may lack it.
void make_memory_current(const Target& target, std::uint64_t word, const wire::PacketHeader& header) {
  AmoCache cache(target.nic);
  if (!cache.is_lazy()) [[likely]]
    return;
  if (target.memory == nullptr || (header.verb == wire::Verb::amo && (header.command & kAmoCached) != 0))
    return;
  const bool segmented = (control::flags(word) & kSegmented) != 0;
  cache.flush(*target.memory, segmented ? 0 : header.address,
              segmented ? UINT64_MAX : header.address + header.length);
  if ((header.flags & wire::kHasSyncFlag) != 0) cache.flush(*target.memory, header.aux, header.aux + 8);
}

// The initiator has a number and no key, and cannot look for itself (state/mdh.hpp).
Errc execute_by_number(const Target& target, wire::PacketHeader header, std::span<const std::byte> payload,
                       std::span<std::byte> out) {
  const NumberedEntry found =
      find_numbered(target.nic, header.domain, header.key_index, (header.flags & wire::kVirtualNumber) != 0);
  if (found.index == kMaxRegions) return Errc::invalid_handle;
  const MrtEntry& entry = target.nic.region(found.index);
  header.flags = static_cast<std::uint16_t>(header.flags & ~(wire::kByNumber | wire::kVirtualNumber));
  header.key_index = static_cast<std::uint16_t>(found.index);
  header.key_generation = control::generation(found.control);
  header.address = address_by_number(entry, found.control, header.address);
  if ((header.flags & wire::kHasSyncFlag) != 0)
    header.aux = address_by_number(entry, found.control, header.aux);
  return execute(target, header, payload, out);
}

}  // namespace

ORRERY_TIMED_PATH void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (bytes) {
    case 8:
      if (store_word<std::uint64_t>(to, from)) return;
      break;
    case 4:
      if (store_word<std::uint32_t>(to, from)) return;
      break;
    case 2:
      if (store_word<std::uint16_t>(to, from)) return;
      break;
    case 1:
      if (store_word<std::uint8_t>(to, from)) return;
      break;
    default:
      if (copy_line(to, from, bytes)) return;
      break;
  }
  if (bytes != 0) copy_block(to, from, bytes);
}

ORRERY_TIMED_PATH void load_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (bytes) {
    case 8:
      if (load_word<std::uint64_t>(to, from)) return;
      break;
    case 4:
      if (load_word<std::uint32_t>(to, from)) return;
      break;
    case 2:
      if (load_word<std::uint16_t>(to, from)) return;
      break;
    case 1:
      if (load_word<std::uint8_t>(to, from)) return;
      break;
    default:
      if (copy_line(to, from, bytes)) return;
      break;
  }
  if (bytes != 0) copy_block(to, from, bytes);
}

ORRERY_TIMED_PATH void raise_remote_event(const NicView& nic, std::uint64_t word, EventKind kind,
                                          std::uint64_t data) {
  const std::uint32_t queue_plus_1 = control::queue_plus_1(word);
  if (queue_plus_1 == 0) return;
  const auto queue = open_queue(nic, queue_plus_1 - 1);
  if (!queue) return;
  // A full queue loses the event and says so to its owner; the data is in place all the same.
  (void)push_event(*queue, {kind, Errc::ok, data});
}

ORRERY_TIMED_PATH Errc execute(const Target& target, const wire::PacketHeader& header,
                               std::span<const std::byte> payload, std::span<std::byte> out) {
  const wire::VerbTraits& verb = wire::traits(header.verb);
  if (verb.unit == wire::Unit::exchange) return execute_datagram_packet(target.nic, header, payload, out);
  if (verb.unit == wire::Unit::buffers) return execute_send(target, header, payload, {});
  if ((header.flags & wire::kByNumber) != 0) [[unlikely]]
    return execute_by_number(target, header, payload, out);
  if (header.key_index >= kMaxRegions) return Errc::invalid_handle;
  MrtEntry& entry = target.nic.region(header.key_index);
  // Acquire: pairs with the owner's publication of the entry.
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  const Errc access = verb.addressed ? check_access(entry, word, header.key_generation, header.domain,
                                                    header.address, header.length, verb.writes)
                                     : check_access(entry, word, header.key_generation, header.domain,
                                                    entry.begin.load(std::memory_order_relaxed), 0, false);
  if (access != Errc::ok) return access;

  if (verb.addressed) make_memory_current(target, word, header);
  Errc done = Errc::ok;
  switch (header.verb) {
    case wire::Verb::put:
    case wire::Verb::message:  // a put whose flag is the message's word
    case wire::Verb::credit:
      if (header.offset > header.length || payload.size() > header.length - header.offset)
        return Errc::bounds;
      if ((header.flags & wire::kHasSyncFlag) != 0) {
        const Errc flag =
            check_access(entry, word, header.key_generation, header.domain, header.aux, 8, true);
        if (flag != Errc::ok) return flag;
      }
      done = execute_put(target, entry, word, header, payload);
      if (done == Errc::ok && (header.flags & wire::kHasSyncFlag) != 0 && (header.flags & wire::kLast) != 0) {
        done = store_sync_flag(target, entry, word, header.aux, header.operand[0]);
      }
      break;
    case wire::Verb::get:
      if (header.offset > header.length || out.size() > header.length - header.offset) return Errc::bounds;
      done = execute_get(target, entry, word, header, out);
      break;
    case wire::Verb::cq_write:
      raise_remote_event(target.nic, word, EventKind::cq_write, header.event_data);
      return Errc::ok;
    case wire::Verb::amo:
      done = execute_amo(target, entry, word, header, out);
      break;
    default:  // another unit's, or a value that no version of ours sends
      return Errc::illegal_op;
  }
  if (done == Errc::ok && (header.flags & wire::kWantsRemoteEvent) != 0 &&
      (header.flags & wire::kLast) != 0) {
    raise_remote_event(target.nic, word, event_kind(header.verb), header.event_data);
  }
  return done;
}

}  // namespace orrery::nic
