// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include <pthread.h>
#include <unistd.h>

// A client that ends while its threads are in calls that wait. argv[1]: how it ends; argv[2]: after how many
// microseconds. With a second PE, the first one puts to it before it ends, and the second one counts events.
namespace {

constexpr int kKinds = 7;
constexpr std::uint32_t kPuts = 500;

struct Waiters {
  client::Domain* domain;
  gni_cq_handle_t queue;
  gni_ep_handle_t endpoint;  // with a datagram that is never answered
  gni_err_handle_t errors;
  gni_comp_chan_handle_t channel;
};
Waiters g_waiters;

void wait_in(int which) {
  for (;;) {
    gni_cq_entry_t event = 0;
    std::uint32_t found = 0, instance = 0;
    std::uint64_t name = 0;
    gni_post_state_t state = GNI_POST_PENDING;
    gni_error_event_t error{};
    gni_cq_handle_t ready = nullptr;
    switch (which % kKinds) {
      case 0:
        (void)GNI_CqVectorMonitor(&g_waiters.queue, 1, UINT64_MAX, &found);
        break;
      case 1:
        (void)GNI_CqWaitEvent(g_waiters.queue, UINT64_MAX, &event);
        break;
      case 2:
        (void)GNI_CqVectorWaitEvent(&g_waiters.queue, 1, 1, &event, &found);
        break;
      case 3:
        (void)GNI_PostdataProbeWaitById(g_waiters.domain->nic, UINT32_MAX, &name);
        break;
      case 4:
        (void)GNI_EpPostDataWaitById(g_waiters.endpoint, 1, UINT32_MAX, &state, &found, &instance);
        break;
      case 5:
        (void)GNI_WaitErrorEvents(g_waiters.errors, &error, 1, UINT32_MAX, &found);
        break;
      default:
        (void)GNI_CompChanGetEvent(g_waiters.channel, &ready);
        break;
    }
  }
}

void begin_waiting() {
  g_waiters.domain = new client::Domain;  // never ended
  const client::Domain& domain = *g_waiters.domain;
  g_waiters.queue = domain.queue(16, GNI_CQ_BLOCKING);
  static char out[8], in[8];
  g_waiters.endpoint = domain.endpoint(g_waiters.queue, domain.address, 77);
  REQUIRE_SUCCESS(GNI_EpPostDataWId(g_waiters.endpoint, out, sizeof out, in, sizeof in, 1));
  REQUIRE_SUCCESS(GNI_SubscribeErrors(domain.nic, 0, GNI_ERRMASK_CORRECTABLE_MEMORY, 16, &g_waiters.errors));
  REQUIRE_SUCCESS(GNI_CompChanCreate(domain.nic, &g_waiters.channel));
  for (int i = 0; i < 2 * kKinds; ++i) std::thread(wait_in, i).detach();
}

// The first PE puts without waiting for its own events: what it posted is in the other's queue all the same.
bool exchange() {
  const client::Pmi& pmi = client::Pmi::get();
  if (pmi.size < 2) return true;
  static std::uint64_t words[kPuts], values[kPuts];
  struct Card {
    std::uint32_t address, instance;
    std::uint64_t memory;
    gni_mem_handle_t handle;
  };
  const client::Domain& domain = *g_waiters.domain;
  const gni_cq_handle_t arrivals = domain.queue(kPuts);
  const Card own{domain.address, domain.instance, client::address_of(words),
                 domain.memory(words, sizeof words, arrivals)};
  const auto cards = pmi.gather(own);
  if (pmi.rank == 0) {
    const gni_cq_handle_t local = domain.queue(kPuts);
    const gni_ep_handle_t ep = domain.endpoint(local, cards[1].address, cards[1].instance);
    static gni_post_descriptor_t posts[kPuts];
    for (std::uint32_t i = 0; i < kPuts; ++i) {
      values[i] = i + 1;
      posts[i] = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
      posts[i].local_addr = client::address_of(&values[i]);
      posts[i].remote_addr = cards[1].memory + 8 * i;
      posts[i].remote_mem_hndl = cards[1].handle;
      posts[i].length = 8;
      gni_return_t rc = GNI_RC_ERROR_RESOURCE;
      gni_cq_entry_t event = 0;
      while ((rc = GNI_PostFma(ep, &posts[i])) == GNI_RC_ERROR_RESOURCE) (void)GNI_CqGetEvent(local, &event);
      REQUIRE_SUCCESS(rc);
    }
    return true;
  }
  for (std::uint32_t i = 0; i < kPuts; ++i) {
    gni_cq_entry_t event = 0;
    if (client::next_event(arrivals, &event) != GNI_RC_SUCCESS) {
      std::fprintf(stderr, "%u of %u events came\n", i, kPuts);
      return false;
    }
  }
  for (std::uint32_t i = 0; i < kPuts; ++i)
    if (words[i] != i + 1) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  if (how == "last_thread") {
    // The process ends with its last thread, which calls nothing.
    const auto* const domain = new client::Domain;  // never ended
    // Nor does the thread of a channel keep it.
    gni_comp_chan_handle_t channel = nullptr;
    gni_cq_handle_t queue = domain->queue(16, GNI_CQ_BLOCKING);
    REQUIRE_SUCCESS(GNI_CompChanCreate(domain->nic, &channel));
    REQUIRE_SUCCESS(GNI_CqAttachCompChan(queue, channel));
    REQUIRE_SUCCESS(GNI_CqArmCompChan(&queue, 1));
    std::thread([] { usleep(20'000); }).detach();
    pthread_exit(nullptr);
  }
  if (how == "join") {
    const auto* const domain = new client::Domain;  // never ended
    gni_msgq_attr_t attrs{64, 8, 64, 1, 2, 0, 64};
    gni_msgq_handle_t queue = nullptr;
    const auto ignore = [](std::uint32_t, std::uint32_t, void*, std::uint8_t, void*) { return 1; };
    (void)GNI_MsgqInit(domain->nic, ignore, nullptr, nullptr, &attrs, &queue);
  }
  if (how == "gone") {
    // Two PEs: the second one has ended when the first one asks for it, again and again.
    const auto* const domain = new client::Domain;  // never ended
    const client::Pmi& pmi = client::Pmi::get();
    struct Card {
      std::uint32_t address, instance;
      int pid;
    };
    const auto cards = pmi.gather(Card{domain->address, domain->instance, getpid()});
    if (pmi.rank == 1) _exit(0);
    const Card& other = cards.at(1);
    while (kill(other.pid, 0) == 0) usleep(1000);
    gni_ep_handle_t ep = domain->endpoint(domain->queue(16), other.address, other.instance);
    char word[8] = "";
    for (int i = 0; i < 20; ++i) {
      if (GNI_EpPostData(ep, word, sizeof word, word, sizeof word) != GNI_RC_SUCCESS) continue;
      gni_post_state_t state = GNI_POST_PENDING;
      std::uint32_t address = 0, instance = 0;
      (void)GNI_EpPostDataWait(ep, 10, &state, &address, &instance);
    }
    _exit(0);
  }
  begin_waiting();
  if (!exchange()) _exit(3);
  if (client::Pmi::get().size > 1 && client::Pmi::get().rank == 1) {
    PMI_Finalize();
    _exit(0);
  }
  usleep(static_cast<useconds_t>(std::stoul(argv[2])));
  if (how == "stay") {
    gni_cq_entry_t event = 0;
    (void)GNI_CqWaitEvent(g_waiters.queue, UINT64_MAX, &event);
  }
  if (how == "exit") std::exit(0);
  if (how != "return") PMI_Finalize();
  if (how == "_exit") _exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "exit_of_a_thread") {
    std::thread([] { std::exit(0); }).detach();
    for (;;) pause();
  }
  if (how == "thread_exit_of_main") {
    std::thread([] {
      usleep(1000);
      std::exit(0);
    }).detach();
    pthread_exit(nullptr);
  }
  if (how == "exit_in_a_signal") {
    std::signal(SIGTERM, [](int) { std::exit(0); });
    raise(SIGTERM);
  }
  if (how == "killed_by_a_signal") raise(SIGTERM);
  return how == "return" ? 0 : 2;
}
