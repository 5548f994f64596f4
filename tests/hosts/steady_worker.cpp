// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Two PEs that work on each other's memory and check every byte and every event against what a sequential
// model says. Usage:
//   steady_worker count N [S M]    N rounds, or as many as go in S seconds but at least M; all must be right
//   steady_worker seconds S        the same for so long
//   steady_worker killed R [FILE]  PE R kills itself; the other one goes on until an operation fails, and
//                                  says, also in FILE, that it did
//   steady_worker severed 0        until an operation fails, whatever may be the cause
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>

#include <gni_pub.h>
#include <pmi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace {

int g_rank = -1;

#define MUST(condition)                                                                     \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", g_rank, __FILE__, __LINE__, #condition); \
      PMI_Abort(1, "steady_worker");                                                        \
    }                                                                                       \
  } while (false)

struct Card {
  int rank;
  std::uint32_t nic;
  std::uint64_t address;
  gni_mem_handle_t handle;
};

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kUnderWay = 48;              // puts and as many adds of a batch
constexpr std::size_t kPart = kBlock / kUnderWay;  // of the block, each put's own

// What the peer works on.
struct alignas(64) Shared {
  std::uint64_t counter;
  std::uint64_t pad[7];
  unsigned char block[kBlock];
};

Shared g_mine;
struct {
  std::uint64_t old;
  std::uint64_t olds[kUnderWay];
  unsigned char out[kBlock];
  unsigned char in[kBlock];
} g_local;

gni_nic_handle_t g_nic;
gni_cq_handle_t g_sources;
gni_cq_handle_t g_arrivals;
gni_ep_handle_t g_endpoint;

