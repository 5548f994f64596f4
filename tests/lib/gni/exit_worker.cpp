// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <cstdio>
#include <string>
#include <thread>

#include <unistd.h>

// A client that ends while its threads are in calls that wait. argv[1]: how it ends; argv[2]: after how many
// microseconds.
namespace {

struct Waiters {
  client::Domain* domain;
  gni_cq_handle_t queue;
};
Waiters g_waiters;

void wait_in(int which) {
  for (;;) {
    gni_cq_entry_t event = 0;
    std::uint32_t found = 0;
    std::uint64_t name = 0;
    switch (which % 4) {
      case 0:
        (void)GNI_CqVectorMonitor(&g_waiters.queue, 1, UINT64_MAX, &found);
        break;
      case 1:
        (void)GNI_CqWaitEvent(g_waiters.queue, UINT64_MAX, &event);
        break;
      case 2:
        (void)GNI_CqVectorWaitEvent(&g_waiters.queue, 1, 1, &event, &found);
        break;
      default:
        (void)GNI_PostdataProbeWaitById(g_waiters.domain->nic, UINT32_MAX, &name);
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  g_waiters.domain = new client::Domain;  // never ended
  g_waiters.queue = g_waiters.domain->queue(16, GNI_CQ_BLOCKING);
  for (int i = 0; i < 8; ++i) std::thread(wait_in, i).detach();
  usleep(static_cast<useconds_t>(std::stoul(argv[2])));
  if (how == "exit") std::exit(0);
  if (how == "_exit" || how == "quick_exit") PMI_Finalize();
  if (how == "_exit") _exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  return how == "return" ? 0 : 2;
}
