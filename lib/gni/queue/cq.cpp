// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"
#include "lib/gni/device/device_status.hpp"
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/queue/cq_entry.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

// Completion queues, and taking descriptors back.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kCqModes =
    GNI_CQ_BLOCKING | GNI_CQ_EMULATED | GNI_CQ_PHYS_PAGES | GNI_CQ_UNMANAGED | GNI_CQ_NOAUTOFILL;

// How long a queue waits for operations of destroyed endpoints.
constexpr std::int64_t kQueueSettleNs = 100'000'000;

std::uint8_t code_of(Errc status) { return static_cast<std::uint8_t>(device_status_of(status)); }

void no_handler(gni_cq_entry_t* /*entry*/, void* /*context*/) {}

gni_cq_entry_t entry_of_sent(const nic::Event& event, std::uint8_t status) {
  return cq_entry::message_sent(static_cast<std::uint32_t>(event.data), status);
}
gni_cq_entry_t entry_of_arrived(const nic::Event& event, std::uint8_t status) {
  return cq_entry::remote(GNI_CQ_EVENT_TYPE_SMSG, static_cast<std::uint32_t>(event.data), status);
}

gni_cq_entry_t entry_of(const nic::Event& event) {
  switch (event.kind) {
    case nic::EventKind::post:
      return event.global()
                 ? cq_entry::post(event.transaction(), event.user_value(), code_of(event.status))
                 : cq_entry::post_local(event.transaction(), event.user_value(), code_of(event.status));
    case nic::EventKind::remote:
      return cq_entry::remote(GNI_CQ_EVENT_TYPE_POST, static_cast<std::uint32_t>(event.data),
                              code_of(event.status));
    case nic::EventKind::cq_write:
      return cq_entry::cq_write(event.data, code_of(event.status));
    case nic::EventKind::message_sent:
      return entry_of_sent(event, code_of(event.status));
    case nic::EventKind::queued_sent:
      return cq_entry::queued_sent(static_cast<std::uint32_t>(event.data), code_of(event.status));
    case nic::EventKind::message_arrived:
      return entry_of_arrived(event, code_of(event.status));
    case nic::EventKind::collective:
      return cq_entry::collective(event.data, static_cast<std::uint8_t>(event.data >> 48 & 0x3f));
    case nic::EventKind::received:  // no queue of uGNI is a channel's, nor one of records
    case nic::EventKind::record:
    case nic::EventKind::overrun:
    case nic::EventKind::none:
      break;
  }
  return cq_entry::overrun(code_of(Errc::overrun));
}

// What entry_of makes of a post that went well, which is what most entries are.
gni_cq_entry_t entry_of_success(const nic::Event& event) {
  constexpr gni_cq_entry_t kGlobal = cq_entry::post(0, 0, 0);
  constexpr gni_cq_entry_t kLocal = cq_entry::post_local(0, 0, 0);
  return (event.global() ? kGlobal : kLocal) | std::uint64_t{event.transaction()} << cq_entry::kTid.shift |
         (event.user_value() & cq_entry::kLocalInstId.mask());
}
static_assert(static_cast<int>(DeviceStatus::okay) == 0);

// The descriptor of a message is never asked for: its place among the queue's requests is free again.
void collect_sent(const Cq& cq, const nic::Event& event) {
  void* none = nullptr;
  (void)cq.queue->collect(static_cast<std::uint32_t>(event.data >> 32), &none);
}

}  // namespace

gni_return_t hand_over(const Cq& cq, Errc found, const nic::Event& event, gni_cq_entry_t* event_data) {
  *event_data = entry_of(event);
  if (cq.attachment->gemini && event.kind == nic::EventKind::post)
    *event_data = cq_entry::widen(*event_data, event.user_value());
  if (event.kind == nic::EventKind::message_sent || event.kind == nic::EventKind::queued_sent)
    collect_sent(cq, event);
  if (cq.handler != nullptr) [[unlikely]]
    cq.handler(event_data, cq.context);
  if (found != Errc::ok) [[unlikely]]
    return return_of(found);
  if (event.kind == nic::EventKind::collective && cq_entry::kStatus.get(*event_data) != 0)
    return GNI_RC_TRANSACTION_ERROR;
  return event.status == Errc::ok ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR;
}

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::Cq;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;
using orrery::gni::return_of;
namespace cq_entry = orrery::gni::cq_entry;

