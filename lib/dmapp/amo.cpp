// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/raw_value.hpp"
#include "lib/dmapp/issue.hpp"

// Atomic memory operations.
namespace orrery::dmapp {

namespace {

using nic::AmoOp;

constexpr std::uint8_t plain(AmoOp op) { return nic::amo::command(op, 0); }
constexpr std::uint8_t fetching(AmoOp op) { return nic::amo::command(op, nic::kAmoFetch); }
constexpr std::uint64_t bits(std::int64_t operand) { return static_cast<std::uint64_t>(operand); }

[[gnu::noinline]] dmapp_return_t amo_slowly(Context* context, Mode mode, Place place, std::uint8_t command,
                                            void* result, std::uint64_t a, std::uint64_t b,
                                            dmapp_syncid_handle_t* syncid) {
  Issue issue(*context, mode);
  issue.start(place, Context::amo_request(place, command, result, a, b));
  return issue.finish(syncid);
}

// `result` is looked at for commands that fetch alone.
template <Mode kMode>
[[gnu::always_inline]] inline dmapp_return_t amo(std::uint8_t command, const void* word,
                                                 const dmapp_seg_desc_t* segment, int pe, void* result,
                                                 std::uint64_t a, std::uint64_t b,
                                                 dmapp_syncid_handle_t* syncid) {
  Context* const context = here();
  if (context == nullptr || (nic::amo::fetches(command) && result == nullptr) ||
      (kMode == Mode::syncid && syncid == nullptr)) [[unlikely]]
    return DMAPP_RC_INVALID_PARAM;
  Place place;
  const std::uint64_t width = nic::amo::width(command);
  const dmapp_return_t rc = context->find(segment, pe, word, width, &place);
  if (rc != DMAPP_RC_SUCCESS) [[unlikely]]
    return rc;
  if ((place.address & (width - 1)) != 0) [[unlikely]]
    return DMAPP_RC_ALIGNMENT_ERROR;
  if (context->try_amo(place, command, result, a, b) == Errc::ok) [[likely]] {
    if constexpr (kMode == Mode::syncid) *syncid = Context::kComplete;
    return DMAPP_RC_SUCCESS;
  }
  return amo_slowly(context, kMode, place, command, result, a, b, syncid);
}

// The NIC's command for a client's; 0xff: there is none. Any number is accepted.
std::uint8_t command_of(const dmapp_amo_t& asked, bool fetches) {
  constexpr AmoOp kOps[] = {AmoOp::add,     AmoOp::bit_and,      AmoOp::bit_or,    AmoOp::bit_xor,
                            AmoOp::and_xor, AmoOp::compare_swap, AmoOp::swap,      AmoOp::min,
                            AmoOp::max,     AmoOp::float_add,    AmoOp::float_min, AmoOp::float_max};
  const std::uint32_t place = common::raw_value(asked.op) - 1;
  const std::uint32_t type = common::raw_value(asked.type);
  if (place >= std::size(kOps) || (type != DMAPP_DW && type != DMAPP_QW)) return 0xff;
  return nic::amo::command(kOps[place],
                           (fetches ? nic::kAmoFetch : 0u) | (type == DMAPP_DW ? nic::kAmoNarrow : 0u));
}

template <Mode kMode>
dmapp_return_t generic(const dmapp_amo_t* asked, bool fetches, const void* word,
                       const dmapp_seg_desc_t* segment, int pe, void* result, dmapp_syncid_handle_t* syncid) {
  if (asked == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::uint8_t command = command_of(*asked, fetches);
  if (command == 0xff) return DMAPP_RC_INVALID_PARAM;
  return amo<kMode>(command, word, segment, pe, result, asked->operand1, asked->operand2, syncid);
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::amo;
using orrery::dmapp::AmoOp;
using orrery::dmapp::bits;
using orrery::dmapp::fetching;
using orrery::dmapp::generic;
using orrery::dmapp::Mode;
using orrery::dmapp::plain;

extern "C" {

dmapp_return_t dmapp_aadd_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand) {
  return amo<Mode::blocking>(plain(AmoOp::add), target_addr, target_seg, target_pe, nullptr, bits(operand), 0,
                             nullptr);
}

dmapp_return_t dmapp_aadd_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(plain(AmoOp::add), target_addr, target_seg, target_pe, nullptr, bits(operand), 0,
                           syncid);
}

dmapp_return_t dmapp_aadd_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand) {
  return amo<Mode::implicit>(plain(AmoOp::add), target_addr, target_seg, target_pe, nullptr, bits(operand), 0,
                             nullptr);
}

dmapp_return_t dmapp_aand_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand) {
  return amo<Mode::blocking>(plain(AmoOp::bit_and), target_addr, target_seg, target_pe, nullptr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_aand_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(plain(AmoOp::bit_and), target_addr, target_seg, target_pe, nullptr, bits(operand),
                           0, syncid);
}

dmapp_return_t dmapp_aand_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand) {
  return amo<Mode::implicit>(plain(AmoOp::bit_and), target_addr, target_seg, target_pe, nullptr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_aor_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                            int64_t operand) {
  return amo<Mode::blocking>(plain(AmoOp::bit_or), target_addr, target_seg, target_pe, nullptr, bits(operand),
                             0, nullptr);
}

dmapp_return_t dmapp_aor_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                               int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(plain(AmoOp::bit_or), target_addr, target_seg, target_pe, nullptr, bits(operand),
                           0, syncid);
}

dmapp_return_t dmapp_aor_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand) {
  return amo<Mode::implicit>(plain(AmoOp::bit_or), target_addr, target_seg, target_pe, nullptr, bits(operand),
                             0, nullptr);
}

