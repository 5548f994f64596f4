// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A PE that is stopped for seconds on a busy machine, while another one sends it more events than its queue
// holds: the queue has those that it had room for, in order, and says of each later one that it was lost.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <cstddef>
#include <ctime>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::uint32_t kDepth = 64;
constexpr std::uint32_t kPuts = 300;
constexpr std::uint32_t kFirst = 5000;  // event data of the first
constexpr time_t kStoppedSeconds = 3;

// Processes that keep every core busy until the end.
class Load {
 public:
  Load() {
    for (pid_t& pid : spinners_) {
      const pid_t parent = getpid();
      pid = fork();
      if (pid != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (getppid() == parent) {
        for (int i = 0; i < 1'000'000; ++i) asm volatile("");
      }
      _exit(0);
    }
  }
  ~Load() {
    for (const pid_t pid : spinners_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::array<pid_t, 2> spinners_{};
};

struct Card {
  pid_t pid;
  std::uint32_t nic_address;
  std::uint64_t address;
  gni_mem_handle_t handle;
};

TEST(StoppedEvents, WhatTheQueueHasRoomForIsThereAndTheRestIsSaidToBeLost) {
  const client::Pmi& pmi = client::Pmi::get();
  const client::Domain domain(0, 100);
  alignas(64) static std::array<std::uint64_t, 512> target{};
  alignas(64) static std::array<std::uint64_t, 512> source{};
  const gni_cq_handle_t events = domain.queue(kDepth);
  const gni_cq_handle_t sources = domain.queue(1024);
  const gni_mem_handle_t local = domain.memory(source.data(), sizeof source);
  const Card mine{getpid(), domain.address, address_of(target.data()),
                  domain.memory(target.data(), sizeof target, events)};
  const Card peer = pmi.gather(mine)[static_cast<std::size_t>(1 - pmi.rank)];
  const gni_ep_handle_t endpoint =
      domain.endpoint(sources, peer.nic_address, 100 + static_cast<std::uint32_t>(1 - pmi.rank));
  std::vector<gni_post_descriptor_t> puts(kPuts);
  std::uint32_t posted = 0;
  std::uint32_t done = 0;
  // False: there is no room for another one now.
  const auto post_next = [&] {
    source[posted] = posted + 1;
    REQUIRE_SUCCESS(GNI_EpSetEventData(endpoint, posted, kFirst + posted));
    gni_post_descriptor_t& d = puts[posted];
    d = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    d.local_addr = address_of(&source[posted]);
    d.local_mem_hndl = local;
    d.remote_addr = peer.address + posted * sizeof source[0];
    d.remote_mem_hndl = peer.handle;
    d.length = sizeof source[0];
    const gni_return_t rc = GNI_PostFma(endpoint, &d);
    if (rc == GNI_RC_ERROR_RESOURCE) return false;
    EXPECT_EQ(rc, GNI_RC_SUCCESS);
    ++posted;
    return true;
  };
  const auto reap = [&](bool wait) {
    gni_cq_entry_t event = 0;
    const gni_return_t rc = wait ? next_event(sources, &event) : GNI_CqGetEvent(sources, &event);
    if (rc == GNI_RC_NOT_DONE) return false;
    EXPECT_EQ(rc, GNI_RC_SUCCESS);
    gni_post_descriptor_t* completed = nullptr;
    EXPECT_EQ(GNI_GetCompleted(sources, event, &completed), GNI_RC_SUCCESS);
    ++done;
    return true;
  };
  // The connection stands before, whatever the path.
  if (pmi.rank == 0) {
    ASSERT_TRUE(post_next());
    while (done < 1) ASSERT_TRUE(reap(true));
  }
  pmi.barrier();
  if (pmi.rank == 1) {
    ASSERT_EQ(raise(SIGSTOP), 0);
  } else {
    const Load load;
    usleep(100'000);
    const std::time_t until = std::time(nullptr) + kStoppedSeconds;
    while (std::time(nullptr) < until) {
      while (posted < kPuts && post_next()) {
      }
      while (reap(false)) {
      }
      usleep(1000);
    }
    // Not before it has stopped: SIGCONT is sent until all is done.
    const std::time_t give_up = std::time(nullptr) + 60;
    while (done < kPuts && std::time(nullptr) < give_up) {
      ASSERT_EQ(kill(peer.pid, SIGCONT), 0);
      while (posted < kPuts && post_next()) {
      }
      while (reap(false)) {
      }
      usleep(1000);
    }
    EXPECT_EQ(done, kPuts);
  }
  if (pmi.rank == 0) {
    // Its barrier needs it to run.
    for (int i = 0; i < 100; ++i) {
      kill(peer.pid, SIGCONT);
      usleep(1000);
    }
  }
  pmi.barrier();
  if (pmi.rank == 1) {
    gni_cq_entry_t event = 0;
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      ASSERT_EQ(next_event(events, &event), GNI_RC_SUCCESS) << i;
      EXPECT_EQ(GNI_CQ_GET_REM_INST_ID(event), kFirst + i) << "lost, or out of order";
    }
    for (std::uint32_t i = kDepth; i < kPuts; ++i) {
      ASSERT_EQ(next_event(events, &event), GNI_RC_ERROR_RESOURCE) << i;
      EXPECT_NE(GNI_CQ_OVERRUN(event), 0U);
    }
    EXPECT_EQ(GNI_CqGetEvent(events, &event), GNI_RC_NOT_DONE);
    for (std::uint32_t i = 0; i < kPuts; ++i) EXPECT_EQ(target[i], i + 1) << "data are never lost";
  }
  pmi.barrier();
}

}  // namespace
