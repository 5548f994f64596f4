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

// What the NIC says to a request that was not accepted. An unbound endpoint is an argument that is not
// acceptable here.
gni_return_t answer(Errc code) {
  if (code == Errc::ok) [[likely]]
    return GNI_RC_SUCCESS;
  return code == Errc::invalid_state ? GNI_RC_INVALID_PARAM : return_of(code);
}

}  // namespace

}  // namespace orrery::gni

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
  Request request;
  if (!orrery::gni::fill(*ep, d, post_descr, &request)) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  switch (raw_value(d.type)) {
    case GNI_POST_FMA_PUT:
      break;
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
      request.flags |= orrery::nic::kSyncFlag;
      request.sync_address = d.sync_flag_addr;
      request.sync_value = d.sync_flag_value;
      break;
    case GNI_POST_FMA_GET: {
      request.op = Op::get;
      const gni_return_t aligned = orrery::gni::check_get(d);
      if (aligned != GNI_RC_SUCCESS) return aligned;
      const gni_return_t local = orrery::gni::check_local(*ep, &request, d);
      if (local != GNI_RC_SUCCESS) return local;
      break;
    }
    case GNI_POST_FMA_GET_W_FLAG:
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
    case GNI_POST_CE:
      return GNI_RC_ILLEGAL_OP;
    default:
      return GNI_RC_INVALID_PARAM;
  }
  if (d.length > orrery::gni::kMaxFma) [[unlikely]]
    return GNI_RC_SIZE_ERROR;
  if (d.local_addr == 0 && request.op == Op::put && d.length != 0) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  request.local_address = d.local_addr;
  request.remote_address = d.remote_addr;
  request.length = d.length;
  return orrery::gni::answer(ep->nic->post(ep->endpoint, request));
}

gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_descr == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  const gni_post_descriptor_t& d = *post_descr;
  Request request;
  if (!orrery::gni::fill(*ep, d, post_descr, &request)) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  request.flags |= orrery::nic::kBlockTransfer;
  switch (raw_value(d.type)) {
    case GNI_POST_RDMA_PUT:
      break;
    case GNI_POST_RDMA_GET: {
      request.op = Op::get;
      const gni_return_t aligned = orrery::gni::check_get(d);
      if (aligned != GNI_RC_SUCCESS) return aligned;
      break;
    }
    default:
      return GNI_RC_INVALID_PARAM;
  }
  if (d.length > orrery::gni::kMaxBte) [[unlikely]]
    return GNI_RC_SIZE_ERROR;
  if ((d.rdma_mode & GNI_RDMAMODE_PHYS_ADDR) != 0) [[unlikely]]
    return GNI_RC_PERMISSION_ERROR;
  if ((d.rdma_mode & GNI_RDMAMODE_FENCE) != 0) request.flags |= orrery::nic::kFence;
  const gni_return_t local = orrery::gni::check_local(*ep, &request, d);
  if (local != GNI_RC_SUCCESS) [[unlikely]]
    return local;
  request.local_address = d.local_addr;
  request.remote_address = d.remote_addr;
  request.length = d.length;
  if (d.src_cq_hndl == nullptr) return orrery::gni::answer(ep->nic->post(ep->endpoint, request));

  // Another queue than the endpoint's, for this post alone.
  const Cq* const cq = find(d.src_cq_hndl);
  if (cq == nullptr || cq->attachment != ep->attachment) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  cq->queue->become_source();
  orrery::nic::CompletionQueue* const own = ep->endpoint.queue;
  ep->endpoint.queue = cq->queue;
  const orrery::Errc posted = ep->nic->post(ep->endpoint, request);
  ep->endpoint.queue = own;
  return orrery::gni::answer(posted);
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