extern "C" {

gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t /*delay_count*/,
                          gni_cq_mode_t mode, void (*handler)(gni_cq_entry_t*, void*), void* context,
                          gni_cq_handle_t* cq_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || cq_hndl == nullptr || entry_count == 0 || (mode & ~orrery::gni::kCqModes) != 0)
    return GNI_RC_INVALID_PARAM;
  std::unique_ptr<Cq> cq(new (std::nothrow) Cq);
  if (cq == nullptr) return GNI_RC_ERROR_NOMEM;
  const std::uint32_t nic_mode = (mode & GNI_CQ_UNMANAGED) != 0 ? std::uint32_t{orrery::nic::kUnmanaged} : 0;
  if (entry_count > (attachment->gemini ? cq_entry::kMaxWideDepth : orrery::nic::kMaxQueueDepth) ||
      !orrery::gni::take(*attachment, orrery::gni::Resource::cq))
    return GNI_RC_ERROR_RESOURCE;
  // Each request may raise two events: a queue for one request has room for both.
  const std::uint32_t depth = attachment->dual_events ? std::max(entry_count, 2u) : entry_count;
  const auto queue = attachment->nic->create_queue(depth, nic_mode);
  if (!queue.ok()) {
    orrery::gni::give(*attachment, orrery::gni::Resource::cq);
    return return_of(queue.code());
  }
  cq->queue = queue.value();
  if (attachment->dual_events) cq->queue->limit_transactions((entry_count + 1) / 2);
  cq->nic = attachment->nic;
  // The fast path of GNI_CqGetEvent makes Aries entries: a queue with a handler does not take it.
  cq->handler = handler == nullptr && attachment->gemini ? orrery::gni::no_handler : handler;
  cq->context = context;
  cq->attachment = attachment;
  cq->blocking = (mode & GNI_CQ_BLOCKING) != 0;
  cq->handle = handles().insert(HandleKind::cq, cq.get());
  if (cq->handle == 0) {
    (void)attachment->nic->destroy_queue(cq->queue);
    orrery::gni::give(*attachment, orrery::gni::Resource::cq);
    return GNI_RC_ERROR_NOMEM;
  }
  *cq_hndl = reinterpret_cast<gni_cq_handle_t>(cq->handle);
  attachment->queues.push_back(std::move(cq));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl) {
  Cq* const cq = find(cq_hndl);
  if (cq == nullptr) return GNI_RC_INVALID_PARAM;
  Attachment& attachment = *cq->attachment;
  orrery::gni::sweep(attachment);
  const auto names_it = [&](const auto& ep) { return ep->source == cq; };
  const std::int64_t deadline = orrery::monotonic_ns() + orrery::gni::kQueueSettleNs;
  while (std::any_of(attachment.departed.begin(), attachment.departed.end(), names_it) &&
         orrery::monotonic_ns() < deadline) {
    if (attachment.nic->clock() != nullptr) attachment.nic->progress();
    orrery::yield_cpu();
    orrery::gni::sweep(attachment);
  }
  // As the NIC would, but before anything is taken off it: only this thread lets operations begin that name
  // it.
  if (cq->queue->references.load(std::memory_order_acquire) != 0) return GNI_RC_ERROR_RESOURCE;
  if (cq->channel != nullptr) orrery::gni::detach(*cq);
  const bool is_left = orrery::gni::end_stays(*cq);
  if (is_left) {
    const orrery::Status destroyed = attachment.nic->destroy_queue(cq->queue);
    if (!destroyed.ok()) {
      cq->stays.go_on();
      return return_of(destroyed);
    }
  }
  handles().erase(HandleKind::cq, cq->handle);
  orrery::gni::give(attachment, orrery::gni::Resource::cq);
  const auto at = std::find_if(attachment.queues.begin(), attachment.queues.end(),
                               [&](const auto& q) { return q.get() == cq; });
  if (is_left)
    orrery::bury(std::move(*at));
  else
    (void)at->release();
  attachment.queues.erase(at);
  return GNI_RC_SUCCESS;
}