dmapp_return_t dmapp_axor_qw(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             int64_t operand) {
  return amo<Mode::blocking>(plain(AmoOp::bit_xor), target_addr, target_seg, target_pe, nullptr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_axor_qw_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(plain(AmoOp::bit_xor), target_addr, target_seg, target_pe, nullptr, bits(operand),
                           0, syncid);
}

dmapp_return_t dmapp_axor_qw_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 int64_t operand) {
  return amo<Mode::implicit>(plain(AmoOp::bit_xor), target_addr, target_seg, target_pe, nullptr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afadd_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::blocking>(fetching(AmoOp::add), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afadd_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::add), source_addr, source_seg, source_pe, target_addr,
                           bits(operand), 0, syncid);
}

dmapp_return_t dmapp_afadd_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::implicit>(fetching(AmoOp::add), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afand_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::blocking>(fetching(AmoOp::bit_and), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afand_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::bit_and), source_addr, source_seg, source_pe, target_addr,
                           bits(operand), 0, syncid);
}

dmapp_return_t dmapp_afand_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::implicit>(fetching(AmoOp::bit_and), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afor_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::blocking>(fetching(AmoOp::bit_or), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afor_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::bit_or), source_addr, source_seg, source_pe, target_addr,
                           bits(operand), 0, syncid);
}

dmapp_return_t dmapp_afor_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::implicit>(fetching(AmoOp::bit_or), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afxor_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                              dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::blocking>(fetching(AmoOp::bit_xor), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afxor_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::bit_xor), source_addr, source_seg, source_pe, target_addr,
                           bits(operand), 0, syncid);
}

dmapp_return_t dmapp_afxor_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t operand) {
  return amo<Mode::implicit>(fetching(AmoOp::bit_xor), source_addr, source_seg, source_pe, target_addr,
                             bits(operand), 0, nullptr);
}

dmapp_return_t dmapp_afax_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask) {
  return amo<Mode::blocking>(fetching(AmoOp::and_xor), source_addr, source_seg, source_pe, target_addr,
                             bits(andMask), bits(xorMask), nullptr);
}

dmapp_return_t dmapp_afax_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask,
                                dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::and_xor), source_addr, source_seg, source_pe, target_addr,
                           bits(andMask), bits(xorMask), syncid);
}

dmapp_return_t dmapp_afax_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask) {
  return amo<Mode::implicit>(fetching(AmoOp::and_xor), source_addr, source_seg, source_pe, target_addr,
                             bits(andMask), bits(xorMask), nullptr);
}

dmapp_return_t dmapp_acswap_qw(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                               dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand) {
  return amo<Mode::blocking>(fetching(AmoOp::compare_swap), source_addr, source_seg, source_pe, target_addr,
                             bits(comperand), bits(swaperand), nullptr);
}

dmapp_return_t dmapp_acswap_qw_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                  dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand,
                                  dmapp_syncid_handle_t* syncid) {
  return amo<Mode::syncid>(fetching(AmoOp::compare_swap), source_addr, source_seg, source_pe, target_addr,
                           bits(comperand), bits(swaperand), syncid);
}

dmapp_return_t dmapp_acswap_qw_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                   dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand) {
  return amo<Mode::implicit>(fetching(AmoOp::compare_swap), source_addr, source_seg, source_pe, target_addr,
                             bits(comperand), bits(swaperand), nullptr);
}

dmapp_return_t dmapp_amo_put(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                             dmapp_amo_t* amo) {
  return generic<Mode::blocking>(amo, false, target_addr, target_seg, target_pe, nullptr, nullptr);
}

dmapp_return_t dmapp_amo_put_nb(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                dmapp_amo_t* amo, dmapp_syncid_handle_t* syncid) {
  return generic<Mode::syncid>(amo, false, target_addr, target_seg, target_pe, nullptr, syncid);
}

dmapp_return_t dmapp_amo_put_nbi(void* target_addr, dmapp_seg_desc_t* target_seg, dmapp_pe_t target_pe,
                                 dmapp_amo_t* amo) {
  return generic<Mode::implicit>(amo, false, target_addr, target_seg, target_pe, nullptr, nullptr);
}

dmapp_return_t dmapp_amo_get(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                             dmapp_pe_t source_pe, dmapp_amo_t* amo) {
  return generic<Mode::blocking>(amo, true, source_addr, source_seg, source_pe, target_addr, nullptr);
}

dmapp_return_t dmapp_amo_get_nb(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                dmapp_pe_t source_pe, dmapp_amo_t* amo, dmapp_syncid_handle_t* syncid) {
  return generic<Mode::syncid>(amo, true, source_addr, source_seg, source_pe, target_addr, syncid);
}

dmapp_return_t dmapp_amo_get_nbi(void* target_addr, void* source_addr, dmapp_seg_desc_t* source_seg,
                                 dmapp_pe_t source_pe, dmapp_amo_t* amo) {
  return generic<Mode::implicit>(amo, true, source_addr, source_seg, source_pe, target_addr, nullptr);
}

dmapp_return_t dmapp_amo_flush(dmapp_pe_t target_pe, uint64_t flags) {
  orrery::dmapp::Context* const context = orrery::dmapp::here();
  if (context == nullptr || target_pe < 0 || target_pe >= context->npes() || flags != 0)
    return DMAPP_RC_INVALID_PARAM;
  return dmapp_thread_gsync_wait();
}

}  // extern "C"
