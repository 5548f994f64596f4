// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/request/amo_command.hpp"
#include "lib/gni/request/post_common.hpp"

#include <vector>

// Chains: several transfers with one completion.
namespace orrery::gni {

namespace {

constexpr std::size_t kMaxParts = 1u << 16;            // a list that has no end is told from one that has
constexpr std::uint64_t kMaxSharedChain = 1ull << 20;  // bytes of a chain through a shared FMA descriptor

// What a node of any type says, as a descriptor says it.
struct Node {
  void* next = nullptr;
  gni_ep_handle_t ep = nullptr;
  gni_post_descriptor_t d{};
};

template <typename Ct>
Node node_of(const Ct& ct, const gni_post_descriptor_t& first) {
  Node node{ct.next_descr, ct.ep_hndl, first};
  node.d.remote_mem_hndl = ct.remote_mem_hndl;
  if constexpr (requires { ct.length; }) {
    node.d.length = ct.length;
    node.d.remote_addr = ct.remote_addr;
    node.d.local_addr = ct.local_addr;
  }
  if constexpr (requires { ct.local_mem_hndl; }) node.d.local_mem_hndl = ct.local_mem_hndl;
  if constexpr (requires { ct.amo_cmd; }) {
    std::memcpy(&node.d.amo_cmd, &ct.amo_cmd, sizeof ct.amo_cmd);
    node.d.first_operand = ct.first_operand;
    node.d.second_operand = ct.second_operand;
  }
  if constexpr (requires { ct.cqwrite_value; }) node.d.cqwrite_value = ct.cqwrite_value;
  return node;
}

Node read_node(const void* at, const gni_post_descriptor_t& first) {
  switch (raw_value(first.type)) {
    case GNI_POST_FMA_PUT:
      return node_of(*static_cast<const gni_ct_put_post_descriptor_t*>(at), first);
    case GNI_POST_FMA_GET:
      return node_of(*static_cast<const gni_ct_get_post_descriptor_t*>(at), first);
    case GNI_POST_AMO:
      return node_of(*static_cast<const gni_ct_amo_post_descriptor_t*>(at), first);
    default:
      return node_of(*static_cast<const gni_ct_cqw_post_descriptor_t*>(at), first);
  }
}

// One transfer of a chain, checked as it would be alone.
gni_return_t fill_part(const Ep& ep, const gni_post_descriptor_t& d, nic::Request* request) {
  if (!fill(ep, d, nullptr, request)) return GNI_RC_INVALID_PARAM;
  request->flags &= nic::kRemoteEvent | nic::kInOrder;
  request->local_address = d.local_addr;
  request->remote_address = d.remote_addr;
  request->length = d.length;
  gni_return_t checked = GNI_RC_SUCCESS;
  switch (raw_value(d.type)) {
    case GNI_POST_FMA_PUT:
      return d.local_addr == 0 && d.length != 0 ? GNI_RC_INVALID_PARAM : GNI_RC_SUCCESS;
    case GNI_POST_FMA_GET:
      request->op = nic::Op::get;
      checked = check_get(ep, d);
      if (checked == GNI_RC_SUCCESS) checked = check_local(ep, request, d);
      break;
    case GNI_POST_AMO:
      request->op = nic::Op::amo;
      checked = fill_amo(ep, d, request);
      break;
    default:
      request->op = nic::Op::cq_write;
      request->cq_data = d.cqwrite_value & 0xffff'ffff'ffffull;
      request->length = 0;
      request->remote_address = 0;
      break;
  }
  // The parts are not the engine's to carry out.
  if (checked == GNI_RC_SUCCESS && (request->flags & nic::kLocalOffset) != 0) return GNI_RC_INVALID_PARAM;
  return checked;
}

gni_return_t post_chain(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_descr == nullptr) return GNI_RC_INVALID_PARAM;
  const gni_post_descriptor_t& first = *post_descr;
  if ((first.dlvr_mode & GNI_DLVMODE_ORDERED_TAIL) != 0) return GNI_RC_INVALID_PARAM;
  nic::Request head;
  if (!fill(*ep, first, nullptr, &head)) return GNI_RC_INVALID_PARAM;
  std::vector<nic::ChainPart> parts;
  std::uint64_t total = 0;
  Node node{first.next_descr, ep_hndl, first};
  for (;;) {
    Ep* const via = find(node.ep);
    if (via == nullptr || via->attachment != ep->attachment || !via->endpoint.bound)
      return GNI_RC_INVALID_PARAM;
    nic::ChainPart part{&via->endpoint, {}};
    const gni_return_t checked = fill_part(*via, node.d, &part.request);
    if (checked != GNI_RC_SUCCESS) return checked;
    if (part.request.length > kMaxFma || (total += part.request.length) > kMaxFma ||
        parts.size() == kMaxParts)
      return GNI_RC_SIZE_ERROR;
    parts.push_back(part);
    if (node.next == nullptr) break;
    node = read_node(node.next, first);
  }
  if (ep->attachment->fma_shared && total > kMaxSharedChain) return GNI_RC_SIZE_ERROR;
  return answer(ep->nic->initiator().post_chain(ep->endpoint, parts, head.flags, post_descr));
}

}  // namespace

}  // namespace orrery::gni

using orrery::gni::raw_value;

extern "C" {

gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  if (post_descr == nullptr) return GNI_RC_INVALID_PARAM;
  switch (raw_value(post_descr->type)) {
    case GNI_POST_FMA_PUT:
    case GNI_POST_FMA_GET:
    case GNI_POST_AMO:
      return orrery::gni::post_chain(ep_hndl, post_descr);
    default:
      return GNI_RC_INVALID_PARAM;
  }
}

gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t* post_descr) {
  if (post_descr == nullptr || raw_value(post_descr->type) != GNI_POST_CQWRITE) return GNI_RC_INVALID_PARAM;
  return orrery::gni::post_chain(ep_hndl, post_descr);
}

}  // extern "C"
