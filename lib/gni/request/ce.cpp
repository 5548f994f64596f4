// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/request/post_common.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

// The collective engine.
namespace orrery::gni {

namespace {

using nic::CeJoin;
using nic::CeStatus;

constexpr std::uint32_t kRoundings =
    GNI_CE_MODE_ROUND_UP | GNI_CE_MODE_ROUND_DOWN | GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_ROUND_ZERO;
constexpr std::uint32_t kHashes =
    GNI_CE_MODE_RC_NMIN_HASH | GNI_CE_MODE_RC_MIN_HASH | GNI_CE_MODE_RC_MNON_HASH | GNI_CE_MODE_RC_ADAPT;
constexpr std::uint32_t kCeModes = kRoundings | kHashes | GNI_CE_MODE_CQE_ONCOMP | GNI_CE_MODE_CQE_ONERR;
constexpr std::uint32_t kPostModes = GNI_CEMODE_TWO_OP | GNI_CEMODE_FPE_OP_INVAL | GNI_CEMODE_FPE_OFLOW |
                                     GNI_CEMODE_FPE_UFLOW | GNI_CEMODE_FPE_PRECISION;
static_assert(GNI_CE_FPE_OP_INVAL == nic::kCeInvalid && GNI_CE_FPE_OFLOW == nic::kCeOverflow &&
              GNI_CE_FPE_UFLOW == nic::kCeUnderflow && GNI_CE_FPE_PRECISION == nic::kCeInexact);
static_assert(GNI_CEMODE_FPE_OP_INVAL == GNI_CE_FPE_OP_INVAL << 1 &&
              GNI_CEMODE_FPE_PRECISION == GNI_CE_FPE_PRECISION << 1);
static_assert(GNI_CE_MAX_CHILDREN == nic::kCeChildren);
static_assert(sizeof(gni_ce_result_t) == 3 * sizeof(std::uint64_t));

// While a result is awaited its control word says whose it is: the NIC handle, without the top bit that marks
// a result that is there.
constexpr std::uint64_t kThere = std::uint64_t{1} << 63;

std::uint64_t control_of(gni_ce_result_t& result) {
  // Acquire: the words of a result are stored before its control word.
  return std::atomic_ref<std::uint64_t>(result.control).load(std::memory_order_acquire);
}

nic::Rounding rounding_of(std::uint32_t modes) {
  switch (modes & kRoundings) {
    case GNI_CE_MODE_ROUND_UP:
      return nic::Rounding::up;
    case GNI_CE_MODE_ROUND_DOWN:
      return nic::Rounding::down;
    case GNI_CE_MODE_ROUND_ZERO:
      return nic::Rounding::zero;
    default:
      return nic::Rounding::nearest;
  }
}

}  // namespace

namespace {

// Everything but a contribution that tells of no event and no exceptions, through an edge that was used
// before. The descriptor was checked.
[[gnu::noinline]] gni_return_t post_ce_checked(Ep& ep, gni_post_descriptor_t* post_descr) {
  const gni_post_descriptor_t& d = *post_descr;
  CeJoin join;
  std::uint64_t address = d.local_addr;
  join.key = local_key(ep, d.local_mem_hndl, &address);
  const Errc local = ep.nic->regions().check_local(ep.attachment->port->domain, join.key, address,
                                                   sizeof(gni_ce_result_t), true);
  if (local != Errc::ok) return return_of(local);
  if ((join.key.flags & nic::kSegmented) != 0) return GNI_RC_INVALID_PARAM;
  join.result = reinterpret_cast<std::uint64_t*>(address);
  join.pending = ep.attachment->handle & ~kThere;
  join.exceptions_wanted = static_cast<std::uint8_t>(d.ce_mode >> 1 & 0xf);
  join.value = {.operand = {d.first_operand, d.second_operand},
                .reduction = d.ce_red_id,
                .command = static_cast<std::uint8_t>(raw_value(d.ce_cmd)),
                .two_operands = (d.ce_mode & GNI_CEMODE_TWO_OP) != 0};
  nic::Request request;
  // A join raises no event at the other end.
  request.flags = d.cq_mode & GNI_CQMODE_DUAL_EVENTS;
  request.context = post_descr;
  return return_of(ep.nic->collective().post(ep.endpoint, ep.edge, request, join));
}

}  // namespace

gni_return_t post_ce(Ep& ep, gni_post_descriptor_t* post_descr) {
  const gni_post_descriptor_t& d = *post_descr;
  if (ep.attachment->gemini) return GNI_RC_ILLEGAL_OP;
  constexpr std::uint32_t kEvents = GNI_CQMODE_DUAL_EVENTS | GNI_CQMODE_REMOTE_EVENT;
  const std::uint32_t both = d.cq_mode & GNI_CQMODE_DUAL_EVENTS;
  const std::uint32_t command = raw_value(d.ce_cmd);
  if ((d.cq_mode & ~kEvents) != 0 || (both == GNI_CQMODE_DUAL_EVENTS && !ep.attachment->dual_events) ||
      (d.ce_mode & ~kPostModes) != 0 || !ep.endpoint.bound || !ep.edge.set ||
      !nic::ce_command_exists(command) || d.local_addr == 0)
    return GNI_RC_INVALID_PARAM;
  if (d.local_addr % alignof(std::uint64_t) != 0) return GNI_RC_ALIGNMENT_ERROR;
  if (both == 0 && d.ce_mode == 0 && nic::ce_command::is_wide(static_cast<std::uint8_t>(command)) &&
      is_plain_local(ep, d, sizeof(gni_ce_result_t), true)) [[likely]] {
    const bool indexed =
        nic::ce_command::carries_index(nic::ce_command::kind_of(static_cast<std::uint8_t>(command)));
    const nic::CeShortJoin join{.operand = {d.first_operand, indexed ? d.second_operand : 0},
                                .reduction = d.ce_red_id,
                                .meta = command,
                                .result = reinterpret_cast<std::uint64_t*>(d.local_addr),
                                .pending = ep.attachment->handle & ~kThere,
                                .entry = ep.local.entry(),
                                .entry_control = ep.local.control()};
    if (ep.nic->collective().try_join(*ep.endpoint.port, ep.edge, join)) [[likely]]
      return GNI_RC_SUCCESS;
  }
  return post_ce_checked(ep, post_descr);
}

}  // namespace orrery::gni

