// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/event_loop.hpp"

#include "emu/base/check.hpp"
#include "emu/base/last_thread.hpp"
#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/service_memory.hpp"
#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace orrery {

namespace {

// What epoll hands back with an event. An event that was fetched before its descriptor was removed must not
// reach what has the same number now: the serial tells them apart.
std::uint64_t token_of(int fd, std::uint32_t serial) {
  return static_cast<std::uint64_t>(serial) << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::start(const char* name) {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->owner_ = getpid();
  loop->epoll_.reset(own_descriptor(epoll_create1(EPOLL_CLOEXEC)));
  loop->wakeup_.reset(own_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  loop->timer_.reset(own_descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  bool ready = loop->epoll_.valid() && loop->wakeup_.valid() && loop->timer_.valid();
  for (const int fd : {loop->wakeup_.get(), loop->timer_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = token_of(fd, 0);
    ready = ready && epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }
  if (!ready) {
    log::error("no service thread: {}", std::strerror(errno));
    loop->owner_ = 0;  // nothing to join
    return Errc::system;
  }

  end_with_the_programs_last_thread();
  // The thread inherits the mask it is created with: every signal stays the application's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = create_runtime_thread(&loop->thread_, thread_main, loop.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    log::error("no service thread: {}", std::strerror(error));
    loop->owner_ = 0;
    return Errc::system;
  }
  std::array<char, 16> short_name{};
  std::strncpy(short_name.data(), name, short_name.size() - 1);
  pthread_setname_np(loop->thread_, short_name.data());
  return loop;
}

EventLoop::~EventLoop() {
  if (!alive_here()) return;
  ORRERY_CHECK(!on_loop_thread(), "the event loop cannot be destroyed by one of its own callbacks");
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  wake();
  pthread_join(thread_, nullptr);
}

bool EventLoop::alive_here() const { return owner_ != 0 && owner_ == getpid(); }

Status EventLoop::add(int fd, std::uint32_t epoll_events, Callback callback) {
  if (!alive_here()) return Errc::invalid_state;
  const std::lock_guard lock(mu_);
  const std::uint32_t serial = ++last_serial_;
  Watched watched{serial, epoll_events != 0, std::make_shared<Callback>(std::move(callback))};
  if (!callbacks_.emplace(fd, std::move(watched)).second) return Errc::invalid_param;
  if (epoll_events == 0) return {};
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = token_of(fd, serial);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    log::error("descriptor {} cannot be waited for: {}", fd, std::strerror(errno));
    callbacks_.erase(fd);
    return Errc::system;
  }
  return {};
}

Status EventLoop::change(int fd, std::uint32_t epoll_events) {
  if (!alive_here()) return Errc::invalid_state;
  const std::lock_guard lock(mu_);
  const auto found = callbacks_.find(fd);
  if (found == callbacks_.end()) return Errc::invalid_param;
  bool& watched = found->second.watched;
  if (!watched && epoll_events == 0) return {};
  const int what = !watched ? EPOLL_CTL_ADD : epoll_events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = token_of(fd, found->second.serial);
  if (epoll_ctl(epoll_.get(), what, fd, &event) != 0) return Errc::system;
  watched = epoll_events != 0;
  return {};
}

void EventLoop::remove(int fd) {
  // A descriptor that never was: -1 also says that no callback runs.
  if (fd < 0 || !alive_here()) return;
  const bool on_loop = on_loop_thread();
  std::unique_lock lock(mu_);
  const auto found = callbacks_.find(fd);
  if (found != callbacks_.end()) {
    if (found->second.watched) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    callbacks_.erase(found);
  }
  if (!on_loop) idle_.wait(lock, [&] { return running_fd_ != fd; });
}

void EventLoop::run_soon(std::function<void()> work) {
  if (!alive_here()) return;
  {
    const std::lock_guard lock(mu_);
    queue_.push_back(std::move(work));
  }
  wake();
}

bool EventLoop::run_and_wait(const std::function<void()>& work) {
  if (!alive_here()) return false;
  if (on_loop_thread()) {
    work();
    return true;
  }
  std::mutex mu;
  std::condition_variable done_changed;
  bool done = false;
  run_soon([&] {
    work();
    const std::lock_guard lock(mu);
    done = true;
    done_changed.notify_one();  // under the lock: the waiter owns both and may leave at once
  });
  std::unique_lock lock(mu);
  done_changed.wait(lock, [&] { return done; });
  return true;
}

namespace {
timespec timespec_of(std::chrono::nanoseconds span) {
  const auto ns = std::max<std::int64_t>(span.count(), 1000);
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}
}  // namespace

void EventLoop::set_tick(std::chrono::nanoseconds period, std::function<bool()> tick) {
  if (!alive_here()) return;
  const std::lock_guard lock(mu_);
  tick_ = std::make_shared<std::function<bool()>>(std::move(tick));
  tick_period_ = period;
  const itimerspec when{timespec_of(period), timespec_of(period)};
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void EventLoop::postpone_tick(std::chrono::nanoseconds delay) {
  if (!alive_here()) return;
  const std::unique_lock lock(mu_, std::try_to_lock);
  if (!lock.owns_lock() || tick_ == nullptr) return;
  const itimerspec when{timespec_of(tick_period_), timespec_of(delay)};
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

namespace {

// The kernel's struct (sched_setattr(2)), which libc does not declare.
struct SchedAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};

// Asks for short turns of the processor: a thread with those gets them sooner after waking, and the program's
// threads may be spinning for what this thread brings. No privilege is needed; kernels before 6.12 ignore it.
void ask_for_short_turns() {
  constexpr std::uint64_t kTurnNs = 100'000;  // the least that the kernel grants
  SchedAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kTurnNs;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void* EventLoop::thread_main(void* self) {
  mark_runtime_thread();
  service_memory::begin();
  ask_for_short_turns();
  static_cast<EventLoop*>(self)->run();
  return nullptr;
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is being woken already.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof one);
}

void EventLoop::drain_queue() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wakeup_.get(), &count, sizeof count);
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mu_);
    work.swap(queue_);
  }
  for (auto& item : work) item();
}

void EventLoop::run_tick() {
  std::uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof expirations) != sizeof expirations) return;
  std::shared_ptr<std::function<bool()>> tick;
  {
    const std::lock_guard lock(mu_);
    tick = tick_;
  }
  if (!tick || (*tick)()) return;
  const std::lock_guard lock(mu_);
  if (tick_ != tick) return;  // set again meanwhile
  tick_.reset();
  const itimerspec off{};
  timerfd_settime(timer_.get(), 0, &off, nullptr);
}

void EventLoop::run() {
  std::array<epoll_event, 16> events;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (count < 0) {
      ORRERY_CHECK(errno == EINTR, "epoll_wait: {}", std::strerror(errno));
      continue;
    }
    for (int i = 0; i < count; ++i) {
      const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
      const int fd = static_cast<int>(token & 0xffffffff);
      if (fd == wakeup_.get()) {
        drain_queue();
      } else if (fd == timer_.get()) {
        run_tick();
      } else {
        std::shared_ptr<Callback> callback;
        {
          const std::lock_guard lock(mu_);
          // Gone when another callback of this round removed it.
          const auto found = callbacks_.find(fd);
          if (found == callbacks_.end() || token != token_of(fd, found->second.serial)) continue;
          callback = found->second.callback;
          running_fd_ = fd;
        }
        (*callback)(events[static_cast<std::size_t>(i)].events);
        {
          const std::lock_guard lock(mu_);
          running_fd_ = -1;
        }
        idle_.notify_all();
      }
      const std::lock_guard lock(mu_);
      if (stopping_) return;
    }
  }
}

}  // namespace orrery
