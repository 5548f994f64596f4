// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/queue/comp_chan.hpp"

#include "emu/base/own_descriptor.hpp"
#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Completion channels.
namespace orrery::gni {

bool CompChan::open() {
  // Each read takes one event; it blocks unless the client makes the descriptor O_NONBLOCK.
  fd.reset(own_descriptor(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)));
  if (fd.get() < 0) return false;
  feeds_ = is_virtual();
  if (feeds_) clock::add_feed(this);
  return true;
}

bool CompChan::arm(Cq& cq) {
  {
    const std::lock_guard lock(mu_);
    if (!running_) {
      // The program's signals are the program's threads'.
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      // What it looks at comes behind the lock that is held.
      running_ = start_thread(thread_, [this] { run(); });
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (!running_) return false;
      pthread_setname_np(thread_.native_handle(), "orrery-channel");
    }
    const auto is_it = [&](const Armed& one) { return one.cq == &cq; };
    if (std::none_of(armed_.begin(), armed_.end(), is_it)) armed_.push_back({&cq, ++arms_});
    changes_.fetch_add(1, std::memory_order_seq_cst);
  }
  nic->waits().ring_bell();
  return true;
}

// The thread does not look at the queue any more when it returns.
void CompChan::forget(Cq& cq) {
  const clock::RealWait real(nic->clock());
  for (;;) {
    {
      const std::lock_guard lock(mu_);
      std::erase_if(armed_, [&](const Armed& one) { return one.cq == &cq; });
      std::erase_if(fired_, [&](const Fired& one) { return one.queue == cq.handle; });
      changes_.fetch_add(1, std::memory_order_seq_cst);
      if (!asleep_) return;
    }
    nic->waits().ring_bell();
    yield_cpu();
  }
}

void CompChan::stop() {
  if (std::exchange(feeds_, false)) clock::remove_feed(this);
  stopping_.store(true, std::memory_order_seq_cst);
  if (!thread_.joinable()) return;
  const clock::RealWait real(nic->clock());
  nic->waits().ring_bell();
  thread_.join();
}

bool CompChan::end_stays() {
  return stays.end([&] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto told = write(fd.get(), &one, sizeof one);
  });
}

std::uint64_t CompChan::take() {
  const std::lock_guard lock(mu_);
  if (fired_.empty()) return 0;
  // In virtual time what was first to fire is the accident of when the channel's thread looked.
  const auto at = is_virtual() ? std::ranges::min_element(fired_, {}, &Fired::serial) : fired_.begin();
  const std::uint64_t queue = at->queue;
  fired_.erase(at);
  return queue;
}

void CompChan::feed() {
  const std::lock_guard lock(mu_);
  fire();
}

// REQUIRES: mu_ is held.
void CompChan::fire() {
  std::uint64_t fired = 0;
  std::erase_if(armed_, [&](const Armed& one) {
    if (one.cq->queue->test() == Errc::not_done) return false;
    fired_.push_back({one.cq->handle, one.serial});
    ++fired;
    return true;
  });
  if (fired == 0) return;
  [[maybe_unused]] const auto told = write(fd.get(), &fired, sizeof fired);
}

void CompChan::run() {
  mark_runtime_thread();
  std::vector<nic::CompletionQueue*> queues;
  while (!stopping_.load(std::memory_order_seq_cst)) {
    const std::uint32_t seen = changes_.load(std::memory_order_seq_cst);
    {
      const std::lock_guard lock(mu_);
      fire();
      queues.clear();
      for (const Armed& one : armed_) queues.push_back(one.cq->queue);
      asleep_ = true;
    }
    (void)nic->waits().wait_any(queues, std::nullopt, [&] {
      return stopping_.load(std::memory_order_seq_cst) || changes_.load(std::memory_order_seq_cst) != seen;
    });
    const std::lock_guard lock(mu_);
    asleep_ = false;
  }
}

namespace {

// Virtual time: until the descriptor is readable. False: it is not, and does not block, or the channel has
// ended.
bool await_in_time(CompChan& channel) {
  nic::Nic& nic = *channel.nic;
  const Sleep here(*channel.attachment, "GNI_CompChanGetEvent");
  for (;;) {
    if (channel.stays.ended()) return false;
    nic.attendant().move_in_turn();
    channel.feed();
    pollfd readable{channel.fd.get(), POLLIN, 0};
    if (poll(&readable, 1, 0) == 1) return true;
    if ((fcntl(channel.fd.get(), F_GETFL) & O_NONBLOCK) != 0) {
      // A program that looks again and again lets time pass.
      nic.attendant().progress(&channel);
      return false;
    }
    (void)nic.clock()->wait(std::nullopt);
  }
}

}  // namespace

