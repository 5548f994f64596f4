// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/context.hpp"

// Completion: of named operations, and of all others.
namespace orrery::dmapp {

namespace {

// The context and tracker of a handle; false: it names nothing.
bool find_named(const World& world, std::uint64_t handle, Context** context, Tracker** tracker) {
  const std::uint32_t number = Context::context_of(handle);
  if (number >= world.contexts()) return false;
  *context = &world.context(number);
  *tracker = (*context)->find_named(handle);
  return *tracker != nullptr;
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::Errc;
using orrery::dmapp::Context;
using orrery::dmapp::return_of;
using orrery::dmapp::Tracker;
using orrery::dmapp::Visit;

extern "C" {

dmapp_return_t dmapp_syncid_wait(dmapp_syncid_handle_t* syncid) {
  const Visit visit;
  if (syncid == nullptr || visit.context() == nullptr) return DMAPP_RC_INVALID_PARAM;
  if (*syncid == Context::kComplete) return DMAPP_RC_SUCCESS;
  Context* context = nullptr;
  Tracker* tracker = nullptr;
  if (!orrery::dmapp::find_named(visit.context()->world(), *syncid, &context, &tracker))
    return DMAPP_RC_INVALID_PARAM;
  const Errc ended = context->wait(*tracker);
  context->close_named(*syncid);
  *syncid = Context::kComplete;
  return return_of(ended);
}

dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t* syncid, int* flag) {
  const Visit visit;
  if (syncid == nullptr || flag == nullptr || visit.context() == nullptr) return DMAPP_RC_INVALID_PARAM;
  if (*syncid != Context::kComplete) {
    Context* context = nullptr;
    Tracker* tracker = nullptr;
    if (!orrery::dmapp::find_named(visit.context()->world(), *syncid, &context, &tracker))
      return DMAPP_RC_INVALID_PARAM;
    const Errc ended = context->test(*tracker);
    if (ended == Errc::not_done) {
      *flag = 0;
      return DMAPP_RC_SUCCESS;
    }
    context->close_named(*syncid);
    *syncid = Context::kComplete;
    if (ended != Errc::ok) return return_of(ended);
  }
  *flag = 1;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_gsync_wait(void) {
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr) return DMAPP_RC_INVALID_PARAM;
  const orrery::dmapp::World& world = context->world();
  Errc first = Errc::ok;
  for (std::size_t i = 0; i < world.contexts(); ++i) {
    Context& one = world.context(i);
    if (one.is_idle()) continue;
    const Errc ended = one.wait(one.implicit());
    if (first == Errc::ok) first = ended;
  }
  return return_of(first);
}

dmapp_return_t dmapp_gsync_test(int* flag) {
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr || flag == nullptr) return DMAPP_RC_INVALID_PARAM;
  const orrery::dmapp::World& world = context->world();
  const Errc ended =
      orrery::dmapp::test_all(world.contexts(), [&](std::size_t i) -> Context& { return world.context(i); });
  if (ended != Errc::ok && ended != Errc::not_done) return return_of(ended);
  *flag = ended == Errc::ok ? 1 : 0;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_thread_gsync_wait(void) {
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr) return DMAPP_RC_INVALID_PARAM;
  if (context->is_idle(context->implicit())) return DMAPP_RC_SUCCESS;
  return return_of(context->wait(context->implicit()));
}

dmapp_return_t dmapp_thread_gsync_test(int* flag) {
  const Visit visit;
  Context* const context = visit.context();
  if (context == nullptr || flag == nullptr) return DMAPP_RC_INVALID_PARAM;
  const Errc ended = context->test(context->implicit());
  if (ended != Errc::ok && ended != Errc::not_done) return return_of(ended);
  *flag = ended == Errc::ok ? 1 : 0;
  return DMAPP_RC_SUCCESS;
}

}  // extern "C"