// Waits for the post's event; false when it ended in an error.
bool finish(gni_post_descriptor_t* post) {
  gni_cq_entry_t event = 0;
  gni_return_t rc = GNI_RC_NOT_DONE;
  while ((rc = GNI_CqGetEvent(g_sources, &event)) == GNI_RC_NOT_DONE) sched_yield();
  MUST(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
  gni_post_descriptor_t* done = nullptr;
  const gni_return_t completed = GNI_GetCompleted(g_sources, event, &done);
  MUST(done == post);
  return rc == GNI_RC_SUCCESS && completed == GNI_RC_SUCCESS;
}

gni_post_descriptor_t describe(gni_post_type_t type, void* local, std::uint64_t remote,
                               gni_mem_handle_t handle, std::uint64_t length) {
  gni_post_descriptor_t post{};
  post.type = type;
  post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
  post.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
  post.local_addr = reinterpret_cast<std::uint64_t>(local);
  post.remote_addr = remote;
  post.remote_mem_hndl = handle;
  post.length = length;
  return post;
}

// One round: add to the peer's counter, put a block with an event, get it back.
bool round(std::uint64_t number, const Card& peer, gni_mem_handle_t local) {
  auto add = describe(GNI_POST_AMO, &g_local.old, peer.address, peer.handle, 8);
  add.local_mem_hndl = local;
  add.amo_cmd = GNI_FMA_ATOMIC_FADD;
  add.first_operand = 1;
  MUST(GNI_PostFma(g_endpoint, &add) == GNI_RC_SUCCESS);
  if (!finish(&add)) return false;
  MUST(g_local.old == number);
  const std::size_t length = 1 + number * 37 % kBlock;
  for (std::size_t i = 0; i < length; ++i)
    g_local.out[i] = static_cast<unsigned char>(number * 131 + i * 7 + static_cast<unsigned>(g_rank));
  const std::uint64_t block = peer.address + offsetof(Shared, block);
  auto put = describe(GNI_POST_FMA_PUT, g_local.out, block, peer.handle, length);
  put.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
  MUST(GNI_PostFma(g_endpoint, &put) == GNI_RC_SUCCESS);
  if (!finish(&put)) return false;
  auto get = describe(GNI_POST_RDMA_GET, g_local.in, block, peer.handle, kBlock);
  get.local_mem_hndl = local;
  MUST(GNI_PostRdma(g_endpoint, &get) == GNI_RC_SUCCESS);
  if (!finish(&get)) return false;
  MUST(std::memcmp(g_local.in, g_local.out, length) == 0);
  return true;
}

// A batch: puts of random lengths into parts of the peer's block and additions to its counter, all under way
// together, then the whole block back, which must be what the model says. `counted`: additions so far.
void batch(std::mt19937_64& random, std::uint64_t counted, const Card& peer, gni_mem_handle_t local,
           unsigned char* model) {
  gni_post_descriptor_t puts[kUnderWay];
  gni_post_descriptor_t adds[kUnderWay];
  const std::uint64_t block = peer.address + offsetof(Shared, block);
  for (std::size_t i = 0; i < kUnderWay; ++i) {
    const std::size_t at = i * kPart;
    const std::size_t length = 1 + random() % kPart;
    for (std::size_t k = 0; k < length; ++k) model[at + k] = static_cast<unsigned char>(random());
    std::memcpy(g_local.out + at, model + at, length);
    puts[i] = describe(GNI_POST_FMA_PUT, g_local.out + at, block + at, peer.handle, length);
    puts[i].cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    adds[i] = describe(GNI_POST_AMO, &g_local.olds[i], peer.address, peer.handle, 8);
    adds[i].local_mem_hndl = local;
    adds[i].amo_cmd = GNI_FMA_ATOMIC_FADD;
    adds[i].first_operand = 1;
    for (gni_post_descriptor_t* const post : {&puts[i], &adds[i]}) {
      gni_return_t rc = GNI_RC_SUCCESS;
      while ((rc = GNI_PostFma(g_endpoint, post)) == GNI_RC_ERROR_RESOURCE) sched_yield();
      MUST(rc == GNI_RC_SUCCESS);
    }
  }
  for (std::size_t i = 0; i < 2 * kUnderWay; ++i) {
    gni_cq_entry_t event = 0;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_CqGetEvent(g_sources, &event)) == GNI_RC_NOT_DONE) sched_yield();
    MUST(rc == GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    MUST(GNI_GetCompleted(g_sources, event, &done) == GNI_RC_SUCCESS);
  }
  // One stream: in the order in which they were posted.
  for (std::size_t i = 0; i < kUnderWay; ++i) MUST(g_local.olds[i] == counted + i);
  auto get = describe(GNI_POST_RDMA_GET, g_local.in, block, peer.handle, kBlock);
  get.local_mem_hndl = local;
  MUST(GNI_PostRdma(g_endpoint, &get) == GNI_RC_SUCCESS);
  MUST(finish(&get));
  MUST(std::memcmp(g_local.in, model, kUnderWay * kPart) == 0);
}

std::uint64_t events_that_came() {
  std::uint64_t count = 0;
  gni_cq_entry_t event = 0;
  while (GNI_CqGetEvent(g_arrivals, &event) == GNI_RC_SUCCESS) ++count;
  return count;
}

