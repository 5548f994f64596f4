// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/log/call_log.hpp"

#include <array>
#include <cstdio>
#include <cstring>

namespace orrery::gni::log {

namespace {

constexpr std::array kResults = {"SUCCESS",       "NOT_DONE",         "INVALID_PARAM",    "ERROR_RESOURCE",
                                 "TIMEOUT",       "PERMISSION_ERROR", "DESCRIPTOR_ERROR", "ALIGNMENT_ERROR",
                                 "INVALID_STATE", "NO_MATCH",         "SIZE_ERROR",       "TRANSACTION_ERROR",
                                 "ILLEGAL_OP",    "ERROR_NOMEM"};
constexpr std::array kPostTypes = {"0",         "RDMA_PUT", "RDMA_GET", "FMA_PUT", "FMA_PUT_W_SYNCFLAG",
                                   "FMA_GET",   "AMO",      "CQWRITE",  "CE",      "FMA_GET_W_FLAG",
                                   "AMO_W_FLAG"};
constexpr std::array kPostStates = {"PENDING", "COMPLETED", "ERROR", "TIMEOUT", "TERMINATED", "REMOTE_DATA"};
constexpr std::array kEventTypes = {"POST", "SMSG", "DMAPP", "MSGQ"};

template <std::size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, std::uint64_t value) {
  return value < kCount ? names[value] : "?";
}

bool asks_alone(const char* text) {
  for (const char* name :
       {"GNI_Get", "GNI_CqTestEvent", "GNI_CqErrorStr", "GNI_CqErrorRecoverable", "GNI_EpIdle",
        "GNI_CdmGetNicAddress", "GNI_CqVectorMonitor", "GNI_MemHndlQueryAttr", "GNI_SmsgBufferSizeNeeded",
        "GNI_DqueueProgress", "GNI_MsgqProgress"}) {
    if (std::strncmp(text, name, std::strlen(name)) == 0 && std::strncmp(text, "GNI_GetCompleted", 16) != 0)
      return true;
  }
  // A test of a datagram that is still under way.
  return std::strstr(text, "post_state PENDING") != nullptr;
}

}  // namespace

void Call::state(gni_post_state_t state) {
  add("%s", name_of(kPostStates, static_cast<std::uint64_t>(state)));
}

void Call::show(const gni_mem_handle_t* handle) {
  if (handle == nullptr) return CallLine::show(static_cast<const void*>(handle));
  add("%llx:%llx", static_cast<unsigned long long>(handle->qword1),
      static_cast<unsigned long long>(handle->qword2));
}

void Call::show(const gni_post_descriptor_t* descriptor) {
  if (descriptor == nullptr) return CallLine::show(static_cast<const void*>(descriptor));
  const gni_post_descriptor_t& d = *descriptor;
  const auto wide = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  add("%p {%s, cq_mode 0x%x", static_cast<const void*>(descriptor),
      name_of(kPostTypes, static_cast<std::uint64_t>(d.type)), d.cq_mode);
  if (d.dlvr_mode != 0) add(", dlvr_mode 0x%x", d.dlvr_mode);
  if (d.type != GNI_POST_CQWRITE) {
    add(", local 0x%llx in ", wide(d.local_addr));
    show(&d.local_mem_hndl);
    add(", remote 0x%llx", wide(d.remote_addr));
  } else {
    add(", value 0x%llx, remote", wide(d.cqwrite_value));
  }
  add(" in ");
  show(&d.remote_mem_hndl);
  if (d.type != GNI_POST_CQWRITE) add(", length %llu", wide(d.length));
  switch (d.type) {
    case GNI_POST_RDMA_PUT:
    case GNI_POST_RDMA_GET:
      if (d.rdma_mode != 0) add(", rdma_mode 0x%x", d.rdma_mode);
      if (d.src_cq_hndl != nullptr) add(", src_cq_hndl %p", static_cast<const void*>(d.src_cq_hndl));
      break;
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
      add(", flag 0x%llx to 0x%llx", wide(d.sync_flag_value), wide(d.sync_flag_addr));
      break;
    case GNI_POST_FMA_GET_W_FLAG:
      add(", flag 0x%llx", wide(d.sync_flag_value));
      break;
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
      add(", amo_cmd 0x%x, operands 0x%llx 0x%llx", static_cast<unsigned>(d.amo_cmd), wide(d.first_operand),
          wide(d.second_operand));
      break;
    case GNI_POST_CE:
      add(", ce_cmd 0x%x, ce_mode 0x%x, operands 0x%llx 0x%llx, red_id %llu", static_cast<unsigned>(d.ce_cmd),
          d.ce_mode, wide(d.first_operand), wide(d.second_operand), wide(d.ce_red_id));
      break;
    default:
      break;
  }
  add("}");
}