void detach(Cq& cq) {
  cq.channel->forget(cq);
  --cq.channel->attached;
  cq.channel = nullptr;
}

void close_channels(Attachment& attachment) {
  for (auto& channel : attachment.channels) {
    handles().erase(HandleKind::comp_chan, channel->handle);
    channel->stop();
    if (channel->end_stays()) channel->fd.reset();
    bury(std::make_unique<std::shared_ptr<CompChan>>(std::move(channel)));
  }
  for (auto& cq : attachment.queues) cq->channel = nullptr;
  attachment.channels.clear();
}

}  // namespace orrery::gni

using orrery::gni::Attachment;
using orrery::gni::CompChan;
using orrery::gni::Cq;
using orrery::gni::find;
using orrery::gni::HandleKind;
using orrery::gni::handles;

extern "C" {

gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t* chan_hndl) {
  Attachment* const attachment = find(nic_hndl);
  if (attachment == nullptr || chan_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  std::unique_ptr<CompChan> channel(new (std::nothrow) CompChan);
  if (channel == nullptr) return GNI_RC_ERROR_NOMEM;
  channel->nic = attachment->nic;
  channel->attachment = attachment;
  if (!channel->open()) return GNI_RC_ERROR_RESOURCE;
  channel->handle = handles().insert(HandleKind::comp_chan, channel.get());
  if (channel->handle == 0) return GNI_RC_ERROR_NOMEM;
  *chan_hndl = reinterpret_cast<gni_comp_chan_handle_t>(channel->handle);
  attachment->channels.push_back(std::move(channel));
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl) {
  CompChan* const channel = find(chan_hndl);
  if (channel == nullptr) return GNI_RC_INVALID_PARAM;
  if (channel->attached != 0) return GNI_RC_ERROR_RESOURCE;
  handles().erase(HandleKind::comp_chan, channel->handle);
  channel->stop();
  if (channel->end_stays()) channel->fd.reset();
  auto& channels = channel->attachment->channels;
  const auto at =
      std::find_if(channels.begin(), channels.end(), [&](const auto& c) { return c.get() == channel; });
  orrery::bury(std::make_unique<std::shared_ptr<CompChan>>(std::move(*at)));
  channels.erase(at);
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int* comp_chan_fd) {
  const CompChan* const channel = find(chan_hndl);
  if (channel == nullptr || comp_chan_fd == nullptr) return GNI_RC_INVALID_PARAM;
  *comp_chan_fd = channel->fd.get();
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t* cq_hndl) {
  CompChan* const channel = find(chan_hndl);
  if (channel == nullptr || cq_hndl == nullptr) return GNI_RC_INVALID_PARAM;
  const orrery::gni::Stay inside(channel->stays);
  if (channel->is_virtual() && !orrery::gni::await_in_time(*channel))
    return channel->stays.ended() ? GNI_RC_INVALID_PARAM : GNI_RC_NOT_DONE;
  for (;;) {
    if (channel->stays.ended()) return GNI_RC_INVALID_PARAM;
    std::uint64_t one = 0;
    if (read(channel->fd.get(), &one, sizeof one) != sizeof one) {
      if (errno == EINTR) continue;
      return GNI_RC_NOT_DONE;
    }
    // A queue that was destroyed since leaves its count behind.
    const std::uint64_t queue = channel->take();
    if (queue == 0) continue;
    *cq_hndl = reinterpret_cast<gni_cq_handle_t>(queue);
    return GNI_RC_SUCCESS;
  }
}

gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl) {
  Cq* const cq = find(cq_hndl);
  CompChan* const channel = find(chan_hndl);
  if (cq == nullptr || channel == nullptr || !cq->blocking || cq->attachment != channel->attachment)
    return GNI_RC_INVALID_PARAM;
  if (cq->channel != nullptr) return GNI_RC_INVALID_STATE;
  cq->channel = channel;
  ++channel->attached;
  return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqArmCompChan(gni_cq_handle_t* cq_hndls, uint32_t num_cqs) {
  if (cq_hndls == nullptr || num_cqs == 0) return GNI_RC_INVALID_PARAM;
  for (uint32_t i = 0; i < num_cqs; ++i) {
    const Cq* const cq = find(cq_hndls[i]);
    if (cq == nullptr || cq->channel == nullptr) return GNI_RC_INVALID_PARAM;
  }
  for (uint32_t i = 0; i < num_cqs; ++i) {
    Cq* const cq = find(cq_hndls[i]);
    if (!cq->channel->arm(*cq)) return GNI_RC_ERROR_RESOURCE;
  }
  return GNI_RC_SUCCESS;
}

}  // extern "C"
