// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/objects.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <memory>
#include <vector>

// Waiting for several queues at once, and the masks that stop a wait.
namespace orrery::gni {

namespace {

struct Queues {
  std::vector<Cq*> all;
  std::vector<nic::CompletionQueue*> awake;  // those that are not masked
  std::vector<std::uint32_t> index;          // of each of those, in `all`
  std::vector<std::unique_ptr<Stay>> stays;  // in all of them, while the call waits

  void stay() {
    for (Cq* cq : all) stays.push_back(std::make_unique<Stay>(cq->stays));
  }
  void leave() { stays.clear(); }
  bool ended() const {
    return std::any_of(all.begin(), all.end(), [](const Cq* cq) { return cq->stays.ended(); });
  }
};

gni_return_t look_up(gni_cq_handle_t* cqs, std::uint32_t count, Queues* queues) {
  if (cqs == nullptr || count == 0) return GNI_RC_INVALID_PARAM;
  for (std::uint32_t i = 0; i < count; ++i) {
    Cq* const cq = find(cqs[i]);
    if (cq == nullptr || (i != 0 && cq->attachment != queues->all[0]->attachment))
      return GNI_RC_INVALID_PARAM;
    queues->all.push_back(cq);
  }
  for (const Cq* cq : queues->all) {
    if (!cq->blocking) return GNI_RC_ERROR_RESOURCE;
  }
  return GNI_RC_SUCCESS;
}

// Sleeps until a queue that is not masked has news. not_done: all are masked; invalid_param: one has ended.
Errc wait_for(Queues& queues, std::optional<std::int64_t> deadline, std::uint32_t* which) {
  const auto masked = [](const Cq* cq) { return cq->masked.load(std::memory_order_seq_cst); };
  for (;;) {
    if (queues.ended()) return Errc::invalid_param;
    queues.awake.clear();
    queues.index.clear();
    for (std::uint32_t i = 0; i < queues.all.size(); ++i) {
      if (masked(queues.all[i])) continue;
      queues.awake.push_back(queues.all[i]->queue);
      queues.index.push_back(i);
    }
    if (queues.awake.empty()) return Errc::not_done;
    const auto changed = [&] {
      if (queues.ended()) return true;
      std::size_t awake = 0;
      for (std::uint32_t i = 0; i < queues.all.size(); ++i) {
        if (masked(queues.all[i])) continue;
        if (awake == queues.index.size() || queues.index[awake] != i) return true;
        ++awake;
      }
      return awake != queues.index.size();
    };
    const auto found = queues.all[0]->nic->waits().wait_any(queues.awake, deadline, changed);
    if (found.ok()) {
      *which = queues.index[found.value()];
      return Errc::ok;
    }
    if (found.code() != Errc::terminated) return found.code();
  }
}

gni_return_t set_mask(gni_cq_handle_t cq_hndl, bool masked) {
  Cq* const cq = find(cq_hndl);
  if (cq == nullptr || !cq->blocking) return GNI_RC_INVALID_PARAM;
  cq->masked.store(masked, std::memory_order_seq_cst);
  cq->nic->waits().ring_bell();
  return GNI_RC_SUCCESS;
}

}  // namespace

bool end_stays(Cq& cq) {
  return cq.stays.end([&] { cq.nic->waits().ring_bell(); });
}

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Cq;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t* cqs, uint32_t num_cqs, uint64_t timeout,
                                   gni_cq_entry_t* event_data, uint32_t* which) {
  if (event_data == nullptr || which == nullptr) return GNI_RC_INVALID_PARAM;
  orrery::gni::Queues queues;
  const gni_return_t good = orrery::gni::look_up(cqs, num_cqs, &queues);
  if (good != GNI_RC_SUCCESS) return good;
  const auto deadline = orrery::gni::deadline_of(*queues.all[0]->nic, timeout);
  for (;;) {
    for (uint32_t i = 0; i < num_cqs; ++i) {
      const Cq& cq = *queues.all[i];
      orrery::nic::Event event;
      const Errc found = cq.nic->poll(*cq.queue, &event);
      if (found == Errc::not_done) continue;
      *which = i;
      return orrery::gni::hand_over(cq, found, event, event_data);
    }
    std::uint32_t ignored = 0;
    const orrery::gni::Sleep here(*queues.all[0]->attachment, __func__);
    queues.stay();
    const Errc waited = orrery::gni::wait_for(queues, deadline, &ignored);
    queues.leave();
    if (waited != Errc::ok) return return_of(waited);
  }
}

gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t* cqs, uint32_t num_cqs, uint64_t timeout, uint32_t* which) {
  if (which == nullptr) return GNI_RC_INVALID_PARAM;
  orrery::gni::Queues queues;
  const gni_return_t good = orrery::gni::look_up(cqs, num_cqs, &queues);
  if (good != GNI_RC_SUCCESS) return good;
  queues.stay();
  const orrery::gni::Sleep here(*queues.all[0]->attachment, __func__);
  return return_of(
      orrery::gni::wait_for(queues, orrery::gni::deadline_of(*queues.all[0]->nic, timeout), which));
}

gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl) { return orrery::gni::set_mask(cq_hndl, true); }

gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl) { return orrery::gni::set_mask(cq_hndl, false); }

}  // extern "C"
