// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>
#include <sys/types.h>

namespace orrery {

// A sleeping thread that runs callbacks when descriptors become ready: the process's service thread.
// Owns its thread, its epoll instance and the callbacks; never the descriptors it watches.
//   1. All callbacks run on the one loop thread, one at a time, with every signal blocked.
//   2. The thread sleeps in epoll_wait unless a descriptor is ready, work is queued or a tick is due.
//   3. After remove(fd) has returned, fd's callback will not be called; off the loop thread it has ended too.
//   4. A fork()ed child has no loop thread: there every call fails with invalid_state or does nothing, and
//      the destructor joins no thread: it frees memory and closes the child's copies of the descriptors.
// Usage: auto loop = EventLoop::start("orrery-service"); loop.value()->add(fd, EPOLLIN, on_ready);
class EventLoop {
 public:
  using Callback = std::function<void(std::uint32_t epoll_events)>;

  // Starts the thread; `name` is cut to 15 characters. Errors: system (no descriptor or thread left).
  static Result<std::unique_ptr<EventLoop>> start(const char* name);

  // Stops the thread after the callback that is running, and joins it. Queued work that has not run is
  // dropped. REQUIRES: not called on the loop thread.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `callback` with the ready events whenever `fd` has one of `epoll_events` (level-triggered unless
  // EPOLLET is given). Any thread. The caller keeps `fd` open until remove(). With no events it is not
  // watched at all, and events on it cost the process that causes them nothing. Errors: invalid_param (fd is
  // already added), system (not a descriptor that can be waited for), invalid_state (forked child).
  Status add(int fd, std::uint32_t epoll_events, Callback callback);

  // From now on `epoll_events`, as in add(), are those that `fd` is watched for, and if one of them is there
  // now the callback runs. Any thread. Errors: invalid_param (not added), system, invalid_state (forked
  // child).
  Status change(int fd, std::uint32_t epoll_events);

  // Stops watching `fd`; unknown ones are ignored. Any thread. Off the loop thread it returns only when the
  // callback is not running; on it, at once.
  void remove(int fd);

  // Runs `work` on the loop thread, after what was queued before. Any thread; does not wait.
  void run_soon(std::function<void()> work);

  // Runs `work` on the loop thread and waits until it has run (at once when already there). False when it
  // will never run (forked child).
  bool run_and_wait(const std::function<void()>& work);

  // Calls `tick` every `period` (at least 1 us) for as long as it returns true; after false the timer is off
  // until set again. One tick per loop; a new one replaces the old. Any thread.
  void set_tick(std::chrono::nanoseconds period, std::function<bool()> tick);
  // The next tick comes `delay` (at least 1 us) from now, later ones as before; nothing when there is none,
  // or the loop's lock is held. For a caller that does the tick's work itself. Any thread; a system call.
  void postpone_tick(std::chrono::nanoseconds delay);

  bool on_loop_thread() const { return alive_here() && pthread_equal(thread_, pthread_self()) != 0; }

 private:
  struct Watched {
    std::uint32_t serial;  // tells it from what had the same descriptor number before
    bool watched;          // false: with no events
    std::shared_ptr<Callback> callback;
  };

  EventLoop() = default;
  static void* thread_main(void* self);
  void run();
  void wake();
  void drain_queue();
  void run_tick();
  bool alive_here() const;

  // Constant after start().
  pthread_t thread_{};
  pid_t owner_ = 0;
  UniqueFd epoll_;
  UniqueFd wakeup_;  // eventfd
  UniqueFd timer_;   // timerfd

  std::mutex mu_;
  std::condition_variable idle_;                 // running_fd_ changed
  std::map<int, Watched> callbacks_;             // guarded by mu_
  std::uint32_t last_serial_ = 0;                // guarded by mu_
  std::vector<std::function<void()>> queue_;     // guarded by mu_
  std::shared_ptr<std::function<bool()>> tick_;  // guarded by mu_
  std::chrono::nanoseconds tick_period_{};       // guarded by mu_
  int running_fd_ = -1;                          // guarded by mu_: whose callback runs now
  bool stopping_ = false;                        // guarded by mu_
};

}  // namespace orrery
