// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/gni/device/fatal.hpp"
#include "lib/gni/domain/limits.hpp"
#include "lib/gni/message/destination_queue.hpp"
#include "lib/gni/message/shared_queue.hpp"
#include "lib/gni/objects.hpp"
#include "lib/gni/status.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>

#include <sys/eventfd.h>
#include <unistd.h>

// Communication domains, and the NIC that they attach to.
namespace orrery::gni {

namespace {

constexpr std::uint32_t kCdmModes =
    GNI_CDM_MODE_FORK_NOCOPY | GNI_CDM_MODE_FORK_FULLCOPY | GNI_CDM_MODE_FORK_PARTCOPY |
    GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_ERR_ALL_KILL | GNI_CDM_MODE_FAST_DATAGRAM_POLL |
    GNI_CDM_MODE_BTE_SINGLE_CHANNEL | GNI_CDM_MODE_USE_PCI_IOMMU | GNI_CDM_MODE_MDD_DEDICATED |
    GNI_CDM_MODE_MDD_SHARED | GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_DLA_ENABLE_FORWARDING |
    GNI_CDM_MODE_DLA_DISABLE_FORWARDING | GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED |
    GNI_CDM_MODE_CACHED_AMO_ENABLED | GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT | GNI_CDM_MODE_FLBTE_DISABLE |
    GNI_CDM_MODE_FMA_SMALL_WINDOW | GNI_CDM_MODE_PRIV_RESERVED_1 | GNI_CDM_MODE_PRIV_RESERVED_2 |
    GNI_CDM_MODE_PRIV_RESERVED_3 | GNI_CDM_MODE_PRIV_RESERVED_4;

constexpr std::uint32_t kNearestDevice = UINT32_MAX;

// How long the end of a domain waits, in real time, for operations in flight. Virtual time stands still for
// a PE that looks for what a peer that has ended would have brought.
constexpr std::int64_t kDomainSettleNs = 1'000'000'000;

// Domains that are held by a descriptor.
std::mutex g_held_mu;
std::vector<int> g_held;  // guarded by g_held_mu

// Whether a queue of the attachment is calling its client, and goes on with itself when that returns.
bool in_callback(const Attachment& attachment) {
  return (attachment.shared_queue != nullptr && attachment.shared_queue->in_callback()) ||
         std::any_of(attachment.destination_queues.begin(), attachment.destination_queues.end(),
                     [](const auto& queue) { return queue->in_callback(); });
}

// Whether a domain of those modes shares descriptors: what its modes leave open its environment says.
bool shares_fma(std::uint32_t modes) {
  if ((modes & GNI_CDM_MODE_FMA_SHARED) != 0) return true;
  if ((modes & GNI_CDM_MODE_FMA_DEDICATED) != 0) return false;
  const char* const set = ::secure_getenv("UGNI_FMA_SHARED");
  if (set == nullptr) return false;
  const std::string_view value(set);
  if (value != "0" && value != "1")
    log::error("UGNI_FMA_SHARED={}: not 0 or 1; descriptors are not shared", value);
  return value == "1";
}

}  // namespace

Result<job::DomainId> find_domain(job::Job& job, std::uint8_t ptag, std::uint32_t cookie) {
  if (ptag == GNI_FIND_ALLOC_PTAG) {
    const auto found = job.find_ptag(cookie);
    if (!found.ok()) return Errc::permission;
    ptag = found.value();
  }
  return job.find_domain(ptag, cookie);
}

bool is_held(int fd) {
  const std::lock_guard lock(g_held_mu);
  return std::find(g_held.begin(), g_held.end(), fd) != g_held.end();
}

// The job's directory keeps a domain as long as the job has a process: the descriptor only has to name one.
int hold() {
  const int fd = own_descriptor(eventfd(0, EFD_CLOEXEC));
  if (fd < 0) return -1;
  const std::lock_guard lock(g_held_mu);
  g_held.push_back(fd);
  return fd;
}

void close(Attachment& attachment) {
  if (attachment.shared_queue != nullptr) {
    handles().erase(HandleKind::msgq, attachment.shared_queue->handle);
    attachment.shared_queue.reset();
  }
  attachment.queue_membership.reset();
  for (auto& queue : attachment.destination_queues) handles().erase(HandleKind::dqueue, queue->handle);
  attachment.destination_queues.clear();
  attachment.windows.clear();
  // Calls of other threads that wait in here come back with invalid_param.
  handles().erase(HandleKind::nic, attachment.handle);
  const bool is_left = attachment.stays.end([] {});
  for (auto& ep : attachment.endpoints) {
    handles().erase(HandleKind::ep, ep->handle);
    attachment.nic->datagrams().forget(ep->endpoint);
    if (ep->stays.end([] {}))
      attachment.departed.push_back(std::move(ep));
    else
      (void)ep.release();
  }
  attachment.endpoints.clear();
  close_channels(attachment);
  for (auto& ce : attachment.engines) {
    handles().erase(HandleKind::ce, ce->handle);
    attachment.nic->collective().destroy(ce->vce);
    give(attachment, Resource::ce);
  }
  attachment.engines.clear();
  std::vector<Registration> regions;
  {
    const std::lock_guard lock(attachment.registrations_lock);
    regions.swap(attachment.regions);
  }
  for (const Registration& region : regions) {
    if (!region.exists()) continue;
    if (region.key.valid()) (void)attachment.nic->deregister(region.key);
    if (region.is_held) attachment.nic->regions().table().let_go(region.entry);
    give(attachment, Resource::mdd);
  }
  const std::int64_t deadline = monotonic_ns() + kDomainSettleNs;
  sweep(attachment);
  while (!attachment.departed.empty() && monotonic_ns() < deadline) {
    if (attachment.nic->clock() != nullptr) attachment.nic->progress();
    yield_cpu();
    sweep(attachment);
  }
  for (auto& cq : attachment.queues) {
    handles().erase(HandleKind::cq, cq->handle);
    give(attachment, Resource::cq);
    if (!end_stays(*cq)) {
      (void)cq.release();
      continue;
    }
    // A queue that operations in flight still name stays with the NIC, as their endpoints do.
    (void)attachment.nic->destroy_queue(cq->queue);
    bury(std::move(cq));
  }
  attachment.queues.clear();
  if (attachment.holds_fma) give(attachment, Resource::fma);
  attachment.nic->datagrams().forget_left_behind(*attachment.port);
  common::sign_off(attachment, is_left && attachment.departed.empty());
  // What is still under way reads its endpoint and the port.
  for (auto& ep : attachment.departed) (void)ep.release();
}

}  // namespace orrery::gni

