// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

// What the leader of a host says of its processes (hosts.cpp): entries, one behind the other. Pure functions
// on bytes; any thread.
namespace orrery::pmi {

// One process, little-endian; its address follows.
struct HostEntryHead {
  std::uint32_t rank;
  std::uint32_t generation;
  std::uint32_t bytes;  // of the address
};
static_assert(sizeof(HostEntryHead) == 12);

struct HostEntry {
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;
  std::string_view address;  // in the record
};

// Takes the first entry off `record`; nothing, and `record` is as it was, when it does not begin with a whole
// one.
inline std::optional<HostEntry> take_host_entry(std::string_view* record) {
  HostEntryHead head;
  if (record->size() < sizeof head) return std::nullopt;
  std::memcpy(&head, record->data(), sizeof head);
  if (head.bytes > record->size() - sizeof head) return std::nullopt;
  const HostEntry entry{head.rank, head.generation, record->substr(sizeof head, head.bytes)};
  record->remove_prefix(sizeof head + head.bytes);
  return entry;
}

}  // namespace orrery::pmi