// One line more in the file that STEADY_STARTED names, if it names one: the first round is over.
void say_started() {
  const char* const name = std::getenv("STEADY_STARTED");
  std::FILE* const started = name == nullptr ? nullptr : std::fopen(name, "a");
  if (started == nullptr) return;
  std::fprintf(started, "rank %d\n", g_rank);
  std::fclose(started);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(
        stderr, "usage: steady_worker count N [S M] | seconds S | soak S | killed RANK [FILE] | severed 0\n");
    return 2;
  }
  const std::string mode = argv[1];
  const auto amount = static_cast<std::uint64_t>(std::strtoull(argv[2], nullptr, 10));
  int spawned = 0;
  int size = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return 1;
  PMI_Get_rank(&g_rank);
  PMI_Get_size(&size);
  MUST(size == 2);
  const auto ptag = static_cast<std::uint8_t>(std::atoi(std::getenv("PMI_GNI_PTAG")));
  const auto cookie = static_cast<std::uint32_t>(std::strtoul(std::getenv("PMI_GNI_COOKIE"), nullptr, 10));
  gni_cdm_handle_t cdm = nullptr;
  Card card{};
  card.rank = g_rank;
  card.address = reinterpret_cast<std::uint64_t>(&g_mine);
  MUST(GNI_CdmCreate(static_cast<std::uint32_t>(g_rank), ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm) ==
       GNI_RC_SUCCESS);
  MUST(GNI_CdmAttach(cdm, 0, &card.nic, &g_nic) == GNI_RC_SUCCESS);
  MUST(GNI_CqCreate(g_nic, 1024, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &g_sources) == GNI_RC_SUCCESS);
  MUST(GNI_CqCreate(g_nic, 1u << 20, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &g_arrivals) == GNI_RC_SUCCESS);
  MUST(GNI_MemRegister(g_nic, card.address, sizeof g_mine, g_arrivals, GNI_MEM_READWRITE, -1, &card.handle) ==
       GNI_RC_SUCCESS);
  gni_mem_handle_t local{};
  MUST(GNI_MemRegister(g_nic, reinterpret_cast<std::uint64_t>(&g_local), sizeof g_local, nullptr,
                       GNI_MEM_READWRITE, -1, &local) == GNI_RC_SUCCESS);
  Card cards[2];
  MUST(PMI_Allgather(&card, cards, sizeof card) == PMI_SUCCESS);
  const Card peer = cards[0].rank == g_rank ? cards[1] : cards[0];
  MUST(GNI_EpCreate(g_nic, g_sources, &g_endpoint) == GNI_RC_SUCCESS);
  MUST(GNI_EpBind(g_endpoint, peer.nic, static_cast<std::uint32_t>(peer.rank)) == GNI_RC_SUCCESS);
  MUST(PMI_Barrier() == PMI_SUCCESS);

  const bool by_count = mode == "count";
  const std::uint64_t most_seconds =
      by_count ? argc > 3 ? std::strtoull(argv[3], nullptr, 10) : UINT32_MAX : amount;
  const std::time_t end = std::time(nullptr) + static_cast<std::time_t>(most_seconds);
  std::uint64_t rounds = 0;
  std::uint64_t events = 0;
  if (mode == "killed" || mode == "severed") {
    const bool is_victim = mode == "killed" && g_rank == static_cast<int>(amount);
    // The survivor also speaks through a file: some launchers let nothing through by then.
    constexpr std::uint64_t kBefore = 200;
    while (round(rounds, peer, local)) {
      if (++rounds == 1) say_started();
      if (rounds == kBefore && is_victim) kill(getpid(), SIGKILL);
      (void)events_that_came();
    }
    std::printf("rank %d: operation %llu ended in an error\n", g_rank,
                static_cast<unsigned long long>(rounds));
    std::fflush(stdout);
    if (std::FILE* const said = argc > 3 ? std::fopen(argv[3], "a") : nullptr) {
      std::fprintf(said, "rank %d: operation %llu ended in an error\n", g_rank,
                   static_cast<unsigned long long>(rounds));
      std::fclose(said);
    }
    _exit(0);
  }
  if (mode == "soak") {
    static unsigned char model[kBlock];
    std::mt19937_64 random(static_cast<std::uint64_t>(g_rank) + 1);
    for (; rounds == 0 || std::time(nullptr) < end; rounds += kUnderWay) {
      batch(random, rounds, peer, local, model);
      events += events_that_came();
    }
    std::printf("rank %d: %llu operations\n", g_rank,
                static_cast<unsigned long long>(2 * rounds + rounds / kUnderWay));
  }
  const std::uint64_t least = mode == "soak"         ? 0
                              : by_count && argc > 4 ? std::strtoull(argv[4], nullptr, 10)
                                                     : 1;
  while (rounds < least || (mode != "soak" && (!by_count || rounds < amount) && std::time(nullptr) < end)) {
    MUST(round(rounds, peer, local));
    if (++rounds == 1) say_started();
    events += events_that_came();
  }
  // How far the peer came: it counted here.
  MUST(PMI_Barrier() == PMI_SUCCESS);
  events += events_that_came();
  MUST(events == g_mine.counter);
  std::printf("rank %d: %llu rounds right, %llu events\n", g_rank, static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(events));
  PMI_Finalize();
  return 0;
}
