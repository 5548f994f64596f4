// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "lib/gni/objects.hpp"

#include <algorithm>
#include <new>

// Endpoints.
namespace orrery::gni {

namespace {

// How often the end of a binding looks whether its last frames were taken, and whether an operation that has
// raised its event has counted itself out.
constexpr int kUnbindPatience = 500;

void let_go_of_queue(Ep& ep) {
  if (ep.source != nullptr) ep.source->queue->references.fetch_sub(1, std::memory_order_relaxed);
}

// Acquire: pairs with the release of the last operation's end; no thread touches the endpoint after it.
bool idle(const Ep& ep) { return ep.endpoint.is_idle(); }

bool settle(Ep& ep) {
  if (!idle(ep)) ep.nic->progress();
  return idle(ep);
}

}  // namespace

void sweep(Attachment& attachment) {
  if (attachment.departed.empty()) return;
  attachment.nic->progress();
  std::erase_if(attachment.departed, [](auto& ep) {
    if (!idle(*ep)) return false;
    let_go_of_queue(*ep);
    bury(std::move(ep));
    return true;
  });
}

}  // namespace orrery::gni

using orrery::gni::Attachment;
using orrery::gni::Cq;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;

extern "C" {

gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl, gni_ep_handle_t* ep_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || ep_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  Cq* const source = find(src_cq_hndl);
  if (src_cq_hndl != nullptr && (source == nullptr || source->attachment != attachment))
    return GNI_RC_INVALID_PARAM;
  orrery::gni::sweep(*attachment);
  std::unique_ptr<Ep> ep(new (std::nothrow) Ep);
  if (ep == nullptr) return GNI_RC_ERROR_NOMEM;
  ep->handle = handles().insert(HandleKind::ep, ep.get());
  if (ep->handle == 0) return GNI_RC_ERROR_NOMEM;
  ep->nic = attachment->nic;
  ep->attachment = attachment;
  ep->usual_amo = attachment->gemini ? -1 : 0;
  ep->endpoint.port = attachment->port;
  ep->endpoint.remote_event_data = attachment->instance;
  ep->source = source;
  if (source != nullptr) {
    source->queue->become_source();
    source->queue->references.fetch_add(1, std::memory_order_relaxed);
    ep->endpoint.queue = source->queue;
  }
  *ep_hndl = reinterpret_cast<gni_ep_handle_t>(ep->handle);
  attachment->endpoints.push_back(std::move(ep));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event, uint32_t remote_event) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  ep->endpoint.local_event_data = local_event;
  ep->endpoint.remote_event_data = remote_event;
  ep->values_set = true;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || ep->endpoint.bound) return GNI_RC_INVALID_PARAM;
  ep->endpoint.remote_nic_address = remote_addr;
  ep->endpoint.remote_instance = remote_id;
  if (!ep->values_set) ep->endpoint.local_event_data = remote_id;
  ep->endpoint.bound = true;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  if (ep->nic->datagrams().is_open(ep->endpoint)) return GNI_RC_NOT_DONE;
  // Credits that travel by frame are nothing that the client knows of, and an event comes a little before the
  // engine is done with its descriptor: they get a moment.
  // Not under a clock, where each look would cost the program time.
  const bool patient = ep->endpoint.mailbox != nullptr || ep->nic->clock() == nullptr;
  for (int patience = patient ? orrery::gni::kUnbindPatience : 1; !orrery::gni::settle(*ep);
       orrery::yield_cpu()) {
    if (--patience == 0) return GNI_RC_NOT_DONE;
  }
  ep->nic->datagrams().forget(ep->endpoint);
  ep->endpoint.mailbox.reset();
  ep->endpoint.bound = false;
  ep->endpoint.forget_peer();
  ep->edge = {};
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  const bool at_rest = orrery::gni::settle(*ep) && !ep->nic->datagrams().is_busy(ep->endpoint);
  return at_rest ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
}

gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl) {
  auto* const ep =
      static_cast<Ep*>(handles().erase(HandleKind::ep, reinterpret_cast<std::uint64_t>(ep_hndl)));
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  ep->nic->datagrams().leave_behind(ep->endpoint);
  const bool is_left = ep->stays.end([] {});
  auto& endpoints = ep->attachment->endpoints;
  const auto at =
      std::find_if(endpoints.begin(), endpoints.end(), [&](const auto& e) { return e.get() == ep; });
  Attachment& attachment = *ep->attachment;
  if (is_left)
    attachment.departed.push_back(std::move(*at));
  else
    (void)at->release();
  *at = std::move(endpoints.back());
  endpoints.pop_back();
  orrery::gni::sweep(attachment);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
