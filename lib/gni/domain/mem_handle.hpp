// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/state/request.hpp"

#include "include/gni/gni_pub.h"

#include <cstdint>

// A registration as clients carry it: 16 bytes that mean the same in every process of the host.
//
//   qword1   63..52 index | 51..42 process slot | 41 by offsets | 40..0 first page (virtual address >> 12)
//   qword2   63..56 CRC-8 | 55..42 generation | 41..34 attributes | 33..28 page shift, 12 | 27..0 pages
//
// Index, pages, page shift, attributes and CRC stand where the machines keep them. The CRC is of the other 15
// bytes; it tells a handle from a word that never was one, where time allows to ask. (docs/sources.md)
// Without a generation a handle names whatever is registered under its index at the process that it is used
// with: so are handles of reserved entries, whose index is theirs, and handles that clients put together of
// index and page. Nothing is said of the CRC of those: clients compute none, or with their own polynomial.
// Pure functions; any thread.
namespace orrery::gni::mem_handle {

// Attribute bits, as the machines have them. Their eighth marks another layout of the whole handle, which is
// never used here.
enum Attribute : std::uint8_t {
  kAttrReadOnly = 0x01,
  kAttrVmdh = 0x02,
  kAttrMrt = 0x04,
  kAttrGart = 0x08,
  kAttrIommu = 0x10,
  kAttrPciIommu = 0x20,
  kAttrClone = 0x40,
};

inline constexpr std::uint64_t kPageShift = 12;
inline constexpr std::uint64_t kLargestPageShift = 30;
inline constexpr std::uint64_t kPageMask = (std::uint64_t{1} << 41) - 1;
inline constexpr std::uint64_t kSegmentedBit = std::uint64_t{1} << 41;

constexpr std::uint8_t attributes(const gni_mem_handle_t& handle) {
  return static_cast<std::uint8_t>(handle.qword2 >> 34);
}

// The key's identity alone, as the NIC's fast path wants it (emu/nic/initiator/fast_path.hpp).
constexpr std::uint64_t key_word_of(const gni_mem_handle_t& handle) {
  return nic::key_word(static_cast<std::uint16_t>(handle.qword1 >> 42 & 0x3ff),
                       static_cast<std::uint16_t>(handle.qword2 >> 42 & 0x3fff),
                       static_cast<std::uint16_t>(handle.qword1 >> 52));
}

// CRC-8 (polynomial x^8 + x^2 + x + 1) of everything but itself.
constexpr std::uint8_t crc(const gni_mem_handle_t& handle) {
  std::uint8_t value = 0;
  for (int byte = 0; byte < 15; ++byte) {
    const std::uint64_t word = byte < 8 ? handle.qword1 >> (8 * byte) : handle.qword2 >> (8 * (byte - 8));
    value = static_cast<std::uint8_t>(value ^ (word & 0xff));
    for (int bit = 0; bit < 8; ++bit) {
      value = static_cast<std::uint8_t>((value & 0x80) != 0 ? value << 1 ^ 0x07 : value << 1);
    }
  }
  return value;
}

// REQUIRES: key.valid(), or a number.
constexpr gni_mem_handle_t make(const nic::MemKey& key) {
  std::uint8_t flags = 0;
  if ((key.flags & nic::kReadOnly) != 0) flags |= kAttrReadOnly;
  if ((key.flags & nic::kVirtual) != 0) flags |= kAttrVmdh;
  gni_mem_handle_t handle{};
  handle.qword1 = std::uint64_t{key.index} << 52 | std::uint64_t{key.process} << 42 |
                  ((key.flags & nic::kSegmented) != 0 ? kSegmentedBit : 0) | (key.page & kPageMask);
  handle.qword2 = std::uint64_t{key.generation} << 42 | std::uint64_t{flags} << 34 | kPageShift << 28 |
                  (key.page_count & 0x0fff'ffff);
  handle.qword2 |= std::uint64_t{crc(handle)} << 56;
  return handle;
}

// The same handle with attributes that are its client's and say nothing to the NIC.
constexpr gni_mem_handle_t with_attributes(gni_mem_handle_t handle, std::uint8_t attributes) {
  handle.qword2 = (handle.qword2 | std::uint64_t{attributes} << 34) & ~(std::uint64_t{0xff} << 56);
  handle.qword2 |= std::uint64_t{crc(handle)} << 56;
  return handle;
}

// The same handle under another number. REQUIRES: it names its memory by number.
constexpr gni_mem_handle_t with_index(gni_mem_handle_t handle, std::uint16_t index) {
  handle.qword1 = (handle.qword1 & ~(std::uint64_t{0xfff} << 52)) | std::uint64_t{index} << 52;
  handle.qword2 &= ~(std::uint64_t{0xff} << 56);
  handle.qword2 |= std::uint64_t{crc(handle)} << 56;
  return handle;
}

// Whether a handle without generation is one that a client made of what it knows: pages of some size, and any
// of them.
constexpr bool is_number(const gni_mem_handle_t& handle) {
  const std::uint64_t shift = handle.qword2 >> 28 & 0x3f;
  return shift >= kPageShift && shift <= kLargestPageShift && (handle.qword2 & 0x0fff'ffff) != 0;
}

// The key, whatever the handle holds; a word that never was a handle gives a key that no registration has.
constexpr nic::MemKey key_of(const gni_mem_handle_t& handle) {
  nic::MemKey key;
  key.page = handle.qword1 & kPageMask;
  key.page_count = static_cast<std::uint32_t>(handle.qword2 & 0x0fff'ffff);
  key.index = static_cast<std::uint16_t>(handle.qword1 >> 52);
  key.process = static_cast<std::uint16_t>(handle.qword1 >> 42 & 0x3ff);
  key.generation = static_cast<std::uint16_t>(handle.qword2 >> 42 & 0x3fff);
  const std::uint8_t flags = attributes(handle);
  key.flags = static_cast<std::uint8_t>(((flags & kAttrReadOnly) != 0 ? nic::kReadOnly : 0) |
                                        ((handle.qword1 & kSegmentedBit) != 0 ? nic::kSegmented : 0));
  if (key.generation == 0 && is_number(handle)) {
    key.flags = static_cast<std::uint8_t>(nic::kByNumber | ((flags & kAttrVmdh) != 0 ? nic::kVirtual : 0));
  }
  return key;
}

constexpr bool is_none(const gni_mem_handle_t& handle) { return (handle.qword1 | handle.qword2) == 0; }

// Whether a NIC made these 16 bytes, live or not, or a client that knows where index and page stand.
constexpr bool well_formed(const gni_mem_handle_t& handle) {
  const nic::MemKey key = key_of(handle);
  if (key.is_number()) return true;
  return key.valid() && (handle.qword2 >> 28 & 0x3f) == kPageShift && crc(handle) == handle.qword2 >> 56;
}

}  // namespace orrery::gni::mem_handle
