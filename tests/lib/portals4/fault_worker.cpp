// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// fault_worker, two PEs: PE 1 dies in the middle of a put, by a page of its own that cannot be read. PE 0
// stops the portal, hears of the message's end, and finds nothing left of it: its entry and its portal can
// go.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pmi.h>
#include <portals4.h>
#include <sys/mman.h>

namespace {

constexpr ptl_pt_index_t kPortal = 4;
constexpr ptl_size_t kPage = 4096;
constexpr auto kLimit = std::chrono::seconds(80);

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

void* two_pages() {
  void* const pages = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(pages != MAP_FAILED, "no memory");
  std::memset(pages, 'x', 2 * kPage);
  return pages;
}

// Until a put goes by the mapping of the target's memory, where the page that cannot be read kills this
// process: a copy by the kernel fails, and the target is asked to move its memory meanwhile.
[[noreturn]] void die_in_a_put(ptl_handle_ni_t ni, ptl_process_t target) {
  void* const pages = two_pages();
  require(mprotect(static_cast<char*>(pages) + kPage, kPage, PROT_NONE) == 0, "mprotect");
  ptl_handle_eq_t queue{};
  require(PtlEQAlloc(ni, 64, &queue) == PTL_OK, "PtlEQAlloc");
  const ptl_md_t md{pages, 2 * kPage, PTL_MD_EVENT_SEND_DISABLE, queue, PTL_CT_NONE};
  ptl_handle_md_t memory{};
  require(PtlMDBind(ni, &md, &memory) == PTL_OK, "PtlMDBind");
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (std::chrono::steady_clock::now() < end) {
    for (const ptl_size_t bytes : {kPage, 2 * kPage}) {
      require(PtlPut(memory, 0, bytes, PTL_ACK_REQ, target, kPortal, 1, 0, nullptr, 0) == PTL_OK, "PtlPut");
      ptl_event_t event{};
      require(PtlEQWait(queue, &event) == PTL_OK, "PtlEQWait");
    }
  }
  require(false, "no put went by the mapping");
  std::_Exit(1);
}

}  // namespace

int main() {
  int spawned = 0;
  int rank = 0;
  PMI_Init(&spawned);
  PMI_Get_rank(&rank);
  require(PtlInit() == PTL_OK, "PtlInit");
  ptl_handle_ni_t ni{};
  require(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr,
                    &ni) == PTL_OK,
          "PtlNIInit");
  ptl_handle_eq_t queue{};
  ptl_pt_index_t index = 0;
  require(PtlEQAlloc(ni, 4096, &queue) == PTL_OK, "PtlEQAlloc");
  require(PtlPTAlloc(ni, 0, queue, kPortal, &index) == PTL_OK, "PtlPTAlloc");
  ptl_me_t me{};
  me.start = two_pages();
  me.length = 2 * kPage;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  // A failure is told all the same.
  me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE;
  me.match_id.phys.nid = PTL_NID_ANY;
  me.match_id.phys.pid = PTL_PID_ANY;
  me.match_bits = 1;
  ptl_handle_me_t entry{};
  require(PtlMEAppend(ni, kPortal, &me, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK, "PtlMEAppend");
  struct Card {
    int rank;
    ptl_process_t id;
  } mine{rank, {}}, all[2];
  require(PtlGetPhysId(ni, &mine.id) == PTL_OK, "PtlGetPhysId");
  PMI_Allgather(&mine, all, sizeof mine);
  PMI_Barrier();
  if (rank == 1) die_in_a_put(ni, all[all[0].rank == 0 ? 0 : 1].id);

  const auto end = std::chrono::steady_clock::now() + kLimit;
  for (bool told = false; !told;) {
    require(std::chrono::steady_clock::now() < end, "the message of a process that has died did not end");
    require(PtlPTDisable(ni, kPortal) == PTL_OK, "PtlPTDisable");
    ptl_event_t event{};
    while (!told && PtlEQGet(queue, &event) == PTL_OK) told = event.ni_fail_type == PTL_NI_UNDELIVERABLE;
    if (!told) require(PtlPTEnable(ni, kPortal) == PTL_OK, "PtlPTEnable");
  }
  require(PtlMEUnlink(entry) == PTL_OK, "PtlMEUnlink");
  require(PtlPTFree(ni, kPortal) == PTL_OK, "PtlPTFree");
  std::printf("PE 0 went on\n");
  std::fflush(stdout);
  std::_Exit(0);
}
