// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/fast_amo.hpp"
#include "lib/gni/request/amo_command.hpp"
#include "lib/gni/request/post_common.hpp"

// Atomic memory operations.
namespace orrery::gni {

gni_return_t fill_amo(const Ep& ep, const gni_post_descriptor_t& d, nic::Request* request) {
  std::uint8_t command = amo_command_of(d.amo_cmd);
  if (d.length == 0) return GNI_RC_INVALID_PARAM;
  if (!nic::amo::is_valid(command)) return GNI_RC_ILLEGAL_OP;
  // The second generation came with Aries.
  if (ep.attachment->gemini && (raw_value(d.amo_cmd) & detail::kSecondGenerationBit) != 0)
    return GNI_RC_ILLEGAL_OP;
  // The cache is for domains that asked for it.
  if (!ep.attachment->cached_amos) command &= static_cast<std::uint8_t>(~nic::kAmoCached);
  if (d.length > kMaxFma) return GNI_RC_SIZE_ERROR;
  if (nic::amo::words(command, d.length) == 0 || d.remote_addr % nic::amo::width(command) != 0)
    return GNI_RC_ALIGNMENT_ERROR;
  const bool fetches = nic::amo::fetches(command);
  const bool flagged = raw_value(d.type) == GNI_POST_AMO_W_FLAG;
  if (flagged) {
    // Without a response there is nothing for a flag to stand behind.
    if (!fetches) return GNI_RC_INVALID_PARAM;
    const gni_return_t small = fill_response_flag(d, request);
    if (small != GNI_RC_SUCCESS) return small;
  }
  request->op = nic::Op::amo;
  request->local_address = d.local_addr;
  if (fetches) {
    const gni_return_t local = check_local(ep, request, d, flagged ? GNI_FMA_FLAGGED_RESPONSE_SIZE : 0);
    if (local != GNI_RC_SUCCESS) return local;
    // Old values go to addresses, not to offsets.
    if ((request->flags & nic::kLocalOffset) != 0) return GNI_RC_INVALID_PARAM;
  }
  request->command = command;
  request->remote_address = d.remote_addr;
  request->length = d.length;
  request->operand[0] = d.first_operand;
  request->operand[1] = d.second_operand;
  return GNI_RC_SUCCESS;
}

namespace {

// Everything but an AMO of one word through a key that was granted before.
[[gnu::noinline]] gni_return_t post_amo_checked(Ep& ep, gni_post_descriptor_t* post_descr) {
  nic::Request request;
  if (!fill(ep, *post_descr, post_descr, &request)) return GNI_RC_INVALID_PARAM;
  const gni_return_t filled = fill_amo(ep, *post_descr, &request);
  return filled == GNI_RC_SUCCESS ? answer(ep.nic->post(ep.endpoint, request)) : filled;
}

}  // namespace

gni_return_t post_amo(Ep& ep, gni_post_descriptor_t* post_descr) {
  const gni_post_descriptor_t& d = *post_descr;
  const std::uint8_t command = amo_command_of(d.amo_cmd);
  constexpr unsigned kUnusual = nic::kAmoCached | 0x80;  // cached, or no command at all
  if (raw_value(d.type) == GNI_POST_AMO && is_usual(d) &&
      static_cast<int>(command & kUnusual) == ep.usual_amo && d.length == nic::amo::width(command) &&
      (!nic::amo::fetches(command) || is_plain_local(ep, d, true))) [[likely]] {
    const Errc done = nic::try_fast_amo(ep.endpoint, {.transfer = transfer_of(ep, d, post_descr),
                                                      .command = command,
                                                      .a = d.first_operand,
                                                      .b = d.second_operand});
    if (done != Errc::not_done) [[likely]]
      return answer(done);
  }
  return post_amo_checked(ep, post_descr);
}

}  // namespace orrery::gni
