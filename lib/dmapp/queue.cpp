// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/queue.hpp"

#include "emu/base/log.hpp"
#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/process_stat.hpp"
#include "lib/dmapp/context.hpp"
#include "lib/dmapp/issue.hpp"
#include "lib/dmapp/queue_protocol.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

// Message queues: a channel of the NIC, whose buffers are the queue's slots. A message takes the oldest free
// slot; where there is none, its sender tries again.
namespace orrery::dmapp {

namespace {

using Callback = int (*)(void* context, void* data, std::uint32_t len, dmapp_pe_t rank);

// How long the queue's thread sleeps before it looks whether it is to end.
constexpr std::int64_t kQueueLookNs = 50'000'000;

class Queue;
thread_local Queue* t_calling = nullptr;  // whose callback the thread is in

class Queue {
 public:
  Queue(World& world, Callback callback, void* context, std::uint64_t handle)
      : handle_(handle), world_(world), callback_(callback), context_(context) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Errc open() {
    nic::Nic& nic = world_.nic();
    const Attributes& attributes = world_.attributes();
    slot_bytes_ = std::uint64_t{attributes.queue_nelems} * 8;
    bytes_ = slot_bytes_ * (attributes.queue_depth + 1);
    block_ = static_cast<std::byte*>(world_.allocate_pages(bytes_));
    if (block_ == nullptr) return Errc::no_memory;
    const auto key = nic.register_region(*world_.signed_on().port, reinterpret_cast<std::uint64_t>(block_),
                                         bytes_, 0, nullptr);
    if (!key.ok()) return key.code();
    key_ = key.value();
    const auto arrivals = nic.create_queue(2 * attributes.queue_depth, 0);
    if (!arrivals.ok()) return arrivals.code();
    arrivals_ = arrivals.value();
    const auto channel = nic.channels().open(*world_.signed_on().port, arrivals_);
    if (!channel.ok()) return channel.code();
    channel_ = channel.value();
    for (std::uint32_t i = 0; i < attributes.queue_depth; ++i) {
      if (const Errc posted = give(block_ + i * slot_bytes_); posted != Errc::ok) return posted;
    }
    receive_.emplace(*this, block_ + attributes.queue_depth * slot_bytes_);
    if ((attributes.queue_flags & DMAPP_QUEUE_ASYNC_PROGRESS) != 0) {
      if (nic.clock() != nullptr && nic.clock()->is_virtual()) waits_in_ = nic.clock();
      if (!start_thread(thread_, [this] { serve(); })) return Errc::no_resource;
      pthread_setname_np(thread_.native_handle(), "orrery-queue");
      if (waits_in_ != nullptr) await_thread();
    }
    // Any PE may die while it fills a slot, also one that this one has never spoken to: the NIC takes the
    // slot back when it hears of the death.
    for (int pe = 0; pe < world_.npes(); ++pe) world_.watch(pe);
    // Release: a sender that finds the name finds the slots.
    world_.inside().queue.name.store(message::name_word(*channel_), std::memory_order_release);
    return Errc::ok;
  }

  ~Queue() {
    world_.inside().queue.name.store(0, std::memory_order_release);
    stop_.store(true, std::memory_order_release);
    nic::Nic& nic = world_.nic();
    if (thread_.joinable()) {
      // Under a clock it waits there, and is waited for in real time.
      const clock::RealWait keeps_turn(nic.clock());
      while (nic.clock() != nullptr && !ended_.load(std::memory_order_acquire)) {
        nic.clock()->rouse();
        yield_cpu();
      }
      thread_.join();
    }
    if (channel_) {
      while (nic.channels().close(*channel_) == Errc::not_done) yield_cpu();
    }
    if (arrivals_ != nullptr) (void)nic.destroy_queue(arrivals_);
    if (key_.valid()) (void)nic.deregister(key_);
    world_.free_pages(block_, bytes_);
  }

  bool has_thread() const { return thread_.joinable(); }
  std::uint64_t handle() const { return handle_; }

  // Runs the callback for what is there. One thread at a time; another one, and the callback itself, go on.
  void run() {
    if (!mu_.try_lock()) return;
    const std::lock_guard lock(mu_, std::adopt_lock);
    while (receive_->step()) {
    }
  }
  // REQUIRES: the thread is in the callback.
  void set_aside() { receive_->set_aside(); }