using orrery::gni::Attachment;
using orrery::gni::Ce;
using orrery::gni::Cq;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;
using orrery::gni::raw_value;
using orrery::gni::return_of;
namespace ce_result = orrery::nic::ce_result;

extern "C" {

gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t* ce_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || ce_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  if (attachment->gemini) return GNI_RC_ILLEGAL_OP;
  std::unique_ptr<Ce> ce(new (std::nothrow) Ce);
  if (ce == nullptr || !orrery::gni::take(*attachment, orrery::gni::Resource::ce))
    return GNI_RC_ERROR_RESOURCE;
  const auto vce = attachment->nic->collective().create(*attachment->port);
  if (!vce.ok()) {
    orrery::gni::give(*attachment, orrery::gni::Resource::ce);
    return return_of(vce.code());
  }
  ce->nic = attachment->nic;
  ce->attachment = attachment;
  ce->vce = vce.value();
  ce->handle = handles().insert(HandleKind::ce, ce.get());
  if (ce->handle == 0) {
    attachment->nic->collective().destroy(ce->vce);
    orrery::gni::give(*attachment, orrery::gni::Resource::ce);
    return GNI_RC_ERROR_RESOURCE;
  }
  *ce_hndl = reinterpret_cast<gni_ce_handle_t>(ce->handle);
  attachment->engines.push_back(std::move(ce));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t* ce_id) {
  const Ce* const ce = find(ce_hndl);
  if (ce == nullptr || ce_id == nullptr) return GNI_RC_INVALID_PARAM;
  *ce_id = orrery::nic::ce_id(ce->nic->self(), ce->vce);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id,
                             gni_ce_child_t child_type) {
  Ep* const ep = find(ep_hndl);
  const std::uint32_t type = raw_value(child_type);
  if (ep == nullptr || type > GNI_CE_CHILD_PE) return GNI_RC_INVALID_PARAM;
  if (ep->attachment->gemini) return GNI_RC_ILLEGAL_OP;
  if (!ep->endpoint.bound) return GNI_RC_INVALID_STATE;
  if (type == GNI_CE_CHILD_UNUSED) {
    ep->edge = {};
    return GNI_RC_SUCCESS;
  }
  if (child_id >= GNI_CE_MAX_CHILDREN) return GNI_RC_INVALID_PARAM;
  ep->edge = {.set = true,
              .is_vce = type == GNI_CE_CHILD_VCE,
              .nic_address = ep->endpoint.remote_nic_address,
              .id = ce_id,
              .child = child_id};
  // A leaf's way up, where the engine has a number: a PE below an engine has none.
  if (type == GNI_CE_CHILD_PE && ce_id < 1u << 14)
    ep->nic->collective().attach(*ep->attachment->port, ep->edge, ep->endpoint.remote_instance);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t* child_eps, uint32_t num_child_eps,
                             gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes) {
  const Ce* const ce = find(ce_hndl);
  if (ce == nullptr || child_eps == nullptr || num_child_eps == 0 || num_child_eps > GNI_CE_MAX_CHILDREN ||
      (modes & ~orrery::gni::kCeModes) != 0)
    return GNI_RC_INVALID_PARAM;
  std::array<const orrery::nic::CeEdge*, GNI_CE_MAX_CHILDREN> children{};
  for (uint32_t i = 0; i < num_child_eps; ++i) {
    const Ep* const child = find(child_eps[i]);
    if (child == nullptr || child->attachment != ce->attachment) return GNI_RC_INVALID_PARAM;
    children[i] = &child->edge;
  }
  const Ep* parent = nullptr;
  if (parent_ep != nullptr) {
    parent = find(parent_ep);
    if (parent == nullptr || parent->attachment != ce->attachment) return GNI_RC_INVALID_PARAM;
  }
  const Cq* cq = nullptr;
  if (cq_hndl != nullptr) {
    cq = find(cq_hndl);
    if (cq == nullptr || cq->attachment != ce->attachment) return GNI_RC_INVALID_PARAM;
  }
  std::uint32_t nic_modes = static_cast<std::uint32_t>(orrery::gni::rounding_of(modes));
  if ((modes & GNI_CE_MODE_CQE_ONCOMP) != 0) nic_modes |= orrery::nic::kCeOnComplete;
  if ((modes & GNI_CE_MODE_CQE_ONERR) != 0) nic_modes |= orrery::nic::kCeOnError;
  return return_of(ce->nic->collective().configure(ce->vce, std::span(children.data(), num_child_eps),
                                                   parent == nullptr ? nullptr : &parent->edge,
                                                   cq == nullptr ? nullptr : cq->queue, nic_modes));
}

