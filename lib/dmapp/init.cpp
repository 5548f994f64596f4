// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "lib/dmapp/context.hpp"
#include "lib/dmapp/heap_size.hpp"
#include "lib/dmapp/queue.hpp"

#include <array>
#include <mutex>

// Start, end, attributes, and what a PE is told about itself.
namespace orrery::dmapp {

namespace {

constexpr std::uint32_t kMajor = 7;
constexpr std::uint32_t kMinor = 0;

template <typename Attrs>
dmapp_return_t init(const Attrs* requested, Attributes* actual) {
  if (Context* const there = here(); there != nullptr) {
    if (requested != nullptr) {
      there->attributes = later(there->attributes, *requested);
      there->use_attributes();
    }
    *actual = there->attributes;
    return DMAPP_RC_SUCCESS;
  }
  const Attributes attributes = requested == nullptr ? default_attributes() : at_init(*requested);
  const auto world = World::start(attributes);
  if (!world.ok()) {
    if (!heap_refused()) log::error("dmapp_init: {}", errc_name(world.code()));
    return DMAPP_RC_RESOURCE_ERROR;
  }
  const Context* const context = here();
  if (context == nullptr) return DMAPP_RC_RESOURCE_ERROR;
  *actual = context->attributes;
  return DMAPP_RC_SUCCESS;
}

template <typename Attrs>
dmapp_return_t set(const Attrs* requested, Attributes* actual) {
  Context* const context = here();
  if (context == nullptr || requested == nullptr) return DMAPP_RC_INVALID_PARAM;
  context->attributes = later(context->attributes, *requested);
  context->use_attributes();
  *actual = context->attributes;
  return DMAPP_RC_SUCCESS;
}

// Those that hold for the calling thread, or would.
Attributes attributes_now() {
  const Context* const context = here();
  return context == nullptr ? default_attributes() : context->attributes;
}

struct ProgressCall {
  dmapp_progress_cb_t callback = nullptr;
  void* context = nullptr;
};
std::mutex g_calls_mu;
std::array<ProgressCall, 16> g_calls;  // guarded by g_calls_mu

constexpr std::array<const char*, DMAPP_RC_NOT_USED + 1> kSentences{
    "Success",
    "An argument is outside what the call accepts, or DMAPP is not initialised",
    "An address or length is not aligned as the operation asks",
    "The network could not carry out the operation: the PE has died, or the memory is not registered any "
    "more",
    "A resource is used up",
    "The memory does not allow this access",
    "There is no room for it",
    "Not done yet",
    "Not supported",
    "Not found: no such memory or object",
    "The object is in use",
    "Not used"};

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::Attributes;
using orrery::dmapp::Context;
using orrery::dmapp::here;
using orrery::dmapp::World;

extern "C" {

dmapp_return_t dmapp_init(dmapp_rma_attrs_t* requested, dmapp_rma_attrs_t* actual) {
  if (actual == nullptr) return DMAPP_RC_INVALID_PARAM;
  Attributes attributes;
  const dmapp_return_t rc = orrery::dmapp::init(requested, &attributes);
  if (rc == DMAPP_RC_SUCCESS) *actual = orrery::dmapp::short_form(attributes);
  return rc;
}

dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t* requested, dmapp_rma_attrs_ext_t* actual) {
  if (actual == nullptr) return DMAPP_RC_INVALID_PARAM;
  Attributes attributes;
  const dmapp_return_t rc = orrery::dmapp::init(requested, &attributes);
  if (rc == DMAPP_RC_SUCCESS) *actual = attributes;
  return rc;
}

dmapp_return_t dmapp_finalize(void) {
  if (World::current() == nullptr) return DMAPP_RC_INVALID_PARAM;
  // From a callback of a call of this thread, or of the queue: that goes on afterwards.
  if (orrery::dmapp::is_in_call()) return DMAPP_RC_BUSY;
  orrery::dmapp::end_queue();
  World::stop();
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_initialized(int* flag) {
  if (flag == nullptr) return DMAPP_RC_INVALID_PARAM;
  *flag = World::current() != nullptr ? 1 : 0;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t* info) {
  const World* const world = World::current();
  if (world == nullptr || info == nullptr) return DMAPP_RC_INVALID_PARAM;
  *info = {};
  info->pe = world->pe();
  info->npes = world->npes();
  info->data_seg = world->descriptor(orrery::dmapp::SegKind::data);
  info->sheap_seg = world->descriptor(orrery::dmapp::SegKind::heap);
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_version(uint32_t* major, uint32_t* minor) {
  if (major == nullptr || minor == nullptr) return DMAPP_RC_INVALID_PARAM;
  *major = orrery::dmapp::kMajor;
  *minor = orrery::dmapp::kMinor;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_explain_error(dmapp_return_t error, const char** message) {
  if (message == nullptr) return DMAPP_RC_INVALID_PARAM;
  const auto index = static_cast<std::size_t>(static_cast<unsigned>(error));
  const bool known = index < orrery::dmapp::kSentences.size();
  *message = known ? orrery::dmapp::kSentences[index] : "Not a return code of DMAPP";
  return known ? DMAPP_RC_SUCCESS : DMAPP_RC_INVALID_PARAM;
}

dmapp_return_t dmapp_get_rma_attrs(dmapp_rma_attrs_t* attrs) {
  if (attrs == nullptr) return DMAPP_RC_INVALID_PARAM;
  *attrs = orrery::dmapp::short_form(orrery::dmapp::attributes_now());
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t* attrs) {
  if (attrs == nullptr) return DMAPP_RC_INVALID_PARAM;
  *attrs = orrery::dmapp::attributes_now();
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_set_rma_attrs(dmapp_rma_attrs_t* requested, dmapp_rma_attrs_t* actual) {
  if (actual == nullptr) return DMAPP_RC_INVALID_PARAM;
  Attributes attributes;
  const dmapp_return_t rc = orrery::dmapp::set(requested, &attributes);
  if (rc == DMAPP_RC_SUCCESS) *actual = orrery::dmapp::short_form(attributes);
  return rc;
}

dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t* requested, dmapp_rma_attrs_ext_t* actual) {
  if (actual == nullptr) return DMAPP_RC_INVALID_PARAM;
  Attributes attributes;
  const dmapp_return_t rc = orrery::dmapp::set(requested, &attributes);
  if (rc == DMAPP_RC_SUCCESS) *actual = attributes;
  return rc;
}

dmapp_return_t dmapp_thread_register(void) {
  return here() != nullptr ? DMAPP_RC_SUCCESS : DMAPP_RC_INVALID_PARAM;
}

dmapp_return_t dmapp_thread_unregister(void) {
  if (World::current() == nullptr) return DMAPP_RC_INVALID_PARAM;
  const orrery::dmapp::Seat& seat = orrery::dmapp::t_seat;
  if (seat.context == nullptr || seat.epoch != orrery::dmapp::g_epoch.load(std::memory_order_relaxed))
    return DMAPP_RC_NOT_FOUND;
  if (orrery::dmapp::is_in_call()) return DMAPP_RC_BUSY;
  orrery::dmapp::leave_seat();
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_register_progress_cb(dmapp_progress_cb_t callback, void* context) {
  if (callback == nullptr || World::current() == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(orrery::dmapp::g_calls_mu);
  for (auto& call : orrery::dmapp::g_calls) {
    if (call.callback != nullptr) continue;
    call = {callback, context};
    return DMAPP_RC_SUCCESS;
  }
  return DMAPP_RC_RESOURCE_ERROR;
}

dmapp_return_t dmapp_deregister_progress_cb(dmapp_progress_cb_t callback) {
  if (callback == nullptr || World::current() == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(orrery::dmapp::g_calls_mu);
  for (auto& call : orrery::dmapp::g_calls) {
    if (call.callback != callback) continue;
    call = {};
    return DMAPP_RC_SUCCESS;
  }
  return DMAPP_RC_NOT_FOUND;
}

dmapp_return_t dmapp_progress(void) {
  const orrery::dmapp::Visit visit;
  if (visit.context() == nullptr) return DMAPP_RC_INVALID_PARAM;
  visit.context()->progress();
  orrery::dmapp::run_messages();
  std::array<orrery::dmapp::ProgressCall, 16> calls;
  {
    const std::lock_guard lock(orrery::dmapp::g_calls_mu);
    calls = orrery::dmapp::g_calls;
  }
  for (const auto& call : calls) {
    if (call.callback != nullptr) call.callback(call.context);
  }
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_checkpoint(void) { return dmapp_gsync_wait(); }

dmapp_return_t dmapp_restart(uint32_t /*restart_modes*/) {
  return World::current() == nullptr ? DMAPP_RC_INVALID_PARAM : DMAPP_RC_NOT_SUPPORTED;
}

}  // extern "C"
