// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_unit.hpp"

#include "emu/nic/state/access.hpp"
#include "emu/nic/target/amo_cache.hpp"

#include <cstring>

namespace orrery::nic {

namespace {

// Where `width` bytes at `address` of a registration lie in the owner's address space, when they lie
// together; 0 when they do not. Segmented registrations are addressed by offsets.
std::uint64_t virtual_address(const NicView& nic, const MrtEntry& entry, std::uint64_t word,
                              std::uint64_t address, std::uint64_t width) {
  if ((control::flags(word) & kSegmented) == 0) [[likely]]
    return address;
  const std::uint32_t count = entry.segment_count.load(std::memory_order_relaxed);
  const auto* segments = nic.arena<Segment>(entry.segments.load(std::memory_order_relaxed), count);
  if (segments == nullptr) return 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Segment segment = segments[i];
    if (address < segment.length) return width <= segment.length - address ? segment.address + address : 0;
    address -= segment.length;
  }
  return 0;
}

template <typename Word>
std::uint64_t apply_word(std::byte* at, const wire::PacketHeader& header) {
  return amo::apply(reinterpret_cast<Word*>(at), header.command, static_cast<Word>(header.operand[0]),
                    static_cast<Word>(header.operand[1]));
}

}  // namespace

Errc execute_amo(const Target& target, const MrtEntry& entry, std::uint64_t word,
                 const wire::PacketHeader& header, std::span<std::byte> out) {
  const std::uint8_t command = header.command;
  if (!amo::is_valid(command)) return Errc::illegal_op;
  const std::uint64_t width = amo::width(command);  // 4 or 8
  const std::uint64_t stride = amo::stride(command);
  const std::uint64_t count = amo::words(command, header.part_bytes);
  if (header.offset > header.length || header.part_bytes > header.length - header.offset) return Errc::bounds;
  const std::uint64_t begin = header.address + header.offset;
  if (count == 0 || (begin & (width - 1)) != 0) return Errc::alignment;
  if (out.size() != (amo::fetches(command) ? count * width : 0)) return Errc::corrupt;

  std::uint64_t at = 0;
  const auto locate = [&](std::uint64_t index, std::byte** here) {
    at = virtual_address(target.nic, entry, word, begin + index * stride, width);
    if ((at & (width - 1)) != 0 || at == 0) return Errc::alignment;
    const Run run = target.memory->find(at);
    if (!run.holds(at, width)) return Errc::bounds;
    *here = run.at(at);
    return Errc::ok;
  };
  AmoCache cache(target.nic);
  const bool lazy = (command & kAmoCached) != 0 && cache.is_lazy();
  std::byte* here = nullptr;
  // Several words are all looked for before the first is changed.
  for (std::uint64_t i = 0; i < count && count > 1; ++i) {
    const Errc found = locate(i, &here);
    if (found != Errc::ok) return found;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    Errc found = locate(i, &here);
    if (found != Errc::ok) return found;
    std::uint64_t old = 0;
    if (lazy) {
      found =
          cache.apply(*target.memory, {at, width == 4}, command, header.operand[0], header.operand[1], &old);
      if (found != Errc::ok) return found;
    } else {
      if ((command & kAmoCached) != 0) cache.note({at, width == 4});
      old = width == 8 ? apply_word<std::uint64_t>(here, header) : apply_word<std::uint32_t>(here, header);
    }
    if (!out.empty()) store_bytes(out.data() + i * width, reinterpret_cast<const std::byte*>(&old), width);
  }
  return Errc::ok;
}

}  // namespace orrery::nic
