// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

// What the calls that post requests have in common: the checks that the interface asks for, and the way from
// a descriptor to what the NIC takes. post.cpp, amo.cpp and chain.cpp.
namespace orrery::gni {

inline constexpr std::uint64_t kMaxFma = 1ull << 30;      // bytes of one FMA transfer
inline constexpr std::uint64_t kMaxBte = 0xffff'ffffull;  // bytes of one BTE transfer
inline constexpr std::uint64_t kGetAlignment = 4;         // of a get's remote address and length
inline constexpr std::uint32_t kCqModes = GNI_CQMODE_DUAL_EVENTS | GNI_CQMODE_REMOTE_EVENT;
static_assert(GNI_CQMODE_LOCAL_EVENT == nic::kLocalEvent && GNI_CQMODE_GLOBAL_EVENT == nic::kGlobalEvent &&
              GNI_CQMODE_REMOTE_EVENT == nic::kRemoteEvent);

// What all requests have in common.
inline bool fill(const Ep& ep, const gni_post_descriptor_t& d, gni_post_descriptor_t* context,
                 nic::Request* request) {
  const std::uint32_t events = d.cq_mode;
  if ((events & ~kCqModes) != 0) [[unlikely]]
    return false;
  if ((events & GNI_CQMODE_DUAL_EVENTS) == GNI_CQMODE_DUAL_EVENTS && !ep.attachment->dual_events) [[unlikely]]
    return false;
  request->flags = events;
  if ((d.dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER) request->flags |= nic::kInOrder;
  request->remote = mem_handle::key_of(d.remote_mem_hndl);
  request->delivery_mode = d.dlvr_mode;
  request->context = context;
  return true;
}

// Whether the fast path may be tried: no mode but the plain events, one of them at most local.
inline bool is_usual(const gni_post_descriptor_t& d) {
  return (d.cq_mode & ~kCqModes) == 0 && (d.cq_mode & GNI_CQMODE_DUAL_EVENTS) != GNI_CQMODE_DUAL_EVENTS;
}

inline nic::Transfer transfer_of(const Ep& ep, const gni_post_descriptor_t& d,
                                 gni_post_descriptor_t* context) {
  return {.key = mem_handle::key_word_of(d.remote_mem_hndl),
          .local_address = d.local_addr,
          .remote_address = d.remote_addr,
          .length = d.length,
          .events = d.cq_mode,
          .in_order = (d.dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER,
          .queue = ep.endpoint.queue,
          .context = context};
}

inline common::LocalName local_name(const gni_post_descriptor_t& d) {
  return {{d.local_mem_hndl.qword1, d.local_mem_hndl.qword2}};
}

// Whether the NIC has said so of the local side before: registered memory at its own addresses.
inline bool is_granted_local(const Ep& ep, const gni_post_descriptor_t& d, std::uint64_t bytes, bool writes) {
  return ep.local.allows(local_name(d), d.local_addr, bytes, writes);
}

// The key of a local handle, whatever the client kept of it, and what its address means then.
inline nic::MemKey local_key(const Ep& ep, const gni_mem_handle_t& handle, std::uint64_t* address) {
  const nic::MemKey key = mem_handle::key_of(handle);
  if (!key.is_number()) [[likely]]
    return key;
  return ep.nic->regions().own_by_number(ep.attachment->port->domain, key, address);
}

// The local side of a get, a fetching AMO or a block transfer; `extra` bytes follow the descriptor's length.
// REQUIRES: request->local_address is the descriptor's.
inline gni_return_t check_local(const Ep& ep, nic::Request* request, const gni_post_descriptor_t& d,
                                std::uint64_t extra = 0) {
  request->local = local_key(ep, d.local_mem_hndl, &request->local_address);
  if (is_granted_local(ep, d, d.length + extra, request->op != nic::Op::put)) return GNI_RC_SUCCESS;
  const Errc local =
      ep.nic->regions().check_local(ep.attachment->port->domain, request->local, request->local_address,
                                    d.length + extra, request->op != nic::Op::put);
  if ((request->local.flags & nic::kSegmented) != 0) request->flags |= nic::kLocalOffset;
  return return_of(local);
}

inline gni_return_t check_get(const gni_post_descriptor_t& d) {
  if (d.length == 0) return GNI_RC_INVALID_PARAM;
  if ((d.remote_addr | d.length) % kGetAlignment != 0) return GNI_RC_ALIGNMENT_ERROR;
  return GNI_RC_SUCCESS;
}

// The same with what the older device asks of the local side. For operations that are not on the fast path:
// on that device is_plain_local() says no, so that every get comes here.
inline gni_return_t check_get(const Ep& ep, const gni_post_descriptor_t& d) {
  const gni_return_t checked = check_get(d);
  if (checked != GNI_RC_SUCCESS || !ep.attachment->gemini || d.local_addr % kGetAlignment == 0)
    return checked;
  return GNI_RC_ALIGNMENT_ERROR;
}

// Asks the NIC about the local side of a transfer, and keeps the answer for the next one.
[[gnu::noinline]] inline bool ask_local(Ep& ep, const gni_post_descriptor_t& d, std::uint64_t bytes,
                                        bool writes) {
  if (ep.attachment->gemini) return false;
  std::uint64_t address = d.local_addr;
  const nic::MemKey key = local_key(ep, d.local_mem_hndl, &address);
  return address == d.local_addr &&
         ep.local.ask(*ep.nic, *ep.attachment->port, local_name(d), key, d.local_addr, bytes, writes);
}

// Whether so many bytes of the local side are registered memory at its own addresses, and may be used so.
inline bool is_plain_local(Ep& ep, const gni_post_descriptor_t& d, std::uint64_t bytes, bool writes) {
  if (is_granted_local(ep, d, bytes, writes)) [[likely]]
    return true;
  return ask_local(ep, d, bytes, writes);
}
inline bool is_plain_local(Ep& ep, const gni_post_descriptor_t& d, bool writes) {
  return is_plain_local(ep, d, d.length, writes);
}

// What the NIC says to a request that was not accepted. An unbound endpoint is an argument that is not
// acceptable here.
inline gni_return_t answer(Errc code) {
  if (code == Errc::ok) [[likely]]
    return GNI_RC_SUCCESS;
  return code == Errc::invalid_state ? GNI_RC_INVALID_PARAM : return_of(code);
}

// The response flag of GET_W_FLAG and AMO_W_FLAG: at most one packet's data comes before it.
inline constexpr std::uint64_t kMaxFlagged = 64 - GNI_FMA_FLAGGED_RESPONSE_SIZE;
inline gni_return_t fill_response_flag(const gni_post_descriptor_t& d, nic::Request* request) {
  if (d.length > kMaxFlagged) return GNI_RC_SIZE_ERROR;
  request->flags |= nic::kResponseFlag;
  request->sync_value = d.sync_flag_value;
  return GNI_RC_SUCCESS;
}

// Checks what the descriptor of an AMO says and adds it to the request. amo.cpp
gni_return_t fill_amo(const Ep& ep, const gni_post_descriptor_t& d, nic::Request* request);

// GNI_PostFma for the types AMO and AMO_W_FLAG. amo.cpp
gni_return_t post_amo(Ep& ep, gni_post_descriptor_t* post_descr);

}  // namespace orrery::gni
