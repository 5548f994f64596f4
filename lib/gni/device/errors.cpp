// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/host/runtime.hpp"
#include "lib/gni/device/device_status.hpp"
#include "lib/gni/objects.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <optional>

#include <unistd.h>

// Subscriptions to errors. What is reported is what this process's operations met: the initiator's NIC knows
// the transaction and the PE that it was for.
namespace orrery::gni {

struct Err {
  static constexpr std::uint16_t kAllTags = UINT16_MAX;
  nic::Nic* nic = nullptr;
  nic::ErrorLog* log = nullptr;
  std::uint64_t handle = 0;
  std::uint64_t keeps = 64;
  std::optional<std::uint32_t> domain;  // errors of one attachment
  const job::Job* job = nullptr;
  std::atomic<std::uint16_t> only{kAllTags};  // errors of one tag
  std::atomic<std::uint8_t> mask{0};
  std::atomic<std::uint64_t> taken{0};  // serial of the last one looked at
  std::atomic<std::uint32_t> waiting{0};
};

namespace {

constexpr std::uint32_t kDefaultQueue = 64;
constexpr std::int64_t kNsPerMs = 1'000'000;
// How often a waiter asks whether a peer refused something that gets no answer.
constexpr std::int64_t kLookNs = 20 * kNsPerMs;

Err* find_err(gni_err_handle_t handle) {
  return static_cast<Err*>(handles().find(HandleKind::err, reinterpret_cast<std::uint64_t>(handle)));
}

// The class of an error.
std::uint8_t category_of(const nic::ErrorEvent& event) {
  if (event.corrected) return GNI_ERRMASK_INFORMATIONAL;
  switch (event.status) {
    case Errc::invalid_handle:
    case Errc::bounds:
    case Errc::permission:
      return GNI_ERRMASK_ADDRESS_TRANSLATION;
    case Errc::corrupt:
    case Errc::timeout:
      return GNI_ERRMASK_TRANSIENT;
    case Errc::no_match:
      return GNI_ERRMASK_UNKNOWN_TRANSACTION;
    default:
      return GNI_ERRMASK_TRANSACTION;
  }
}

std::uint8_t ptag_of(const Err& err, std::uint32_t domain) {
  const auto domains = err.job->directory().domains();
  return domain < domains.size() ? domains[domain].ptag : 0;
}

bool has_wanted_tag(const Err& err, std::uint32_t domain) {
  const std::uint16_t only = err.only.load(std::memory_order_relaxed);
  return only == Err::kAllTags || only == ptag_of(err, domain);
}

bool is_for(const Err& err, const nic::ErrorEvent& event) {
  return (category_of(event) & err.mask.load(std::memory_order_relaxed)) != 0 &&
         (!err.domain || *err.domain == event.domain) && has_wanted_tag(err, event.domain);
}

// Leaves the subscription the newest of its errors that it keeps. Whether some were lost by that.
bool drop_oldest(Err& err) {
  const std::uint64_t taken = err.taken.load(std::memory_order_relaxed);
  if (err.log->newest() - taken <= err.keeps) return false;
  std::deque<std::uint64_t> kept;  // serials
  bool lost = false;
  std::uint64_t at = taken;
  while (const auto found = err.log->next(at)) {
    // The log itself has forgotten some: their owners are not known any more.
    lost = lost || found->serial != at + 1;
    at = found->serial;
    if (!is_for(err, *found)) continue;
    kept.push_back(at);
    if (kept.size() <= err.keeps) continue;
    kept.pop_front();
    lost = true;
  }
  err.taken.store(kept.empty() ? at : kept.front() - 1, std::memory_order_relaxed);
  return lost;
}

// The next error that the subscription is for. ok; not_done; overrun: some of its were lost before it was
// looked for.
Errc take_error(Err& err, gni_error_event_t* event) {
  if (drop_oldest(err)) return Errc::overrun;
  for (;;) {
    const auto found = err.log->next(err.taken.load(std::memory_order_relaxed));
    if (!found) return Errc::not_done;
    err.taken.store(found->serial, std::memory_order_relaxed);
    if (!is_for(err, *found)) continue;
    *event = {.error_code = static_cast<std::uint16_t>(device_status_of(found->status)),
              .error_category = category_of(*found),
              .ptag = ptag_of(err, found->domain),
              .serial_number = static_cast<std::uint32_t>(found->serial),
              .timestamp = static_cast<std::uint64_t>(found->time_ns),
              .info_mmrs = {found->transaction, found->nic_address, 0, 0}};
    return Errc::ok;
  }
}

// Until there may be an error to take, or the deadline, in the time of Waits::now_ns(), has come.
void wait_for_error(Err& err, std::optional<std::int64_t> deadline) {
  nic::Nic& nic = *err.nic;
  if (!in_slices(nic)) {
    // Nothing but the clock knows what is to come.
    nic.attendant().move_in_turn();
    if (err.log->newest() > err.taken.load(std::memory_order_relaxed)) return;
    std::optional<Picos> until;
    if (deadline) until = Picos{*deadline * 1000};
    (void)nic.clock()->wait(until);
    return;
  }
  const std::int64_t look_again = monotonic_ns() + kLookNs;
  err.log->wait(err.taken.load(std::memory_order_relaxed),
                deadline ? std::min(*deadline, look_again) : look_again, [] { return false; });
}

}  // namespace

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::Err;
using orrery::gni::find;
using orrery::gni::find_err;
using orrery::gni::HandleKind;
using orrery::gni::handles;

extern "C" {

gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask,
                                 uint32_t EEQ_size, gni_err_handle_t* err_handle) {
  if (err_handle == nullptr) return GNI_RC_INVALID_PARAM;
  const Attachment* const attachment = find(nic_handle);
  if (nic_handle != nullptr && attachment == nullptr) return GNI_RC_INVALID_PARAM;
  if (EEQ_size > orrery::nic::ErrorLog::kErrorsKept) return GNI_RC_ERROR_RESOURCE;
  orrery::nic::Nic* nic = nullptr;
  const orrery::job::Job* job = nullptr;
  if (attachment != nullptr) {
    nic = attachment->nic;
    job = attachment->job;
  } else {
    if (device_id != 0) return GNI_RC_NO_MATCH;
    if (geteuid() != 0) return GNI_RC_PERMISSION_ERROR;
    const auto runtime = orrery::nic::Runtime::of_process();
    if (!runtime.ok()) return GNI_RC_ERROR_RESOURCE;
    nic = &runtime.value()->nic();
    job = &runtime.value()->job();
  }
  std::unique_ptr<Err> err(new (std::nothrow) Err);
  if (err == nullptr) return GNI_RC_ERROR_NOMEM;
  err->nic = nic;
  err->job = job;
  err->log = &nic->errors();
  err->keeps = EEQ_size == 0 ? orrery::gni::kDefaultQueue : EEQ_size;
  err->mask = mask;
  err->taken = err->log->newest();
  if (attachment != nullptr) {
    err->domain = attachment->port->domain;
  }
  err->handle = handles().insert(HandleKind::err, err.get());
  if (err->handle == 0) return GNI_RC_ERROR_NOMEM;
  *err_handle = reinterpret_cast<gni_err_handle_t>(err.release()->handle);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle) {
  Err* const err = find_err(err_handle);
  if (err == nullptr) return GNI_RC_INVALID_PARAM;
  if (err->waiting.load(std::memory_order_acquire) != 0) return GNI_RC_NOT_DONE;
  handles().erase(HandleKind::err, err->handle);
  delete err;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t* mask) {
  const Err* const err = find_err(err_handle);
  if (err == nullptr || mask == nullptr) return GNI_RC_INVALID_PARAM;
  *mask = err->mask.load(std::memory_order_relaxed);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in,
                              gni_error_mask_t* mask_out) {
  Err* const err = find_err(err_handle);
  if (err == nullptr) return GNI_RC_INVALID_PARAM;
  const std::uint8_t old = err->mask.exchange(mask_in, std::memory_order_relaxed);
  if (mask_out != nullptr) *mask_out = old;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t* event) {
  Err* const err = find_err(err_handle);
  if (err == nullptr || event == nullptr) return GNI_RC_INVALID_PARAM;
  err->nic->transport().collect_refusals();
  switch (orrery::gni::take_error(*err, event)) {
    case Errc::ok:
      return GNI_RC_SUCCESS;
    case Errc::overrun:
      return GNI_RC_ERROR_RESOURCE;
    default:
      // Under a clock a program that looks again and again lets time pass.
      if (err->nic->clock() != nullptr) err->nic->attendant().progress(err);
      return GNI_RC_NOT_DONE;
  }
}

gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t* events, uint32_t events_size,
                                 uint32_t timeout, uint32_t* num_events) {
  Err* const err = find_err(err_handle);
  if (err == nullptr || events == nullptr || events_size == 0 || num_events == nullptr)
    return GNI_RC_INVALID_PARAM;
  err->waiting.fetch_add(1, std::memory_order_acq_rel);
  std::optional<std::int64_t> deadline;
  std::uint32_t count = 0;
  while (count < events_size) {
    err->nic->transport().collect_refusals();
    // Some that were lost are passed over: what is left of them comes.
    const Errc found = orrery::gni::take_error(*err, &events[count]);
    if (found == Errc::overrun) continue;
    if (found == Errc::ok) {
      if (count++ == 0 && timeout != UINT32_MAX)
        deadline = err->nic->waits().now_ns() + timeout * orrery::gni::kNsPerMs;
      continue;
    }
    if (deadline && err->nic->waits().now_ns() >= *deadline) break;
    const orrery::job::WaitingCall here(err->job->directory(), err->job->self(), __func__);
    orrery::gni::wait_for_error(*err, deadline);
  }
  *num_events = count;
  err->waiting.fetch_sub(1, std::memory_order_acq_rel);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag) {
  Err* const err = find_err(err_handle);
  if (err == nullptr) return GNI_RC_INVALID_PARAM;
  // A tag of another domain than the attachment's is not ours to look at.
  if (err->domain && ptag != orrery::gni::ptag_of(*err, *err->domain)) return GNI_RC_PERMISSION_ERROR;
  err->only.store(ptag, std::memory_order_relaxed);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
