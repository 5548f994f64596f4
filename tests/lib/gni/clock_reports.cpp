// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The parts of clock_worker that are told of events and errors by other ways than a look at a queue.
#include "tests/lib/gni/clock_world.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clock_worker {

namespace {

// A descriptor is awaited by one of these before the channel event is taken.
void await(int fd, int how) {
  pollfd file{fd, POLLIN, 0};
  if (how == 1) (void)poll(&file, 1, -1);
  if (how == 2) {
    fd_set files;
    FD_ZERO(&files);
    FD_SET(fd, &files);
    (void)select(fd + 1, &files, nullptr, nullptr, nullptr);
  }
  if (how == 3) {
    const int epoll = epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {}};
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    (void)epoll_wait(epoll, &event, 1, 60'000);
    close(epoll);
  }
}

}  // namespace

void channels(World& w, int how) {
  constexpr int kTimes = 20;
  const int peer = 1 - w.rank();
  gni_cq_handle_t queue = nullptr;
  gni_comp_chan_handle_t channel = nullptr;
  int fd = -1;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 64, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
  BENCH_REQUIRE(GNI_CompChanCreate(w.session.nic, &channel));
  BENCH_REQUIRE(GNI_CompChanFd(channel, &fd));
  BENCH_REQUIRE(GNI_CqAttachCompChan(queue, channel));
  if (how == 4) (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  alignas(4096) static std::byte room[4096];
  const bench::Window mine{reinterpret_cast<std::uint64_t>(room),
                           w.session.registered(room, sizeof room, queue)};
  const auto windows = bench::all_gather(mine, w.rank(), w.size());
  PMI_Barrier();
  const std::int64_t start = now_ns();
  for (int i = 0; i < kTimes; ++i) {
    auto pd = bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, w.local,
                                    windows[static_cast<std::size_t>(peer)], 0, 8);
    BENCH_REQUIRE(GNI_CqArmCompChan(&queue, 1));
    if (w.rank() == 0) {
      usleep(300);
      w.post(peer, pd);
    }
    await(fd, how);
    gni_cq_handle_t ready = nullptr;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CompChanGetEvent(channel, &ready)) == GNI_RC_NOT_DONE && how == 4) {
    }
    bench::require(rc, "GNI_CompChanGetEvent");
    gni_cq_entry_t event = 0;
    BENCH_REQUIRE(GNI_CqGetEvent(ready, &event));
    std::printf("PE %d time %d: %" PRId64 " ns\n", w.rank(), i, now_ns() - start);
    if (w.rank() == 1) w.post(peer, pd);
  }
  std::fflush(stdout);
}

void late_sleep(World& w) {
  gni_cq_handle_t queue = nullptr;
  BENCH_REQUIRE(GNI_CqCreate(w.session.nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
  std::thread waits([&] {
    std::uint32_t which = 0;
    BENCH_REQUIRE(GNI_CqVectorMonitor(&queue, 1, UINT64_MAX, &which));
  });
  sleep_really_us(100'000);  // that thread makes time pass now, and looks outside
  const std::int64_t start = now_ns();
  usleep(200'000);
  std::printf("PE %d slept %" PRId64 " us\n", w.rank(), (now_ns() - start) / 1000);
  std::fflush(stdout);
  alignas(4096) static std::byte room[4096];
  const bench::Window mine{reinterpret_cast<std::uint64_t>(room),
                           w.session.registered(room, sizeof room, queue)};
  auto pd = bench::put_descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_REMOTE_EVENT, w.local, mine, 0, 8);
  w.post(w.rank(), pd);
  waits.join();
}

void steps_between_looks(World& w, bool brought) {
  int ends[2];
  BENCH_REQUIRE(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
  pid_t child = -1;
  if (brought && w.rank() == 1) {
    child = fork();
    if (child == 0) {
      sleep_really_us(500'000);
      _exit(write(ends[1], "!", 1) == 1 ? 0 : 1);
    }
    for (char byte = 0; read(ends[0], &byte, 1) != 1;) (void)w.reap_one();
  }
  const int next = (w.rank() + 1) % w.size();
  for (int round = 0; round < 5; ++round) {
    for (int look = 0; look < 600 + 90 * ((w.rank() * 5 + round) % 7); ++look) (void)w.reap_one();
    auto pd = w.put(next, 0, 8, GNI_CQMODE_REMOTE_EVENT);
    w.post(next, pd);
    std::printf("PE %d posts at %" PRId64 "\n", w.rank(), now_ns());
    (void)w.await_remote();
    std::printf("PE %d goes on at %" PRId64 "\n", w.rank(), now_ns());
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

void errors(World& w, bool waits) {
  gni_err_handle_t subscription = nullptr;
  BENCH_REQUIRE(GNI_SubscribeErrors(w.session.nic, 0, 0xff, 0, &subscription));
  const int last = w.size() - 1;
  for (const std::uint16_t events : {std::uint16_t{GNI_CQMODE_GLOBAL_EVENT}, std::uint16_t{0}}) {
    auto pd = w.put(last, 0, 8, events);
    pd.remote_addr += kRoom;  // behind what is registered
    const std::int64_t start = now_ns();
    w.post(last, pd);
    gni_error_event_t error{};
    std::uint32_t found = 1;
    if (waits) {
      BENCH_REQUIRE(GNI_WaitErrorEvents(subscription, &error, 1, 5, &found));
    } else {
      gni_return_t rc = GNI_RC_NOT_DONE;
      while ((rc = GNI_GetErrorEvent(subscription, &error)) == GNI_RC_NOT_DONE) {
      }
      bench::require(rc, "GNI_GetErrorEvent");
    }
    const auto at = static_cast<std::int64_t>(error.timestamp);
    std::printf("PE %d: %u error of code %d, posted %" PRId64 " ns before, stamped %s\n", w.rank(), found,
                error.error_code, now_ns() - start, at >= start && at <= now_ns() ? "then" : "otherwise");
  }
  std::fflush(stdout);
  BENCH_REQUIRE(GNI_ReleaseErrors(subscription));
}

}  // namespace clock_worker