using orrery::Errc;
using orrery::gni::Attachment;
using orrery::gni::Cdm;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;
using orrery::gni::return_of;

extern "C" {

gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes,
                           gni_cdm_handle_t* cdm_hndl) {
  if (cdm_hndl == nullptr || (modes & ~orrery::gni::kCdmModes) != 0) return GNI_RC_INVALID_PARAM;
  constexpr std::uint32_t kKillModes = GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_ERR_ALL_KILL;
  if ((modes & kKillModes) == kKillModes) return GNI_RC_INVALID_PARAM;
  std::unique_ptr<Cdm> cdm(new (std::nothrow)
                               Cdm{.instance = inst_id, .ptag = ptag, .cookie = cookie, .modes = modes});
  if (cdm == nullptr) return GNI_RC_ERROR_NOMEM;
  const std::uint64_t handle = handles().insert(HandleKind::cdm, cdm.get());
  if (handle == 0) return GNI_RC_ERROR_NOMEM;
  (void)cdm.release();
  *cdm_hndl = reinterpret_cast<gni_cdm_handle_t>(handle);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl) {
  const Cdm* const found = find(cdm_hndl);
  if (found == nullptr) return GNI_RC_INVALID_PARAM;
  // As the ends of the queues themselves (GNI_MsgqRelease, GNI_DqueueFini).
  if (found->attachment != nullptr && orrery::gni::in_callback(*found->attachment)) return GNI_RC_NOT_DONE;
  std::unique_ptr<Cdm> cdm(
      static_cast<Cdm*>(handles().erase(HandleKind::cdm, reinterpret_cast<std::uint64_t>(cdm_hndl))));
  if (cdm == nullptr) return GNI_RC_INVALID_PARAM;
  if (cdm->attachment != nullptr) orrery::gni::close(*cdm->attachment);
  orrery::bury(std::move(cdm));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t* local_addr,
                           gni_nic_handle_t* nic_hndl) {
  Cdm* const cdm = find(cdm_hndl);
  if (cdm == nullptr || local_addr == nullptr || nic_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id != 0 && device_id != orrery::gni::kNearestDevice) return GNI_RC_NO_MATCH;
  if (cdm->attachment != nullptr) return GNI_RC_INVALID_STATE;
  const auto runtime = orrery::nic::Runtime::of_process();
  if (!runtime.ok()) return return_of(runtime.code());
  orrery::common::forget_in_time([] { handles().forget_all(); });
  orrery::job::Job& job = runtime.value()->job();
  const auto domain = orrery::gni::find_domain(job, cdm->ptag, cdm->cookie);
  if (!domain.ok()) {
    orrery::log::error(
        "ptag {} cookie {:#x}: no domain of this job; PMI_Init sets PMI_GNI_PTAG and "
        "PMI_GNI_COOKIE to what is accepted",
        cdm->ptag, cdm->cookie);
    return return_of(domain.code());
  }
  std::unique_ptr<Attachment> attachment(new (std::nothrow) Attachment);
  if (attachment == nullptr) return GNI_RC_ERROR_NOMEM;
  const auto signed_on = orrery::common::sign_on(domain.value(), cdm->instance);
  if (!signed_on.ok()) return return_of(signed_on.code());
  static_cast<orrery::common::SignOn&>(*attachment) = signed_on.value();
  attachment->instance = cdm->instance;
  attachment->ptag = cdm->ptag;
  if (cdm->ptag == GNI_FIND_ALLOC_PTAG) attachment->ptag = job.find_ptag(cdm->cookie).value();
  attachment->dual_events = (cdm->modes & GNI_CDM_MODE_DUAL_EVENTS) != 0;
  attachment->fma_shared = orrery::gni::shares_fma(cdm->modes);
  attachment->cached_amos = (cdm->modes & GNI_CDM_MODE_CACHED_AMO_ENABLED) != 0;
  attachment->gemini = attachment->nic->options().gemini;
  // Domains that share descriptors need none of their own.
  attachment->holds_fma =
      !attachment->fma_shared && orrery::gni::take(*attachment, orrery::gni::Resource::fma);
  if (!attachment->fma_shared && !attachment->holds_fma) {
    orrery::gni::close(*attachment);
    return GNI_RC_ERROR_RESOURCE;
  }
  attachment->port->on_error_self = reinterpret_cast<void*>(std::uintptr_t{cdm->modes});
  attachment->port->on_error = orrery::gni::on_error;
  attachment->handle = handles().insert(HandleKind::nic, attachment.get());
  if (attachment->handle == 0) {
    orrery::gni::close(*attachment);
    return GNI_RC_ERROR_NOMEM;
  }
  orrery::log::debug("attached as nic address {} instance {}, ptag {}", job.nic_address(), cdm->instance,
                     attachment->ptag);
  *local_addr = job.nic_address();
  *nic_hndl = reinterpret_cast<gni_nic_handle_t>(attachment->handle);
  cdm->attachment = std::move(attachment);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t* address, uint32_t* cpu_id) {
  if (address == nullptr || cpu_id == nullptr) return GNI_RC_INVALID_PARAM;
  if (device_id != 0) return GNI_RC_NO_MATCH;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return return_of(job.code());
  *address = job.value()->nic_address();
  *cpu_id = 0;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmHold(uint8_t ptag, uint32_t cookie, int* nic_fd_ret) {
  if (nic_fd_ret == nullptr) return GNI_RC_INVALID_PARAM;
  const auto job = orrery::job::Job::of_process();
  if (!job.ok()) return return_of(job.code());
  if (!orrery::gni::find_domain(*job.value(), ptag, cookie).ok()) return GNI_RC_NO_MATCH;
  const int fd = orrery::gni::hold();
  if (fd < 0) return GNI_RC_ERROR_RESOURCE;
  *nic_fd_ret = fd;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmRelease(int nic_fd) {
  const std::lock_guard lock(orrery::gni::g_held_mu);
  if (std::erase(orrery::gni::g_held, nic_fd) == 0) return GNI_RC_INVALID_PARAM;
  ::close(nic_fd);
  return GNI_RC_SUCCESS;
}

}  // extern "C"
