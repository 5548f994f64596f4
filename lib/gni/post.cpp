// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

// Requests. Each call checks what the interface asks to be refused at once and hands a Request to the NIC.
namespace orrery::gni {

namespace {

using nic::Op;
using nic::Request;

constexpr std::uint64_t kMaxFma = 1ull << 30;      // bytes of one FMA transfer
constexpr std::uint64_t kMaxBte = 0xffff'ffffull;  // bytes of one BTE transfer
constexpr std::uint64_t kGetAlignment = 4;         // of a get's remote address and length
constexpr std::uint32_t kCqModes = GNI_CQMODE_DUAL_EVENTS | GNI_CQMODE_REMOTE_EVENT;
static_assert(GNI_CQMODE_LOCAL_EVENT == nic::kLocalEvent && GNI_CQMODE_GLOBAL_EVENT == nic::kGlobalEvent &&
              GNI_CQMODE_REMOTE_EVENT == nic::kRemoteEvent);

// What all requests have in common.
bool fill(const Ep& ep, const gni_post_descriptor_t& d, gni_post_descriptor_t* context, Request* request) {
  const std::uint32_t events = d.cq_mode;
  if ((events & ~kCqModes) != 0) [[unlikely]]
    return false;
  if ((events & GNI_CQMODE_DUAL_EVENTS) == GNI_CQMODE_DUAL_EVENTS && !ep.attachment->dual_events) [[unlikely]]
    return false;
  request->flags = events;
  if ((d.dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER) request->flags |= nic::kInOrder;
  request->remote = mem_handle::key_of(d.remote_mem_hndl);
  request->context = context;
  return true;
}

// Whether the short way may be tried: no mode but the plain events, one of them at most local.
bool is_usual(const gni_post_descriptor_t& d) {
  return (d.cq_mode & ~kCqModes) == 0 && (d.cq_mode & GNI_CQMODE_DUAL_EVENTS) != GNI_CQMODE_DUAL_EVENTS;
}

nic::Transfer transfer_of(const gni_post_descriptor_t& d, gni_post_descriptor_t* context) {
  return {.key = mem_handle::key_word_of(d.remote_mem_hndl),
          .local_address = d.local_addr,
          .remote_address = d.remote_addr,
          .length = d.length,
          .events = d.cq_mode,
          .in_order = (d.dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER,
          .context = context};
}

// The local side of a get or a block transfer.
gni_return_t check_local(const Ep& ep, Request* request, const gni_post_descriptor_t& d) {
  request->local = mem_handle::key_of(d.local_mem_hndl);
  const Errc local = ep.nic->check_local(*ep.attachment->port, request->local, d.local_addr, d.length,
                                         request->op == Op::get);
  if ((request->local.flags & nic::kSegmented) != 0) request->flags |= nic::kLocalOffset;
  return return_of(local);
}

gni_return_t check_get(const gni_post_descriptor_t& d) {
  if (d.length == 0) return GNI_RC_INVALID_PARAM;
  if ((d.remote_addr | d.length) % kGetAlignment != 0) return GNI_RC_ALIGNMENT_ERROR;
  return GNI_RC_SUCCESS;
}

// Asks the NIC about the local side of a transfer, and keeps the answer for the next one.
[[gnu::noinline]] bool ask_local(Ep& ep, const gni_post_descriptor_t& d, bool writes) {
  const nic::MemKey key = mem_handle::key_of(d.local_mem_hndl);
  const Errc checked = ep.nic->check_local(*ep.attachment->port, key, d.local_addr, d.length, writes);
  if (checked != Errc::ok || (key.flags & nic::kSegmented) != 0) return false;
  const nic::MrtEntry& entry = ep.nic->view().region(key.index);
  const std::uint64_t word = entry.control.load(std::memory_order_acquire);
  if (nic::control::generation(word) != key.generation) return false;
  ep.local = {.handle = d.local_mem_hndl,
              .entry = &entry,
              .control = word,
              .begin = entry.begin.load(std::memory_order_relaxed),
              .size = entry.end.load(std::memory_order_relaxed) - entry.begin.load(std::memory_order_relaxed),
              .writable = (nic::control::flags(word) & nic::kReadOnly) == 0};
  return true;
}

// Whether the local side is registered memory at its own addresses, and may be used so.
inline bool is_plain_local(Ep& ep, const gni_post_descriptor_t& d, bool writes) {
  const LocalGrant& local = ep.local;
  const std::uint64_t offset = d.local_addr - local.begin;
  if (local.entry != nullptr && local.handle.qword1 == d.local_mem_hndl.qword1 &&
      local.handle.qword2 == d.local_mem_hndl.qword2 && offset <= local.size &&
      d.length <= local.size - offset && (local.writable || !writes) &&
      local.entry->control.load(std::memory_order_acquire) == local.control) [[likely]]
    return true;
  return ask_local(ep, d, writes);
}

// What the NIC says to a request that was not accepted. An unbound endpoint is an argument that is not
// acceptable here.
gni_return_t answer(Errc code) {
  if (code == Errc::ok) [[likely]]
    return GNI_RC_SUCCESS;
  return code == Errc::invalid_state ? GNI_RC_INVALID_PARAM : return_of(code);
}

// Everything but a put through a key that was granted before.
[[gnu::noinline]] gni_return_t post_fma_checked(Ep& ep, gni_post_descriptor_t* post_descr) {
  const gni_post_descriptor_t& d = *post_descr;
  Request request;
  if (!fill(ep, d, post_descr, &request)) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  switch (raw_value(d.type)) {
    case GNI_POST_FMA_PUT:
      break;
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
      request.flags |= nic::kSyncFlag;
      request.sync_address = d.sync_flag_addr;
      request.sync_value = d.sync_flag_value;
      break;
    case GNI_POST_FMA_GET: {
      request.op = Op::get;
      const gni_return_t aligned = check_get(d);
      if (aligned != GNI_RC_SUCCESS) return aligned;
      const gni_return_t local = check_local(ep, &request, d);
      if (local != GNI_RC_SUCCESS) return local;
      break;
    }
    case GNI_POST_CE:
      return post_ce(ep, post_descr);
    case GNI_POST_FMA_GET_W_FLAG:
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
      return GNI_RC_ILLEGAL_OP;
    default:
      return GNI_RC_INVALID_PARAM;
  }
  if (d.length > kMaxFma) [[unlikely]]
    return GNI_RC_SIZE_ERROR;
  if (d.local_addr == 0 && request.op == Op::put && d.length != 0) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  request.local_address = d.local_addr;
  request.remote_address = d.remote_addr;
  request.length = d.length;
  return answer(ep.nic->post(ep.endpoint, request));
}

// Everything but a short transfer through a key that was granted before.
[[gnu::noinline]] gni_return_t post_rdma_checked(Ep& ep, gni_post_descriptor_t* post_descr) {
  const gni_post_descriptor_t& d = *post_descr;
  Request request;
  if (!fill(ep, d, post_descr, &request)) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  request.flags |= nic::kBlockTransfer;
  switch (raw_value(d.type)) {
    case GNI_POST_RDMA_PUT:
      break;
    case GNI_POST_RDMA_GET: {
      request.op = Op::get;
      const gni_return_t aligned = check_get(d);
      if (aligned != GNI_RC_SUCCESS) return aligned;
      break;
    }
    default:
      return GNI_RC_INVALID_PARAM;
  }
  if (d.length > kMaxBte) [[unlikely]]
    return GNI_RC_SIZE_ERROR;
  if ((d.rdma_mode & GNI_RDMAMODE_PHYS_ADDR) != 0) [[unlikely]]
    return GNI_RC_PERMISSION_ERROR;
  if ((d.rdma_mode & GNI_RDMAMODE_FENCE) != 0) request.flags |= nic::kFence;
  const gni_return_t local = check_local(ep, &request, d);
  if (local != GNI_RC_SUCCESS) [[unlikely]]
    return local;
  request.local_address = d.local_addr;
  request.remote_address = d.remote_addr;
  request.length = d.length;
  if (d.src_cq_hndl == nullptr) return answer(ep.nic->post(ep.endpoint, request));

  // Another queue than the endpoint's, for this post alone.
  const Cq* const cq = find(d.src_cq_hndl);
  if (cq == nullptr || cq->attachment != ep.attachment) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  cq->queue->become_source();
  nic::CompletionQueue* const own = ep.endpoint.queue;
  ep.endpoint.queue = cq->queue;
  const Errc posted = ep.nic->post(ep.endpoint, request);
  ep.endpoint.queue = own;
  return answer(posted);
}

}  // namespace

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Cq;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::raw_value;
using orrery::nic::Op;
using orrery::nic::Request;

extern "C" {

gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_descr == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  const gni_post_descriptor_t& d = *post_descr;
  if (raw_value(d.type) == GNI_POST_FMA_PUT && orrery::gni::is_usual(d) && d.local_addr != 0 &&
      d.length <= orrery::gni::kMaxFma) [[likely]] {
    const Errc done =
        orrery::nic::try_granted<Op::put>(ep->endpoint, orrery::gni::transfer_of(d, post_descr));
    if (done != Errc::not_done) [[likely]]
      return orrery::gni::answer(done);
  }
  if (raw_value(d.type) == GNI_POST_FMA_GET && orrery::gni::is_usual(d) &&
      orrery::gni::check_get(d) == GNI_RC_SUCCESS && d.length <= orrery::gni::kMaxFma &&
      orrery::gni::is_plain_local(*ep, d, true)) {
    const Errc done =
        orrery::nic::try_granted<Op::get>(ep->endpoint, orrery::gni::transfer_of(d, post_descr));
    if (done != Errc::not_done) [[likely]]
      return orrery::gni::answer(done);
  }
  return orrery::gni::post_fma_checked(*ep, post_descr);
}

gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_descr == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  const gni_post_descriptor_t& d = *post_descr;
  if (orrery::gni::is_usual(d) && d.rdma_mode == 0 && d.src_cq_hndl == nullptr &&
      ep->nic->block_transfer_is_short(d.length)) {
    const auto type = raw_value(d.type);
    if (type == GNI_POST_RDMA_PUT && orrery::gni::is_plain_local(*ep, d, false)) {
      const Errc done =
          orrery::nic::try_granted<Op::put>(ep->endpoint, orrery::gni::transfer_of(d, post_descr));
      if (done != Errc::not_done) [[likely]]
        return orrery::gni::answer(done);
    } else if (type == GNI_POST_RDMA_GET && orrery::gni::check_get(d) == GNI_RC_SUCCESS &&
               orrery::gni::is_plain_local(*ep, d, true)) {
      const Errc done =
          orrery::nic::try_granted<Op::get>(ep->endpoint, orrery::gni::transfer_of(d, post_descr));
      if (done != Errc::not_done) [[likely]]
        return orrery::gni::answer(done);
    }
  }
  return orrery::gni::post_rdma_checked(*ep, post_descr);
}

gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_descr == nullptr || raw_value(post_descr->type) != GNI_POST_CQWRITE)
    return GNI_RC_INVALID_PARAM;
  const gni_post_descriptor_t& d = *post_descr;
  Request request;
  if (!orrery::gni::fill(*ep, d, post_descr, &request)) return GNI_RC_INVALID_PARAM;
  request.op = Op::cq_write;
  request.cq_data = d.cqwrite_value & 0xffff'ffff'ffffull;
  return orrery::gni::answer(ep->nic->post(ep->endpoint, request));
}

}  // extern "C"