gni_return_t GNI_CeCheckResult(gni_ce_result_t* result, uint32_t length) {
  if (result == nullptr) return GNI_RC_INVALID_PARAM;
  // Clients that have one result say so with 0.
  length = std::max(length, std::uint32_t{1});
  gni_return_t all = GNI_RC_SUCCESS;
  for (uint32_t i = 0; i < length; ++i) {
    std::uint64_t control = orrery::gni::control_of(result[i]);
    if (!ce_result::there(control)) {
      // Any bits may stand there: only a handle of ours leads to a NIC.
      const auto* const attachment =
          static_cast<const Attachment*>(handles().find(HandleKind::nic, control | orrery::gni::kThere));
      if (attachment == nullptr) return GNI_RC_NOT_DONE;
      attachment->nic->collective().look_for_result(&result[i].control);
      control = orrery::gni::control_of(result[i]);
      if (!ce_result::there(control)) {
        attachment->nic->progress();
        control = orrery::gni::control_of(result[i]);
      }
      if (!ce_result::there(control)) return GNI_RC_NOT_DONE;
    }
    if (ce_result::status(control) != 0 || ce_result::exceptions(control) != 0)
      all = GNI_RC_TRANSACTION_ERROR;
  }
  return all;
}

gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl) {
  auto* const ce =
      static_cast<Ce*>(handles().erase(HandleKind::ce, reinterpret_cast<std::uint64_t>(ce_hndl)));
  if (ce == nullptr) return GNI_RC_INVALID_PARAM;
  ce->nic->collective().destroy(ce->vce);
  orrery::gni::give(*ce->attachment, orrery::gni::Resource::ce);
  std::erase_if(ce->attachment->engines, [&](const auto& e) { return e.get() == ce; });
  return GNI_RC_SUCCESS;
}

uint64_t gni_ce_res_get_status(gni_ce_result_t* result) {
  return result == nullptr ? 0 : ce_result::status(orrery::gni::control_of(*result));
}

uint64_t gni_ce_res_status_ok(gni_ce_result_t* result) {
  if (result == nullptr) return 0;
  const std::uint64_t control = orrery::gni::control_of(*result);
  return ce_result::there(control) && ce_result::status(control) == 0 ? 1 : 0;
}

uint64_t gni_ce_res_get_fpe(gni_ce_result_t* result) {
  return result == nullptr ? 0 : ce_result::exceptions(orrery::gni::control_of(*result));
}

uint64_t gni_ce_res_get_red_id(gni_ce_result_t* result) {
  return result == nullptr ? 0 : ce_result::reduction(orrery::gni::control_of(*result));
}

}  // extern "C"