ORRERY_TIMED_PATH gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t* event_data) {
  const Cq* const cq = find(cq_hndl);
  if (cq == nullptr || event_data == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  orrery::nic::Event event;
  const Errc found = cq->nic->poll(*cq->queue, &event);
  if (found == Errc::not_done) return GNI_RC_NOT_DONE;
  // What most events are: of a post or a message that went well.
  if (event.status == Errc::ok && cq->handler == nullptr) [[likely]] {
    switch (event.kind) {
      case orrery::nic::EventKind::post:
        *event_data = orrery::gni::entry_of_success(event);
        return GNI_RC_SUCCESS;
      case orrery::nic::EventKind::message_arrived:
        *event_data = orrery::gni::entry_of_arrived(event, 0);
        return GNI_RC_SUCCESS;
      case orrery::nic::EventKind::message_sent:
        orrery::gni::collect_sent(*cq, event);
        *event_data = orrery::gni::entry_of_sent(event, 0);
        return GNI_RC_SUCCESS;
      default:
        break;
    }
  }
  return orrery::gni::hand_over(*cq, found, event, event_data);
}

gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t* event_data) {
  Cq* const cq = find(cq_hndl);
  if (cq == nullptr || event_data == nullptr) return GNI_RC_INVALID_PARAM;
  if (!cq->blocking) return GNI_RC_ERROR_RESOURCE;
  const std::optional<std::int64_t> deadline = orrery::gni::deadline_of(*cq->nic, timeout);
  for (;;) {
    orrery::nic::Event event;
    const Errc found = cq->nic->poll(*cq->queue, &event);
    if (found != Errc::not_done) return orrery::gni::hand_over(*cq, found, event, event_data);
    const orrery::gni::Stay inside(cq->stays);
    if (cq->stays.ended()) return GNI_RC_INVALID_PARAM;
    const orrery::gni::Sleep here(*cq->attachment, __func__);
    const bool came = orrery::gni::wait_inside(
        cq->stays, orrery::gni::in_slices(*cq->nic), deadline,
        [&](auto until) { return cq->nic->waits().wait(*cq->queue, until) != Errc::timeout; });
    if (cq->stays.ended()) return GNI_RC_INVALID_PARAM;
    if (!came) return GNI_RC_TIMEOUT;
  }
}

ORRERY_TIMED_PATH gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl) {
  const Cq* const cq = find(cq_hndl);
  if (cq == nullptr) return GNI_RC_INVALID_PARAM;
  Errc found = cq->queue->test();
  if (found == Errc::not_done) {
    cq->nic->attendant().progress(cq->queue);
    found = cq->queue->test();
  }
  return return_of(found);
}

ORRERY_TIMED_PATH gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data,
                                                gni_post_descriptor_t** post_descr) {
  const Cq* const cq = find(cq_hndl);
  if (cq == nullptr || post_descr == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  *post_descr = nullptr;
  if (!cq_entry::is_post(event_data)) [[unlikely]]
    return GNI_RC_DESCRIPTOR_ERROR;
  const auto tid = static_cast<std::uint32_t>(cq_entry::kTid.get(event_data));
  void* context = nullptr;
  if (!cq->queue->collect(tid, &context)) [[unlikely]] {
    // A wide entry has the top of its event value where an Aries entry has the top of the transaction.
    const auto narrow = static_cast<std::uint32_t>(cq_entry::tid_field(event_data).get(event_data));
    if (narrow == tid || !cq->queue->collect(narrow, &context)) return GNI_RC_DESCRIPTOR_ERROR;
  }
  auto* const descriptor = static_cast<gni_post_descriptor_t*>(context);
  const gni_return_t status =
      cq_entry::kStatus.get(event_data) == 0 ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR;
  descriptor->status = status;
  descriptor->cq_mode_complete =
      cq_entry::is_local(event_data) ? GNI_CQMODE_LOCAL_EVENT : GNI_CQMODE_GLOBAL_EVENT;
  *post_descr = descriptor;
  return status;
}

}  // extern "C"