void Call::show(const gni_smsg_attr_t* attributes) {
  if (attributes == nullptr) return CallLine::show(static_cast<const void*>(attributes));
  const gni_smsg_attr_t& a = *attributes;
  add("{type %u, buffer %p, buff_size %u, handle ", static_cast<unsigned>(a.msg_type), a.msg_buffer,
      a.buff_size);
  show(&a.mem_hndl);
  add(", offset %u, credits %u, maxsize %u}", a.mbox_offset, a.mbox_maxcredit, a.msg_maxsize);
}

void Call::show(const gni_job_limits_t* limits) {
  if (limits == nullptr) return CallLine::show(static_cast<const void*>(limits));
  add("{mdd %d, fma %d, bte %d, cq %d}", limits->mdd_limit, limits->fma_limit, limits->bte_limit,
      limits->cq_limit);
}

void Call::show(const gni_msgq_attr_t* attributes) {
  if (attributes == nullptr) return CallLine::show(static_cast<const void*>(attributes));
  const gni_msgq_attr_t& a = *attributes;
  add("{max_msg_sz %u, smsg_q_sz %u, rcv_pool_sz %u, num_msgq_eps %u, nloc_insts %u, modes 0x%x, rcv_cq_sz "
      "%u}",
      a.max_msg_sz, a.smsg_q_sz, a.rcv_pool_sz, a.num_msgq_eps, a.nloc_insts, a.modes, a.rcv_cq_sz);
}

void Call::show(const gni_dqueue_in_attr_t* attributes) {
  if (attributes == nullptr) return CallLine::show(static_cast<const void*>(attributes));
  add("{entries %u, msg_size %u, npeers %u}", attributes->entries, attributes->msg_size, attributes->npeers);
}

void Call::show(const gni_mem_segment_t* segment) {
  if (segment == nullptr) return CallLine::show(static_cast<const void*>(segment));
  add("%p {first 0x%llx, length %llu}", static_cast<const void*>(segment),
      static_cast<unsigned long long>(segment->address), static_cast<unsigned long long>(segment->length));
}

void Call::before(const gni_cq_entry_t* entry) {
  if (entry != nullptr) entry_before_ = *entry;
}

void Call::event(const char* name, const gni_cq_entry_t* entry) {
  if (entry == nullptr) return;
  // An overrun is an entry too; a queue that does not block has none to give to a waiter.
  const bool overrun = result_ == GNI_RC_ERROR_RESOURCE && *entry != entry_before_;
  if (!has_output() && !overrun) return;
  using Reader = std::uint64_t (*)(gni_cq_entry_t);
  static const auto type = reinterpret_cast<Reader>(common::log::find_next("gni_cq_get_type"));
  static const auto instance = reinterpret_cast<Reader>(common::log::find_next("gni_cq_get_inst_id"));
  static const auto status = reinterpret_cast<Reader>(common::log::find_next("gni_cq_get_status"));
  begin(name);
  add("0x%llx {%s, inst_id %llu, status 0x%llx}", static_cast<unsigned long long>(*entry),
      name_of(kEventTypes, type(*entry)), static_cast<unsigned long long>(instance(*entry)),
      static_cast<unsigned long long>(status(*entry)));
}

void Call::returned(gni_return_t result) {
  result_ = result;
  const char* const name = name_of(kResults, static_cast<std::uint64_t>(result));
  char text[32];
  std::snprintf(text, sizeof text, "? %u", static_cast<unsigned>(result));
  // NOT_DONE, TIMEOUT and their like are what a client that polls hears again and again.
  const bool said = result == GNI_RC_SUCCESS || result == GNI_RC_TRANSACTION_ERROR;
  CallLine::result(*name == '?' ? text : name, said, !said);
}

}  // namespace orrery::gni::log

const orrery::common::log::Interface orrery::common::log::kLogged = {
    .name = "gni", .library = "libugni.so.0", .asks_alone = orrery::gni::log::asks_alone};
