// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/message/destination_queue.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::DestinationQueue;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_DqueueInit(gni_nic_handle_t nic_hndl, gni_dqueue_in_attr_t* in_attrs,
                            gni_dqueue_out_attr_t* out_attrs, gni_dqueue_handle_t* dqueue_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || in_attrs == nullptr || out_attrs == nullptr || dqueue_hndl == nullptr)
    return GNI_RC_INVALID_PARAM;
  auto made = DestinationQueue::make(*attachment, *in_attrs);
  if (!made.ok()) return return_of(made.code());
  const std::uint64_t handle = handles().insert(HandleKind::dqueue, made.value().get());
  if (handle == 0) return GNI_RC_ERROR_NOMEM;
  made.value()->handle = handle;
  *out_attrs = made.value()->describe();
  attachment->destination_queues.push_back(std::move(made).value());
  *dqueue_hndl = reinterpret_cast<gni_dqueue_handle_t>(handle);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_DqueueFini(gni_dqueue_handle_t dqueue_hndl) {
  DestinationQueue* const queue = find(dqueue_hndl);
  if (queue == nullptr) return GNI_RC_INVALID_PARAM;
  // Its callback is called from its own progress(), which goes on with it.
  const Errc closed = queue->in_callback() ? Errc::not_done : queue->close();
  if (closed != Errc::ok) return return_of(closed);
  handles().erase(HandleKind::dqueue, queue->handle);
  std::erase_if(queue->attachment()->destination_queues, [&](const auto& q) { return q.get() == queue; });
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_DqueueConnect(gni_dqueue_handle_t dqueue_hndl, gni_dqueue_out_attr_t* attrs,
                               uint32_t nattrs) {
  DestinationQueue* const queue = find(dqueue_hndl);
  if (queue == nullptr || attrs == nullptr || nattrs == 0) return GNI_RC_INVALID_PARAM;
  return return_of(queue->connect({attrs, nattrs}));
}

gni_return_t GNI_DqueuePut(gni_dqueue_handle_t dqueue_hndl, void* data, uint32_t length, uint32_t pe_addr,
                           uint32_t inst_id) {
  DestinationQueue* const queue = find(dqueue_hndl);
  if (queue == nullptr || (data == nullptr && length != 0)) return GNI_RC_INVALID_PARAM;
  return return_of(queue->put(pe_addr, inst_id, {static_cast<const std::byte*>(data), length}));
}

gni_return_t GNI_DqueueProgress(gni_dqueue_handle_t dqueue_hndl) {
  DestinationQueue* const queue = find(dqueue_hndl);
  return queue == nullptr ? GNI_RC_INVALID_PARAM : return_of(queue->progress());
}

}  // extern "C"
