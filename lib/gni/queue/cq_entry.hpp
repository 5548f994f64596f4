// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/gni/gni_pub.h"

#include <cstdint>

// The 64 bits of a completion event, as uGNI clients carry them. The machines' own layout is not public and
// cannot be seen: clients read entries through the gni_cq_ functions alone. This one is ours:
//
//   63 overrun | 62 remote overrun | 61..60 type | 59..57 source | 56..55 info | 54 wide | 53..48 status
//   47..0 payload:
//     initiator, post       47..24 tid          | 23..0 local event value (inst_id)
//     the same, wide        39..24 tid          | 47..40, 23..0 local event value, as on Gemini
//     initiator, message    31..0  msg_id
//     target                47..0  data; 31..0 is the remote event value (rem_inst_id, and inst_id too)
//     DLA                   31..16 count        | 15..0 block or marker
//     collective engine     47..46 transaction  | 45..14 reduction | 13..0 engine
//
// A live entry is never 0, because its source is not. Pure functions; any thread.
// Usage: const gni_cq_entry_t e = cq_entry::post(tid, inst_id, 0);
namespace orrery::gni::cq_entry {

enum class Source : std::uint8_t { none = 0, bte = 1, ssid = 2, rmt = 3, dla = 4 };

// What the source reports; the meaning of the two bits depends on it.
inline constexpr std::uint8_t kBteTxDone = 0;
inline constexpr std::uint8_t kBteEnqStatus = 2;
inline constexpr std::uint8_t kSsidRequest = 1;   // of a post: its source may be used again (LOCAL)
inline constexpr std::uint8_t kSsidResponse = 3;  // of a post: the target has it all (GLOBAL)
inline constexpr std::uint8_t kRmtCqWrite = 0;
inline constexpr std::uint8_t kRmtRequest = 1;
inline constexpr std::uint8_t kRmtReduction = 3;
inline constexpr std::uint8_t kDlaAllocStatus = 0;

// A run of bits of the entry.
struct Field {
  unsigned shift;
  unsigned width;
  constexpr std::uint64_t mask() const { return ((std::uint64_t{1} << width) - 1) << shift; }
  constexpr std::uint64_t get(gni_cq_entry_t entry) const { return (entry & mask()) >> shift; }
  constexpr gni_cq_entry_t set(gni_cq_entry_t entry, std::uint64_t value) const {
    return (entry & ~mask()) | ((value << shift) & mask());
  }
};

inline constexpr Field kOverrun{63, 1};
inline constexpr Field kRemoteOverrun{62, 1};
inline constexpr Field kType{60, 2};
inline constexpr Field kSource{57, 3};
inline constexpr Field kInfo{55, 2};
inline constexpr Field kWide{54, 1};
inline constexpr Field kStatus{48, 6};
inline constexpr Field kData{0, 48};
inline constexpr Field kTid{24, 24};
inline constexpr Field kWideTid{24, 16};
inline constexpr Field kLocalInstId{0, 24};
inline constexpr Field kLocalInstIdTop{40, 8};                  // of wide entries
inline constexpr std::uint32_t kMaxWideDepth = (1u << 16) - 1;  // of queues whose entries are wide
inline constexpr Field kRemoteInstId{0, 32};
inline constexpr Field kMsgId{0, 32};
inline constexpr Field kCount{16, 16};
inline constexpr Field kBlock{0, 16};
inline constexpr Field kCeTransaction{46, 2};
inline constexpr Field kCeReduction{14, 32};
inline constexpr Field kCeId{0, 14};

constexpr gni_cq_entry_t make(std::uint64_t type, Source source, std::uint8_t info, std::uint8_t status,
                              std::uint64_t payload) {
  return type << kType.shift | static_cast<std::uint64_t>(source) << kSource.shift |
         static_cast<std::uint64_t>(info) << kInfo.shift |
         static_cast<std::uint64_t>(status) << kStatus.shift | (payload & kData.mask());
}

// An initiator's event of a post. `tid` up to 24 bits; `inst_id` loses what is above 24 bits, as on Aries.
constexpr gni_cq_entry_t post(std::uint32_t tid, std::uint32_t inst_id, std::uint8_t status) {
  const std::uint64_t payload = std::uint64_t{tid} << kTid.shift | (inst_id & kLocalInstId.mask());
  return make(GNI_CQ_EVENT_TYPE_POST, Source::ssid, kSsidResponse, status, payload);
}

// The same for a LOCAL event.
constexpr gni_cq_entry_t post_local(std::uint32_t tid, std::uint32_t inst_id, std::uint8_t status) {
  return kInfo.set(post(tid, inst_id, status), kSsidRequest);
}

// An initiator's event of a short message.
constexpr gni_cq_entry_t message_sent(std::uint32_t msg_id, std::uint8_t status) {
  return make(GNI_CQ_EVENT_TYPE_SMSG, Source::ssid, kSsidResponse, status, msg_id);
}

// An initiator's event of a message to a shared queue.
constexpr gni_cq_entry_t queued_sent(std::uint32_t msg_id, std::uint8_t status) {
  return make(GNI_CQ_EVENT_TYPE_MSGQ, Source::ssid, kSsidResponse, status, msg_id);
}

// A target's event of a put, get or AMO (type POST) or of a message (type SMSG).
constexpr gni_cq_entry_t remote(std::uint64_t type, std::uint32_t rem_inst_id, std::uint8_t status) {
  return make(type, Source::rmt, kRmtRequest, status, rem_inst_id);
}

// A target's event of a CQ write.
constexpr gni_cq_entry_t cq_write(std::uint64_t data, std::uint8_t status) {
  return make(GNI_CQ_EVENT_TYPE_POST, Source::rmt, kRmtCqWrite, status, data);
}

// A VCE's event: `payload` holds the engine and the reduction.
constexpr gni_cq_entry_t collective(std::uint64_t payload, std::uint8_t status) {
  return make(GNI_CQ_EVENT_TYPE_POST, Source::rmt, kRmtReduction, status, payload);
}

// What GNI_CqGetEvent gives where events were lost.
constexpr gni_cq_entry_t overrun(std::uint8_t status) {
  return kOverrun.set(make(GNI_CQ_EVENT_TYPE_POST, Source::rmt, kRmtRequest, status, 0), 1);
}

constexpr Source source(gni_cq_entry_t entry) { return static_cast<Source>(kSource.get(entry)); }

// Whether GNI_GetCompleted can find a request for it.
constexpr bool is_post(gni_cq_entry_t entry) {
  return source(entry) == Source::ssid && kType.get(entry) == GNI_CQ_EVENT_TYPE_POST;
}
constexpr bool is_local(gni_cq_entry_t entry) { return kInfo.get(entry) == kSsidRequest; }

// An initiator's event of a post with all 32 bits of its event value. REQUIRES: its tid has 16 bits.
constexpr gni_cq_entry_t widen(gni_cq_entry_t entry, std::uint32_t inst_id) {
  return kLocalInstIdTop.set(kLocalInstId.set(kWide.set(entry, 1), inst_id), inst_id >> 24);
}
constexpr bool is_wide(gni_cq_entry_t entry) { return kWide.get(entry) != 0; }
constexpr const Field& tid_field(gni_cq_entry_t entry) { return is_wide(entry) ? kWideTid : kTid; }

// The event value of either side: peers' events carry 32 bits, one's own 24 in one piece.
constexpr const Field& inst_id_field(gni_cq_entry_t entry) {
  return source(entry) == Source::rmt ? kRemoteInstId : kLocalInstId;
}
constexpr std::uint64_t inst_id(gni_cq_entry_t entry) {
  const std::uint64_t low = inst_id_field(entry).get(entry);
  return is_wide(entry) ? kLocalInstIdTop.get(entry) << 24 | low : low;
}
constexpr gni_cq_entry_t set_inst_id(gni_cq_entry_t entry, std::uint64_t value) {
  const gni_cq_entry_t low = inst_id_field(entry).set(entry, value);
  return is_wide(entry) ? kLocalInstIdTop.set(low, value >> 24) : low;
}

}  // namespace orrery::gni::cq_entry
