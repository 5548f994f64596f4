// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <cstdio>

#include <sys/syscall.h>
#include <unistd.h>

// A job of two PEs of which the second one is another user's. Each puts to the other one a thousand times,
// and is refused every time.
int main() {
  constexpr unsigned kNobody = 65534;
  const char* const rank = std::getenv("PMI_RANK");
  if (rank != nullptr && std::string_view(rank) == "1" &&
      syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0)
    return 77;
  const auto& pmi = client::Pmi::get();
  client::Domain domain;
  const gni_cq_handle_t queue = domain.queue(64);
  static std::uint64_t words[8];
  struct Card {
    std::uint32_t address, instance;
    gni_mem_handle_t handle;
    std::uint64_t at;
  };
  const auto cards = pmi.gather(
      Card{domain.address, domain.instance, domain.memory(words, sizeof words), client::address_of(words)});
  const Card& other = cards[pmi.rank == 0 ? 1 : 0];
  const gni_ep_handle_t endpoint = domain.endpoint(queue, other.address, other.instance);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    gni_post_descriptor_t d = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = client::address_of(&words[1]);
    d.local_mem_hndl = cards[static_cast<std::size_t>(pmi.rank)].handle;
    d.remote_addr = other.at;
    d.remote_mem_hndl = other.handle;
    d.length = 8;
    gni_return_t rc = GNI_PostFma(endpoint, &d);
    gni_cq_entry_t event = 0;
    if (rc == GNI_RC_SUCCESS) rc = client::next_event(queue, &event);
    refused += rc != GNI_RC_SUCCESS;
  }
  pmi.barrier();
  std::printf("refused %d\n", refused);
  return refused == 1000 ? 0 : 1;
}
