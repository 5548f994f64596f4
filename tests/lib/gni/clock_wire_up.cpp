// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The part of clock_worker that connects as a message-passing runtime does: by an engine that looks for
// datagrams in every eighth of its rounds, counted from wherever the launcher let it go.
#include "tests/lib/gni/clock_world.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <thread>

namespace clock_worker {

namespace {

constexpr std::uint64_t kName = 7;

class Engine {
 public:
  Engine(World& w, gni_ep_handle_t post) : w_(w), post_(post) {
    BENCH_REQUIRE(GNI_EpPostDataWId(post_, nullptr, 0, nullptr, 0, kName));
  }
  // In which of its rounds it looks for datagrams: where the number divides by eight.
  void set_round(int number) { round_ = number; }
  bool met() const { return met_; }
  void round() {
    if (round_++ % 8 == 0) look_for_datagram();
    gni_cq_entry_t event = 0;
    if (GNI_CqGetEvent(w_.target, &event) == GNI_RC_SUCCESS) tell("a put");
    (void)w_.reap_one();
  }
  // Until a flag is set that is not the NIC's.
  void wait_outside() {
    std::atomic<bool> there{false};
    std::thread other([&] {
      sleep_really_us(50'000);
      there = true;
    });
    while (!there) round();
    other.join();
  }

 private:
  void look_for_datagram() {
    std::uint64_t name = 0;
    if (GNI_PostDataProbeById(w_.session.nic, &name) != GNI_RC_SUCCESS) return;
    std::uint32_t address = 0, peer = 0;
    gni_post_state_t state{};
    BENCH_REQUIRE(GNI_EpPostDataTestById(post_, name, &state, &address, &peer));
    if (state != GNI_POST_COMPLETED) return;
    met_ = true;
    tell("a datagram");
  }
  void tell(const char* what) const {
    if (w_.rank() == 1) std::printf("at %" PRId64 " ns: %s\n", now_ns(), what);
  }

  World& w_;
  const gni_ep_handle_t post_;
  int round_ = 1;
  bool met_ = false;
};

}  // namespace

void wire_up(World& w, int round) {
  gni_ep_handle_t any = nullptr;
  BENCH_REQUIRE(GNI_EpCreate(w.session.nic, w.source, &any));
  {
    Engine engine(w, any);
    engine.wait_outside();
    PMI_Barrier();
    if (w.rank() == 0) {
      // The datagram, and then a put, long before the peer looks for either.
      const gni_ep_handle_t to_peer = w.session.endpoint(1, w.source);
      BENCH_REQUIRE(GNI_EpPostDataWId(to_peer, nullptr, 0, nullptr, 0, kName + 1));
      auto pd = w.put(1, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
      w.post(1, pd);
      w.reap();
      std::uint32_t address = 0, peer = 0;
      gni_post_state_t state{};
      BENCH_REQUIRE(GNI_EpPostDataWaitById(to_peer, kName + 1, 1000, &state, &address, &peer));
      // What the program ends itself it sees at once.
      BENCH_REQUIRE(GNI_EpPostDataCancelById(any, kName));
      BENCH_REQUIRE(GNI_EpPostDataTestById(any, kName, &state, &address, &peer));
      std::printf("cancelled: %s\n", state == GNI_POST_TERMINATED ? "terminated" : "another state");
    } else {
      usleep(100);
      engine.set_round(round);
      while (!engine.met()) engine.round();
    }
  }
  PMI_Barrier();
}

}  // namespace clock_worker