  // What message::Receive asks for.
  std::optional<message::Message> take() {
    nic::Event event;
    while (next(&event) == Errc::ok) {
      const auto came = world_.nic().channels().take(event);
      if (!came.ok()) continue;
      const auto pe = static_cast<std::int32_t>(came.value().remote_event_data);
      auto* const slot = static_cast<std::byte*>(came.value().context);
      if (pe >= 0 && pe < world_.npes())
        return message::Message{slot, static_cast<std::uint32_t>(std::min(came.value().bytes, slot_bytes_)),
                                pe};
      post(slot);
    }
    return std::nullopt;
  }
  bool call(void* data, std::uint32_t bytes, int pe) {
    t_calling = this;
    (void)callback_(context_, data, bytes, pe);
    t_calling = nullptr;
    return true;
  }
  void post(std::byte* slot) { (void)give(slot); }

 private:
  Errc next(nic::Event* event) {
    return waits_in_ != nullptr ? arrivals_->take(event) : world_.nic().poll(*arrivals_, event);
  }
  // Until the thread sleeps in the clock: what came before then it would find at some later time.
  void await_thread() {
    const clock::RealWait keeps_turn(waits_in_);
    while (thread_id_.load(std::memory_order_acquire) == 0) yield_cpu();
    while (job::process_stat(thread_id_.load(std::memory_order_relaxed)).state == 'R') yield_cpu();
  }
  Errc give(std::byte* at) {
    return world_.nic().channels().post(*channel_, key_, reinterpret_cast<std::uint64_t>(at), slot_bytes_,
                                        at);
  }
  void serve() {
    nic::Nic& nic = world_.nic();
    make_no_vain_look(waits_in_ != nullptr);
    // Release: the queue is there.
    thread_id_.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
    while (!stop_.load(std::memory_order_acquire)) {
      if (waits_in_ != nullptr) nic.attendant().move_in_turn();
      run();
      if (waits_in_ != nullptr)
        (void)waits_in_->wait(std::nullopt);
      else
        (void)nic.waits().wait(*arrivals_, nic.waits().now_ns() + kQueueLookNs);
    }
    make_no_vain_look(false);
    ended_.store(true, std::memory_order_release);
  }
  static void make_no_vain_look(bool none) {
    if (Context* const own = here(); own != nullptr) own->makes_no_vain_look = none;
  }

  const std::uint64_t handle_;
  World& world_;
  const Callback callback_;
  void* const context_;
  std::byte* block_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t slot_bytes_ = 0;
  nic::MemKey key_;
  nic::CompletionQueue* arrivals_ = nullptr;
  std::optional<nic::ChannelName> channel_;
  std::mutex mu_;
  std::optional<message::Receive<Queue>> receive_;  // guarded by mu_
  clock::Clock* waits_in_ = nullptr;                // where the queue's thread waits, in virtual time
  std::atomic<pid_t> thread_id_{0};                 // of the queue's thread, once it runs
  std::atomic<bool> stop_{false}, ended_{false};
  std::thread thread_;
};

std::mutex g_queue_mu;
std::shared_ptr<Queue> g_queue;  // guarded by g_queue_mu
std::uint64_t g_handles = 0;     // guarded by g_queue_mu

std::shared_ptr<Queue> queue_now() {
  const std::lock_guard lock(g_queue_mu);
  return g_queue;
}

// A message from here, as message::Send asks for it.
class Sender {
 public:
  Sender(Context& context, void* source, std::uint64_t bytes)
      : context_(context), source_(source), bytes_(bytes) {}

  std::optional<std::uint64_t> name(int pe) {
    std::uint64_t word = 0;
    const Place place = context_.find_inside(pe, offsetof(Inside, queue) + offsetof(MessageQueue, name));
    Issue issue(context_, Mode::blocking);
    issue.get(place, &word, sizeof word);
    if (issue.finish() != DMAPP_RC_SUCCESS) return std::nullopt;
    return word;
  }
  void watch(int pe) { context_.world().watch(pe); }
  bool alive(int pe) const { return context_.world().alive(pe); }
  Errc start(int pe, nic::MemKey channel) {
    channel.process = static_cast<std::uint16_t>(context_.world().card(pe).process_slot);
    nic::Request request;
    request.op = nic::Op::send;
    request.flags = nic::kGlobalEvent | nic::kInOrder;
    request.local_address = reinterpret_cast<std::uint64_t>(source_);
    request.length = bytes_;
    request.remote = channel;
    return context_.start(context_.find_inside(pe, 0), request, tracker_);
  }
  std::optional<Errc> ended() { return context_.wait(tracker_); }

