// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/shared_queue.hpp"
#include "lib/gni/status.hpp"

#include <limits>

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::Cq;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;
using orrery::gni::return_of;
using orrery::gni::SharedQueue;

extern "C" {

gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func* rcv_cb, void* cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t* attrs, gni_msgq_handle_t* msgq_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || rcv_cb == nullptr || attrs == nullptr || msgq_hndl == nullptr ||
      !SharedQueue::valid(*attrs))
    return GNI_RC_INVALID_PARAM;
  Cq* source = nullptr;
  if (snd_cq != nullptr) {
    source = find(snd_cq);
    if (source == nullptr || source->attachment != attachment) return GNI_RC_INVALID_PARAM;
    source->queue->become_source();
  }
  if (attachment->shared_queue != nullptr) return GNI_RC_INVALID_STATE;
  auto joined = SharedQueue::join(*attachment, *attrs, source, rcv_cb, cb_data);
  if (!joined.ok()) return return_of(joined.code());
  const std::uint64_t handle = handles().insert(HandleKind::msgq, joined.value().get());
  if (handle == 0) return GNI_RC_ERROR_NOMEM;
  joined.value()->handle = handle;
  attachment->shared_queue = std::move(joined).value();
  *msgq_hndl = reinterpret_cast<gni_msgq_handle_t>(handle);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl) {
  SharedQueue* const queue = find(msgq_hndl);
  if (queue == nullptr) return GNI_RC_INVALID_PARAM;
  // Its callback is called from its own progress(), which goes on with it.
  const Errc left = queue->in_callback() ? Errc::not_done : queue->leave();
  if (left != Errc::ok) return return_of(left);
  handles().erase(HandleKind::msgq, queue->handle);
  queue->attachment()->shared_queue.reset();
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl) {
  SharedQueue* const queue = find(msgq_hndl);
  if (queue == nullptr) return GNI_RC_INVALID_PARAM;
  return queue->idle() ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
}

gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t* attrs,
                                  uint32_t* attrs_size) {
  SharedQueue* const queue = find(msgq_hndl);
  if (queue == nullptr || attrs == nullptr || attrs_size == nullptr) return GNI_RC_INVALID_PARAM;
  return return_of(queue->describe(pe_addr, attrs, attrs_size));
}

gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t* attrs) {
  SharedQueue* const queue = find(msgq_hndl);
  if (queue == nullptr || attrs == nullptr) return GNI_RC_INVALID_PARAM;
  return return_of(queue->connect(pe_addr, *attrs));
}

gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr) {
  SharedQueue* const queue = find(msgq_hndl);
  return queue == nullptr ? GNI_RC_INVALID_PARAM : return_of(queue->disconnect(pe_addr));
}

gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void* hdr, uint32_t hdr_len,
                          void* msg, uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag) {
  SharedQueue* const queue = find(msgq_hndl);
  const Ep* const ep = find(ep_hndl);
  if (queue == nullptr || ep == nullptr || ep->attachment != queue->attachment() || !ep->endpoint.bound ||
      (hdr == nullptr && hdr_len != 0) || (msg == nullptr && msg_len != 0))
    return GNI_RC_INVALID_PARAM;
  return return_of(queue->send(ep->endpoint.remote_nic_address, ep->endpoint.remote_instance,
                               {.header = {static_cast<const std::byte*>(hdr), hdr_len},
                                .data = {static_cast<const std::byte*>(msg), msg_len},
                                .id = msg_id,
                                .tag = msg_tag}));
}

gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout) {
  SharedQueue* const queue = find(msgq_hndl);
  return queue == nullptr ? GNI_RC_INVALID_PARAM : return_of(queue->progress(timeout));
}

gni_return_t GNI_MsgqSize(gni_msgq_attr_t* attrs, uint32_t* size) {
  if (attrs == nullptr || size == nullptr || !SharedQueue::valid(*attrs)) return GNI_RC_INVALID_PARAM;
  *size = static_cast<std::uint32_t>(SharedQueue::bytes_of(*attrs));
  return GNI_RC_SUCCESS;
}

}  // extern "C"
