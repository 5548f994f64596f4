// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/wait.hpp"
#include "emu/clock/look_source.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/status.hpp"

#include <optional>
#include <span>

// Datagrams.
namespace orrery::gni {

namespace {

constexpr std::uint64_t kNoName = UINT64_MAX;

using Name = std::optional<std::uint64_t>;

gni_post_state_t state_of(nic::DatagramStatus status) {
  switch (status) {
    case nic::DatagramStatus::pending:
      return GNI_POST_PENDING;
    case nic::DatagramStatus::remote_data:
      return GNI_POST_REMOTE_DATA;
    case nic::DatagramStatus::completed:
      return GNI_POST_COMPLETED;
    case nic::DatagramStatus::terminated:
      return GNI_POST_TERMINATED;
    case nic::DatagramStatus::failed:
      break;
  }
  return GNI_POST_ERROR;
}

gni_return_t post(gni_ep_handle_t ep_hndl, void* in_data, std::uint16_t data_len, void* out_buf,
                  std::uint16_t buf_size, Name name) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || (in_data == nullptr && data_len != 0) || (out_buf == nullptr && buf_size != 0))
    return GNI_RC_INVALID_PARAM;
  return return_of(ep->nic->datagrams().post(ep->endpoint, {static_cast<const std::byte*>(in_data), data_len},
                                             name, {static_cast<std::byte*>(out_buf), buf_size}));
}

gni_return_t hand_over(Errc found, const nic::DatagramOutcome& outcome, gni_post_state_t* post_state,
                       std::uint32_t* remote_addr, std::uint32_t* remote_id) {
  if (found != Errc::ok) return return_of(found);
  *post_state = state_of(outcome.status);
  if (outcome.status == nic::DatagramStatus::completed) {
    *remote_addr = outcome.remote_address;
    *remote_id = outcome.remote_instance;
  }
  return GNI_RC_SUCCESS;
}

gni_return_t test(gni_ep_handle_t ep_hndl, Name name, gni_post_state_t* post_state,
                  std::uint32_t* remote_addr, std::uint32_t* remote_id) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || post_state == nullptr || remote_addr == nullptr || remote_id == nullptr)
    return GNI_RC_INVALID_PARAM;
  nic::DatagramOutcome outcome;
  const Errc found = ep->nic->datagrams().test(ep->endpoint, name, &outcome);
  // Under a clock a program that looks again and again lets time pass.
  if (outcome.status == nic::DatagramStatus::pending && ep->nic->clock() != nullptr)
    ep->nic->attendant().progress(clock::free_source(ep));
  return hand_over(found, outcome, post_state, remote_addr, remote_id);
}

gni_return_t wait(const char* call, gni_ep_handle_t ep_hndl, Name name, std::uint32_t timeout,
                  gni_post_state_t* post_state, std::uint32_t* remote_addr, std::uint32_t* remote_id) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr || timeout == 0 || post_state == nullptr || remote_addr == nullptr ||
      remote_id == nullptr)
    return GNI_RC_INVALID_PARAM;
  nic::DatagramOutcome outcome;
  const Stay inside(ep->stays);
  if (ep->stays.ended()) return GNI_RC_INVALID_PARAM;
  const Sleep here(*ep->attachment, call);
  Errc found = Errc::timeout;
  (void)wait_inside(ep->stays, in_slices(*ep->nic), deadline_of(*ep->nic, timeout), [&](auto until) {
    found = ep->nic->datagrams().wait(ep->endpoint, name, until, &outcome);
    return found != Errc::timeout;
  });
  if (found == Errc::timeout && ep->stays.ended()) return GNI_RC_INVALID_PARAM;
  return hand_over(found, outcome, post_state, remote_addr, remote_id);
}

}  // namespace

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::Ep;
using orrery::gni::find;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void* in_data, uint16_t data_len, void* out_buf,
                            uint16_t buf_size) {
  return orrery::gni::post(ep_hndl, in_data, data_len, out_buf, buf_size, std::nullopt);
}

gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void* in_data, uint16_t data_len, void* out_buf,
                               uint16_t buf_size, uint64_t datagram_id) {
  if (datagram_id == orrery::gni::kNoName) return GNI_RC_INVALID_PARAM;
  return orrery::gni::post(ep_hndl, in_data, data_len, out_buf, buf_size, datagram_id);
}

gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t* post_state, uint32_t* remote_addr,
                                uint32_t* remote_id) {
  return orrery::gni::test(ep_hndl, std::nullopt, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id,
                                    gni_post_state_t* post_state, uint32_t* remote_addr,
                                    uint32_t* remote_id) {
  return orrery::gni::test(ep_hndl, datagram_id, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout, gni_post_state_t* post_state,
                                uint32_t* remote_addr, uint32_t* remote_id) {
  return orrery::gni::wait(__func__, ep_hndl, std::nullopt, timeout, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
                                    gni_post_state_t* post_state, uint32_t* remote_addr,
                                    uint32_t* remote_id) {
  return orrery::gni::wait(__func__, ep_hndl, datagram_id, timeout, post_state, remote_addr, remote_id);
}

gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t* remote_addr, uint32_t* remote_id) {
  const Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || remote_addr == nullptr || remote_id == nullptr) return GNI_RC_INVALID_PARAM;
  orrery::nic::DatagramOutcome outcome;
  const Errc found = attachment->nic->datagrams().probe(*attachment->port, &outcome);
  if (found != Errc::ok) return return_of(found);
  *remote_addr = outcome.remote_address;
  *remote_id = outcome.remote_instance;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t* datagram_id) {
  const Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || datagram_id == nullptr) return GNI_RC_INVALID_PARAM;
  const Errc found = attachment->nic->datagrams().probe_named(*attachment->port, datagram_id);
  if (found != Errc::ok && attachment->nic->clock() != nullptr)
    attachment->nic->attendant().progress(orrery::clock::free_source(attachment));
  return return_of(found);
}

gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout, uint64_t* datagram_id) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || datagram_id == nullptr) return GNI_RC_INVALID_PARAM;
  const orrery::gni::Stay inside(attachment->stays);
  if (attachment->stays.ended()) return GNI_RC_INVALID_PARAM;
  const orrery::gni::Sleep here(*attachment, __func__);
  const auto deadline = orrery::gni::deadline_of(*attachment->nic, timeout);
  Errc found = Errc::timeout;
  (void)orrery::gni::wait_inside(
      attachment->stays, orrery::gni::in_slices(*attachment->nic), deadline, [&](auto until) {
        found = attachment->nic->datagrams().probe_wait_named(*attachment->port, until, datagram_id);
        return found != Errc::timeout;
      });
  if (found == Errc::timeout && attachment->stays.ended()) return GNI_RC_INVALID_PARAM;
  return return_of(found);
}

gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  return return_of(ep->nic->datagrams().cancel(ep->endpoint, std::nullopt));
}

gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id) {
  Ep* const ep = find(ep_hndl);
  if (ep == nullptr) return GNI_RC_INVALID_PARAM;
  return return_of(ep->nic->datagrams().cancel(ep->endpoint, datagram_id));
}

}  // extern "C"