 private:
  Context& context_;
  void* const source_;
  const std::uint64_t bytes_;
  Tracker tracker_;
};

}  // namespace

void run_messages() {
  if (t_calling != nullptr) return;
  const std::shared_ptr<Queue> queue = queue_now();
  if (queue != nullptr && !queue->has_thread()) queue->run();
}

bool is_in_call() {
  const Visits* const visits = t_seat.visits;
  return t_calling != nullptr || (t_seat.epoch == g_epoch.load(std::memory_order_relaxed) &&
                                  visits != nullptr && visits->depth.load(std::memory_order_relaxed) != 0);
}

void end_queue() {
  std::shared_ptr<Queue> queue;
  {
    const std::lock_guard lock(g_queue_mu);
    queue.swap(g_queue);
  }
}

}  // namespace orrery::dmapp

using orrery::Errc;
using orrery::dmapp::Context;

extern "C" {

dmapp_return_t dmapp_queue_attach(int (*callback)(void* context, void* data, uint32_t len, dmapp_pe_t rank),
                                  void* context, uint64_t flags, dmapp_queue_handle_t* hndl) {
  const orrery::dmapp::Visit visit;
  Context* const mine = visit.context();
  if (mine == nullptr || callback == nullptr || flags != 0 || hndl == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(orrery::dmapp::g_queue_mu);
  if (orrery::dmapp::g_queue != nullptr) return DMAPP_RC_BUSY;
  auto queue =
      std::make_shared<orrery::dmapp::Queue>(mine->world(), callback, context, ++orrery::dmapp::g_handles);
  const Errc opened = queue->open();
  if (opened != Errc::ok) return orrery::dmapp::return_of(opened);
  *hndl = queue->handle();
  orrery::dmapp::g_queue = std::move(queue);
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_queue_detach(dmapp_queue_handle_t hndl, uint64_t flags) {
  const orrery::dmapp::Visit visit;
  const auto queue = orrery::dmapp::queue_now();
  if (visit.context() == nullptr || flags != 0 || queue == nullptr || queue->handle() != hndl)
    return DMAPP_RC_INVALID_PARAM;
  if (orrery::dmapp::t_calling != nullptr) return DMAPP_RC_BUSY;
  orrery::dmapp::end_queue();
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_queue_put(dmapp_queue_handle_t hndl, void* source, uint64_t nelems, dmapp_type_t type,
                               dmapp_pe_t target_pe, uint64_t flags) {
  const orrery::dmapp::Visit visit;
  Context* const context = visit.context();
  const int shift = orrery::dmapp::shift_of(type);
  if (context == nullptr || source == nullptr || shift < 0 || nelems > orrery::dmapp::kMostElements ||
      target_pe < 0 || target_pe >= context->npes() || flags != 0)
    return DMAPP_RC_INVALID_PARAM;
  {
    const auto queue = orrery::dmapp::queue_now();
    if (queue == nullptr || queue->handle() != hndl) return DMAPP_RC_INVALID_PARAM;
  }
  const std::uint64_t bytes = nelems << shift;
  if (bytes > (std::uint64_t{context->world().attributes().queue_nelems} - 1) * 8) return DMAPP_RC_NO_SPACE;
  namespace message = orrery::dmapp::message;
  orrery::dmapp::Sender sender(*context, source, bytes);
  message::Send<orrery::dmapp::Sender> send(sender, target_pe);
  for (;;) {
    const message::Step step = send.step();
    if (step == message::Step::sent) return DMAPP_RC_SUCCESS;
    if (step == message::Step::failed) return orrery::dmapp::return_of(send.outcome());
    if (step == message::Step::again) continue;
    if (!orrery::dmapp::Visit::is_current()) return DMAPP_RC_INVALID_PARAM;
    // So that two full queues do not wait for each other.
    if (orrery::dmapp::t_calling != nullptr)
      orrery::dmapp::t_calling->set_aside();
    else
      orrery::dmapp::run_messages();
    orrery::yield_cpu();
  }
}

}  // extern "C"
