// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/session.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Short messages and datagrams between two PEs.
namespace bench {

namespace {

constexpr std::uint16_t kCredits = 128;
constexpr std::uint32_t kMaxBytes = 1024;
constexpr int kWindow = 64;

// Two PEs with a mailbox each. `with_events`: both queues hear of every message, and are read.
struct Connection {
  gni_ep_handle_t ep = nullptr;
  gni_cq_handle_t sent = nullptr;
  gni_cq_handle_t arrived = nullptr;

  Connection(Session& session, bool with_events) {
    if (with_events) {
      sent = session.queue(1024);
      arrived = session.queue(1024);
    }
    gni_smsg_attr_t mine;
    std::memset(&mine, 0, sizeof mine);
    mine.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
    mine.mbox_maxcredit = kCredits;
    mine.msg_maxsize = kMaxBytes;
    BENCH_REQUIRE(GNI_SmsgBufferSizeNeeded(&mine, &mine.buff_size));
    const std::size_t bytes = (mine.buff_size + 4095U) / 4096 * 4096;
    mine.msg_buffer = std::aligned_alloc(4096, bytes);
    std::memset(mine.msg_buffer, 0, bytes);
    mine.mem_hndl = session.registered(mine.msg_buffer, bytes, arrived);
    auto theirs = all_gather(mine, session.rank, session.size)[static_cast<std::size_t>(1 - session.rank)];
    ep = session.endpoint(1 - session.rank, sent);
    BENCH_REQUIRE(GNI_SmsgInit(ep, &mine, &theirs));
    // Until both mailboxes have moved into the memory file.
    for (int i = 0; i < 200; ++i) {
      send(1);
      receive(1);
      const timespec nap{0, 500'000};
      nanosleep(&nap, nullptr);
    }
    PMI_Barrier();
  }

  void send(int count) {
    std::uint64_t value = 5;
    for (int i = 0; i < count; ++i) {
      while (GNI_SmsgSend(ep, &value, sizeof value, nullptr, 0, 1) != GNI_RC_SUCCESS) {
      }
      if (sent != nullptr) take(sent);
    }
  }
  void receive(int count) {
    for (int i = 0; i < count; ++i) {
      void* header = nullptr;
      if (arrived != nullptr) take(arrived);
      while (GNI_SmsgGetNext(ep, &header) != GNI_RC_SUCCESS) {
      }
      sum += *static_cast<std::uint64_t*>(header);
      GNI_SmsgRelease(ep);
    }
  }
  static void take(gni_cq_handle_t queue) {
    gni_cq_entry_t event = 0;
    while (GNI_CqGetEvent(queue, &event) == GNI_RC_NOT_DONE) {
    }
  }
  std::uint64_t sum = 0;
};

// Both post and look until they have met.
double exchange(Stage& stage, Session& session) {
  const gni_ep_handle_t ep = session.endpoint(1 - session.rank, nullptr);
  const auto meet = [&](int n) {
    for (int i = 0; i < n; ++i) {
      std::uint64_t in = 0;
      std::uint64_t out = 1;
      BENCH_REQUIRE(GNI_EpPostData(ep, &in, sizeof in, &out, sizeof out));
      gni_post_state_t state = GNI_POST_PENDING;
      std::uint32_t address = 0;
      std::uint32_t id = 0;
      while (state != GNI_POST_COMPLETED) BENCH_REQUIRE(GNI_EpPostDataTest(ep, &state, &address, &id));
    }
  };
  const double ns = median(stage.run(32, kTestMs, 1, meet, meet));
  BENCH_REQUIRE(GNI_EpDestroy(ep));
  return ns;
}

}  // namespace

void measure_messages(int repetitions) {
  Session session;
  Stage stage(session.rank);
  pin(session.rank);
  Connection silent(session, false);
  Connection events(session, true);
  for (int i = 0; i < repetitions; ++i) {
    double raw = stage.raw_half_round_trip(kRawMs);
    row(session.rank, "smsg8_memory_polled", half_round_trip(stage, silent, kTestMs), raw);
    raw = stage.raw_half_round_trip(kRawMs);
    row(session.rank, "smsg8_window_64", window(stage, silent, kWindow, kTestMs), raw);
    raw = stage.raw_half_round_trip(kRawMs);
    row(session.rank, "smsg8_event_polled", half_round_trip(stage, events, kTestMs), raw);
    row(session.rank, "datagram_exchange_us", exchange(stage, session) / 1000, 1);
  }
}

}  // namespace bench
