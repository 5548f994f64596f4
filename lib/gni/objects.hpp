// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/short_lock.hpp"
#include "emu/job/job.hpp"
#include "emu/job/waiting_call.hpp"
#include "emu/nic/initiator/fma_window.hpp"
#include "emu/nic/nic.hpp"
#include "lib/common/local_access.hpp"
#include "lib/common/sign_on.hpp"
#include "lib/gni/device/statistics.hpp"
#include "lib/gni/domain/stay.hpp"
#include "lib/gni/handle_table.hpp"

#include "include/gni/gni_pub.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

// What the handles of this library stand for. A domain owns its attachment, an attachment owns its endpoints,
// queues and registrations, and all of them end with the domain.
// Threads: as the interface asks, one at a time per NIC handle; see gni_pub.h.
namespace orrery::gni {

struct Attachment;
struct CompChan;
class SharedQueue;
class QueueMembership;
class DestinationQueue;

// A queue, and what to tell its client.
struct Cq {
  nic::CompletionQueue* queue = nullptr;
  nic::Nic* nic = nullptr;
  void (*handler)(gni_cq_entry_t*, void*) = nullptr;
  void* context = nullptr;
  Attachment* attachment = nullptr;
  std::uint64_t handle = 0;
  bool blocking = false;
  std::atomic<bool> masked{false};  // its wake-ups are stopped
  CompChan* channel = nullptr;
  Stays stays;
};

// A collective engine: one VCE of the NIC.
struct Ce {
  nic::Nic* nic = nullptr;
  Attachment* attachment = nullptr;
  std::uint32_t vce = 0;
  std::uint64_t handle = 0;
};

// An endpoint. One that was destroyed lives on while operations of it are in flight.
struct Ep {
  nic::Endpoint endpoint;
  nic::Nic* nic = nullptr;
  Attachment* attachment = nullptr;
  Cq* source = nullptr;
  std::uint64_t handle = 0;
  common::LocalAccess local;
  nic::CeEdge edge;         // of a reduction tree
  bool values_set = false;  // by GNI_EpSetEventData: binding leaves them alone
  int usual_amo = 0;        // -1: no AMO takes the fast path, which knows the newer device alone
  Stays stays;
};

// A registration, as its client made it.
struct Registration {
  nic::MemKey key;  // not valid(): there is none
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t vmdh = UINT32_MAX;  // its place among the attachment's reserved entries, if it has one
  std::uint8_t attributes = 0;      // of its handle (mem_handle.hpp), which say nothing to the NIC
  // A region whose entry was taken before, or apart from, its memory: what its handle says stays the same
  // whatever is registered there. `key` is not valid() before its first update.
  bool is_held = false;
  std::uint16_t entry = 0;  // of the registration table
  std::uint8_t flags = 0;   // nic::RegionFlags
  gni_cq_handle_t queue = nullptr;
  std::uint64_t live_begin = 0;  // what the updates have covered
  std::uint64_t live_end = 0;

