// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"
#include "lib/gni/domain/mem_handle.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/raw_value.hpp"
#include "lib/gni/status.hpp"

#include <limits>

// Short messages.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kDeliveryModes =
    GNI_DLVMODE_IN_ORDER | GNI_DLVMODE_NO_RADAPT | GNI_DLVMODE_NMIN_HASH | GNI_DLVMODE_MIN_HASH |
    GNI_DLVMODE_ADAPTIVE1 | GNI_DLVMODE_ADAPTIVE2 | GNI_DLVMODE_ADAPTIVE3 | GNI_DLVMODE_ORDERED_TAIL;

bool is_mailbox(const gni_smsg_attr_t& attr) {
  const std::uint32_t type = raw_value(attr.msg_type);
  return (type == GNI_SMSG_TYPE_MBOX || type == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT) &&
         attr.mbox_maxcredit != 0 && attr.msg_maxsize <= GNI_SMSG_MAX_SIZE;
}

nic::MailboxShape shape_of(const gni_smsg_attr_t& attr) {
  return {.credits = attr.mbox_maxcredit, .max_bytes = attr.msg_maxsize};
}

nic::MailboxPlace place_of(const gni_smsg_attr_t& attr) {
  return {.key = mem_handle::key_of(attr.mem_hndl),
          .address = reinterpret_cast<std::uint64_t>(attr.msg_buffer) + attr.mbox_offset};
}

std::span<const std::byte> bytes_of(const void* at, std::uint32_t length) {
  return {static_cast<const std::byte*>(at), length};
}

static_assert(GNI_SMSG_ANY_TAG == nic::kAnyTag && GNI_SMSG_MAX_SIZE == nic::kMaxMessageBytes &&
              GNI_DATAGRAM_MAXSIZE == nic::kDatagramBytes);

// The endpoint of a live handle that has a connection, or null.
Ep* find_connected(gni_ep_handle_t handle) {
  Ep* const ep = find(handle);
  return ep == nullptr || ep->endpoint.mailbox == nullptr ? nullptr : ep;
}

[[gnu::cold, gnu::noinline]] gni_return_t not_sent(Ep& ep, Errc why) {
  if (why == Errc::not_done) ep.attachment->statistics.count(GNI_STAT_SMSG_MBOX_CREDITS_STALL);
  if (why == Errc::no_resource) ep.attachment->statistics.count(GNI_STAT_SMSG_REQ_STALL);
  if (why == Errc::size) return GNI_RC_ERROR_RESOURCE;
  // Requests are used up for a moment: clients try again after NOT_DONE, and give up after anything else.
  return why == Errc::no_resource ? GNI_RC_NOT_DONE : return_of(why);
}

[[gnu::always_inline]] inline gni_return_t send(gni_ep_handle_t ep_hndl, const void* header,
                                                std::uint32_t header_length, const void* data,
                                                std::uint32_t data_length, const nic::MessageLabel& label) {
  Ep* const ep = find_connected(ep_hndl);
  if (ep == nullptr || (header == nullptr && header_length != 0) || (data == nullptr && data_length != 0))
      [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  const Errc sent = nic::send_message(*ep->nic, ep->endpoint, bytes_of(header, header_length),
                                      bytes_of(data, data_length), label);
  if (sent == Errc::ok) [[likely]]
    return GNI_RC_SUCCESS;
  return not_sent(*ep, sent);
}

}  // namespace

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::find_connected;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t* smsg_attr, unsigned int* size) {
  if (smsg_attr == nullptr || size == nullptr || !orrery::gni::is_mailbox(*smsg_attr))
    return GNI_RC_INVALID_PARAM;
  const std::uint64_t bytes = orrery::gni::shape_of(*smsg_attr).bytes();
  if (bytes > std::numeric_limits<unsigned int>::max()) return GNI_RC_INVALID_PARAM;
  *size = static_cast<unsigned int>(bytes);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t* local_smsg_attr,
                          gni_smsg_attr_t* remote_smsg_attr) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || local_smsg_attr == nullptr || remote_smsg_attr == nullptr) return GNI_RC_INVALID_PARAM;
  if (!ep->endpoint.bound || ep->endpoint.mailbox != nullptr) return GNI_RC_INVALID_STATE;
  const gni_smsg_attr_t& ours = *local_smsg_attr;
  const gni_smsg_attr_t& theirs = *remote_smsg_attr;
  if (!orrery::gni::is_mailbox(ours) || !orrery::gni::is_mailbox(theirs) ||
      orrery::gni::raw_value(ours.msg_type) != orrery::gni::raw_value(theirs.msg_type) ||
      !(orrery::gni::shape_of(ours) == orrery::gni::shape_of(theirs)) ||
      !orrery::gni::mem_handle::well_formed(theirs.mem_hndl))
    return GNI_RC_INVALID_PARAM;
  const Errc opened = ep->nic->messages().open(ep->endpoint, orrery::gni::shape_of(ours),
                                               orrery::gni::place_of(ours), orrery::gni::place_of(theirs));
  if (opened == Errc::ok) {
    ep->endpoint.mailbox->sends_again =
        orrery::gni::raw_value(ours.msg_type) == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  }
  return opened == Errc::permission ? GNI_RC_INVALID_PARAM : return_of(opened);
}

// A message never arrives before its predecessor, whatever the mode: its mailbox sees to that. Its event may.
gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode) {
  const orrery::gni::Attachment* const attachment = find(nic_handle);
  if (attachment == nullptr || (dlvr_mode & ~orrery::gni::kDeliveryModes) != 0) return GNI_RC_INVALID_PARAM;
  const bool ordered = (dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER;
  attachment->port->message_order = ordered ? std::uint32_t{orrery::nic::kInOrder} : 0;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans) {
  const orrery::gni::Attachment* const attachment = find(nic_handle);
  if (attachment == nullptr) return GNI_RC_INVALID_PARAM;
  attachment->port->max_retransmits = max_retrans;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void* header, uint32_t header_length, void* data,
                          uint32_t data_length, uint32_t msg_id) {
  return orrery::gni::send(ep_hndl, header, header_length, data, data_length, {.id = msg_id, .tag = 0});
}

gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void* header, uint32_t header_length, void* data,
                              uint32_t data_length, uint32_t msg_id, uint8_t tag) {
  if (tag == GNI_SMSG_ANY_TAG) return GNI_RC_INVALID_PARAM;
  return orrery::gni::send(ep_hndl, header, header_length, data, data_length, {.id = msg_id, .tag = tag});
}

gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void** header) {
  Ep* const ep = find_connected(ep_hndl);
  if (ep == nullptr || header == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  orrery::nic::ReceivedMessage message;
  const Errc found = orrery::nic::next_message(*ep->nic, ep->endpoint, orrery::nic::kAnyTag, &message);
  if (found != Errc::ok) return return_of(found);
  *header = message.at;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void** header, uint8_t* tag) {
  Ep* const ep = find_connected(ep_hndl);
  if (ep == nullptr || header == nullptr || tag == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  orrery::nic::ReceivedMessage message;
  const Errc found = orrery::nic::next_message(*ep->nic, ep->endpoint, *tag, &message);
  if (found == Errc::ok || found == Errc::no_match) *tag = message.tag;
  if (found != Errc::ok) return return_of(found);
  *header = message.at;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl) {
  Ep* const ep = find_connected(ep_hndl);
  if (ep == nullptr) [[unlikely]]
    return GNI_RC_INVALID_PARAM;
  return return_of(orrery::nic::release_message(*ep->nic, ep->endpoint));
}

}  // extern "C"
