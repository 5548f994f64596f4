// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/issue.hpp"

// Puts and gets of consecutive elements.
namespace orrery::dmapp {

namespace {

struct Span {
  Context* context = nullptr;
  Place place;
  std::uint64_t bytes = 0;
};

// What both directions check. SUCCESS with bytes 0: there is nothing to do.
[[gnu::always_inline]] inline dmapp_return_t span_of(const dmapp_seg_desc_t* segment, int pe,
                                                     const void* remote, const void* local,
                                                     std::uint64_t nelems, dmapp_type_t type, Span* span) {
  Context* const context = here();
  const int shift = shift_of(type);
  if (context == nullptr || local == nullptr || shift < 0 || nelems > kMostElements) [[unlikely]]
    return DMAPP_RC_INVALID_PARAM;
  span->context = context;
  span->bytes = nelems << shift;
  return context->find(segment, pe, remote, span->bytes, &span->place);
}

[[gnu::noinline]] dmapp_return_t put_slowly(Context* context, Mode mode, Place place, const void* source,
                                            std::uint64_t bytes, dmapp_syncid_handle_t* syncid) {
  Issue issue(*context, mode);
  if (bytes != 0) issue.put(place, source, bytes);
  return issue.finish(syncid);
}

[[gnu::noinline]] dmapp_return_t get_slowly(Context* context, Mode mode, Place place, void* target,
                                            std::uint64_t bytes, dmapp_syncid_handle_t* syncid) {
  Issue issue(*context, mode);
  if (bytes != 0) issue.get(place, target, bytes);
  return issue.finish(syncid);
}

template <Mode kMode>
[[gnu::always_inline]] inline dmapp_return_t put(void* target, const dmapp_seg_desc_t* segment, int pe,
                                                 const void* source, std::uint64_t nelems, dmapp_type_t type,
                                                 dmapp_syncid_handle_t* syncid) {
  Span span;
  if (kMode == Mode::syncid && syncid == nullptr) [[unlikely]]
    return DMAPP_RC_INVALID_PARAM;
  const dmapp_return_t rc = span_of(segment, pe, target, source, nelems, type, &span);
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    return rc;
  if (span.context->try_now<nic::Op::put>(span.place, const_cast<void*>(source), span.bytes,
                                          kMode) ==  // NOLINT
      Errc::ok) [[likely]] {
    if constexpr (kMode == Mode::syncid) *syncid = Context::kComplete;
    return DMAPP_RC_SUCCESS;
  }
  return put_slowly(span.context, kMode, span.place, source, span.bytes, syncid);
}

template <Mode kMode>
[[gnu::always_inline]] inline dmapp_return_t get(void* target, const void* source,
                                                 const dmapp_seg_desc_t* segment, int pe,
                                                 std::uint64_t nelems, dmapp_type_t type,
                                                 dmapp_syncid_handle_t* syncid) {
  Span span;
  if (kMode == Mode::syncid && syncid == nullptr) [[unlikely]]
    return DMAPP_RC_INVALID_PARAM;
  const dmapp_return_t rc = span_of(segment, pe, source, target, nelems, type, &span);
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    return rc;
  if (span.context->try_now<nic::Op::get>(span.place, target, span.bytes, kMode) == Errc::ok) [[likely]] {
    if constexpr (kMode == Mode::syncid) *syncid = Context::kComplete;
    return DMAPP_RC_SUCCESS;
  }
  return get_slowly(span.context, kMode, span.place, target, span.bytes, syncid);
}

// The data, and behind them the flag, in one request.
dmapp_return_t put_flag(Mode mode, void* target, const dmapp_seg_desc_t* segment, int pe, const void* source,
                        std::uint64_t nelems, dmapp_type_t type, void* flag, std::uint64_t value,
                        dmapp_syncid_handle_t* syncid) {
  Span span;
  if (mode == Mode::syncid && syncid == nullptr) return DMAPP_RC_INVALID_PARAM;
  const dmapp_return_t rc = span_of(segment, pe, target, source, nelems, type, &span);
  if (rc != DMAPP_RC_SUCCESS) return rc;
  Place at;
  const dmapp_return_t flag_rc = span.context->find(segment, pe, flag, 8, &at);
  if (flag_rc != DMAPP_RC_SUCCESS) return flag_rc;
  if (at.address % 8 != 0) return DMAPP_RC_ALIGNMENT_ERROR;
  Issue issue(*span.context, mode);
  nic::Request request = Context::put_request(span.place, source, span.bytes);
  request.flags |= nic::kSyncFlag;
  request.sync_address = at.address;
  request.sync_value = value;
  issue.start(span.place, request);
  return issue.finish(syncid);
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::Mode;

extern "C" {

dmapp_return_t dmapp_put(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                         void* source_addr, uint64_t nelems, dmapp_type_t type) {
  return orrery::dmapp::put<Mode::blocking>(target_addr, target_seg, target_pe, source_addr, nelems, type,
                                            nullptr);
}

dmapp_return_t dmapp_put_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                            void* source_addr, uint64_t nelems, dmapp_type_t type,
                            dmapp_syncid_handle_t* syncid) {
  return orrery::dmapp::put<Mode::syncid>(target_addr, target_seg, target_pe, source_addr, nelems, type,
                                          syncid);
}

dmapp_return_t dmapp_put_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             void* source_addr, uint64_t nelems, dmapp_type_t type) {
  return orrery::dmapp::put<Mode::implicit>(target_addr, target_seg, target_pe, source_addr, nelems, type,
                                            nullptr);
}

dmapp_return_t dmapp_get(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                         dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type) {
  return orrery::dmapp::get<Mode::blocking>(target_addr, source_addr, source_seg, source_pe, nelems, type,
                                            nullptr);
}

dmapp_return_t dmapp_get_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                            dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type,
                            dmapp_syncid_handle_t* syncid) {
  return orrery::dmapp::get<Mode::syncid>(target_addr, source_addr, source_seg, source_pe, nelems, type,
                                          syncid);
}

dmapp_return_t dmapp_get_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type) {
  return orrery::dmapp::get<Mode::implicit>(target_addr, source_addr, source_seg, source_pe, nelems, type,
                                            nullptr);
}

dmapp_return_t dmapp_put_flag(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                              void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                              uint64_t flag_value) {
  return orrery::dmapp::put_flag(Mode::blocking, target_addr, target_seg, target_pe, source_addr, nelems,
                                 type, target_flag, flag_value, nullptr);
}

dmapp_return_t dmapp_put_flag_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                                 uint64_t flag_value, dmapp_syncid_handle_t* syncid) {
  return orrery::dmapp::put_flag(Mode::syncid, target_addr, target_seg, target_pe, source_addr, nelems, type,
                                 target_flag, flag_value, syncid);
}

dmapp_return_t dmapp_put_flag_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                  void* source_addr, uint64_t nelems, dmapp_type_t type, void* target_flag,
                                  uint64_t flag_value) {
  return orrery::dmapp::put_flag(Mode::implicit, target_addr, target_seg, target_pe, source_addr, nelems,
                                 type, target_flag, flag_value, nullptr);
}

dmapp_return_t dmapp_get_flag_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type) {
  return orrery::dmapp::get<Mode::implicit>(target_addr, source_addr, source_seg, source_pe, nelems, type,
                                            nullptr);
}

}  // extern "C"
