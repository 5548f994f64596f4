// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/device_status.hpp"
#include "lib/gni/queue/cq_entry.hpp"

// The gni_cq_ functions: one field each.
namespace entry_of = orrery::gni::cq_entry;
using orrery::gni::DeviceStatus;

extern "C" {

uint64_t gni_cq_get_data(gni_cq_entry_t entry) { return entry_of::kData.get(entry); }
uint64_t gni_cq_get_source(gni_cq_entry_t entry) { return entry_of::kSource.get(entry); }
uint64_t gni_cq_get_status(gni_cq_entry_t entry) { return entry_of::kStatus.get(entry); }
uint64_t gni_cq_get_info(gni_cq_entry_t entry) { return entry_of::kInfo.get(entry); }
uint64_t gni_cq_get_inst_id(gni_cq_entry_t entry) { return entry_of::inst_id(entry); }
uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t entry) { return entry_of::kRemoteInstId.get(entry); }
uint64_t gni_cq_get_tid(gni_cq_entry_t entry) { return entry_of::tid_field(entry).get(entry); }
uint64_t gni_cq_get_msg_id(gni_cq_entry_t entry) { return entry_of::kMsgId.get(entry); }
uint64_t gni_cq_get_type(gni_cq_entry_t entry) { return entry_of::kType.get(entry); }
uint64_t gni_cq_get_block_id(gni_cq_entry_t entry) { return entry_of::kBlock.get(entry); }
uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t entry) { return entry_of::kCount.get(entry); }
uint64_t gni_cq_get_marker_id(gni_cq_entry_t entry) { return entry_of::kBlock.get(entry); }
uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t entry) { return entry_of::kCount.get(entry); }
uint64_t gni_cq_get_ce_id(gni_cq_entry_t entry) { return entry_of::kCeId.get(entry); }
uint64_t gni_cq_get_reductn_id(gni_cq_entry_t entry) { return entry_of::kCeReduction.get(entry); }
uint64_t gni_cq_get_trans_type(gni_cq_entry_t entry) { return entry_of::kCeTransaction.get(entry); }
uint64_t gni_cq_overrun(gni_cq_entry_t entry) { return entry_of::kOverrun.get(entry); }
uint64_t gni_cq_rem_overrun(gni_cq_entry_t entry) { return entry_of::kRemoteOverrun.get(entry); }

unsigned gni_cq_status_dla_overflow(gni_cq_entry_t entry) {
  return entry_of::kStatus.get(entry) == static_cast<std::uint64_t>(DeviceStatus::dla_overflow);
}
unsigned gni_cq_bte_enq_status(gni_cq_entry_t entry) {
  return entry_of::source(entry) == entry_of::Source::bte &&
         entry_of::kInfo.get(entry) == entry_of::kBteEnqStatus;
}

void gni_cq_set_inst_id(gni_cq_entry_t* entry, uint64_t value) {
  if (entry != nullptr) *entry = entry_of::set_inst_id(*entry, value);
}
void gni_cq_set_rem_inst_id(gni_cq_entry_t* entry, uint64_t value) {
  if (entry != nullptr) *entry = entry_of::kRemoteInstId.set(*entry, value);
}
void gni_cq_set_tid(gni_cq_entry_t* entry, uint64_t value) {
  if (entry != nullptr) *entry = entry_of::tid_field(*entry).set(*entry, value);
}
void gni_cq_set_msg_id(gni_cq_entry_t* entry, uint64_t value) {
  if (entry != nullptr) *entry = entry_of::kMsgId.set(*entry, value);
}
void gni_cq_set_type(gni_cq_entry_t* entry, uint64_t value) {
  if (entry != nullptr) *entry = entry_of::kType.set(*entry, value);
}
void gni_cq_clr_status(gni_cq_entry_t* entry) {
  if (entry != nullptr) *entry = entry_of::kStatus.set(*entry, 0);
}

}  // extern "C"