  bool exists() const { return is_held || key.valid(); }
};

// One attachment of a domain to the NIC: what a gni_nic_handle_t stands for.
struct Attachment : common::SignOn {
  std::uint32_t instance = 0;
  std::uint8_t ptag = 0;
  bool dual_events = false;
  bool cached_amos = false;
  bool fma_shared = false;
  bool holds_fma = false;  // a descriptor of its own
  bool gemini = false;
  std::uint64_t handle = 0;
  Statistics statistics;
  std::vector<std::unique_ptr<Ep>> endpoints;
  std::vector<std::unique_ptr<Ep>> departed;  // destroyed with operations in flight
  std::vector<std::unique_ptr<Cq>> queues;
  std::vector<std::unique_ptr<nic::FmaWindow>> windows;
  std::vector<std::unique_ptr<Ce>> engines;
  std::shared_ptr<SharedQueue> shared_queue;          // complete in shared_queue.hpp alone
  std::shared_ptr<QueueMembership> queue_membership;  // complete in queue_membership.hpp alone
  std::vector<std::shared_ptr<DestinationQueue>> destination_queues;
  std::vector<std::shared_ptr<CompChan>> channels;  // complete in comp_chan.hpp alone
  mutable ShortLock registrations_lock;
  std::vector<Registration> regions;  // by index of the registration table; guarded by registrations_lock
  // Reserved entries: the registration's index plus 1, or 0. Empty before GNI_SetMddResources. Guarded by
  // registrations_lock.
  std::vector<std::uint32_t> vmdh;
  Stays stays;
};

// A call in which the calling thread is about to sleep, told to the report of a hang.
struct Sleep : job::WaitingCall {
  Sleep(const Attachment& attachment, const char* call)
      : WaitingCall(attachment.job->directory(), attachment.job->self(), call) {}
};

// A communication domain: what a gni_cdm_handle_t stands for.
struct Cdm {
  std::uint32_t instance = 0;
  std::uint8_t ptag = 0;
  std::uint32_t cookie = 0;
  std::uint32_t modes = 0;
  std::unique_ptr<Attachment> attachment;
};

// The objects of live handles, or nullptr. Any bits are accepted; any thread.
inline Cdm* find(gni_cdm_handle_t handle) {
  return static_cast<Cdm*>(handles().find(HandleKind::cdm, reinterpret_cast<std::uint64_t>(handle)));
}
inline Attachment* find(gni_nic_handle_t handle) {
  return static_cast<Attachment*>(handles().find(HandleKind::nic, reinterpret_cast<std::uint64_t>(handle)));
}
inline Ep* find(gni_ep_handle_t handle) {
  return static_cast<Ep*>(handles().find(HandleKind::ep, reinterpret_cast<std::uint64_t>(handle)));
}
inline Cq* find(gni_cq_handle_t handle) {
  return static_cast<Cq*>(handles().find(HandleKind::cq, reinterpret_cast<std::uint64_t>(handle)));
}
inline CompChan* find(gni_comp_chan_handle_t handle) {
  return static_cast<CompChan*>(
      handles().find(HandleKind::comp_chan, reinterpret_cast<std::uint64_t>(handle)));
}
inline Ce* find(gni_ce_handle_t handle) {
  return static_cast<Ce*>(handles().find(HandleKind::ce, reinterpret_cast<std::uint64_t>(handle)));
}

// Ends the calls that wait for the queue; as Stays::end. cq_vector.cpp
bool end_stays(Cq& cq);
// Whether waits of this process may be cut into slices: not in virtual time.
inline bool in_slices(const nic::Nic& nic) { return nic.clock() == nullptr || !nic.clock()->is_virtual(); }
// The queue's channel forgets it. comp_chan.cpp
void detach(Cq& cq);
// Ends the channels of an attachment. comp_chan.cpp
void close_channels(Attachment& attachment);
// Whether GNI_CdmHold or GNI_ConfigureJobFd gave that descriptor, and GNI_CdmRelease did not take it back;
// and the giving: a new descriptor, or -1. cdm.cpp
bool is_held(int fd);
// The domain of (ptag, cookie), with the tag derived from the cookie when that is GNI_FIND_ALLOC_PTAG.
// Errors: permission (no tag for that cookie), and those of job::Job::find_domain.
Result<job::DomainId> find_domain(job::Job& job, std::uint8_t ptag, std::uint32_t cookie);
int hold();
// Gives the client what the queue gave. cq.cpp
gni_return_t hand_over(const Cq& cq, Errc found, const nic::Event& event, gni_cq_entry_t* event_data);
using common::deadline_of;
// GNI_PostFma of type CE. ce.cpp
gni_return_t post_ce(Ep& ep, gni_post_descriptor_t* post_descr);
// Ends an attachment with everything on it. Waits for accesses of peers and for operations in flight, each
// for a bounded time. cdm.cpp
void close(Attachment& attachment);
// Frees departed endpoints whose last operation has ended. ep.cpp
void sweep(Attachment& attachment);

}  // namespace orrery::gni
