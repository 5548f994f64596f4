// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What each kind of call of OpenSHMEM takes, in microseconds: PE 0 and PE 1, with the others in the
// collectives. Under a machine's virtual clock the output is the same in every run.
//
//   orrery_shmem_call_times [how often each is called, 200]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <shmem.h>
#include <time.h>

namespace {

std::uint64_t g_times = 200;            // that a call is made
constexpr std::uint64_t kStream = 200;  // calls before one quiet
constexpr std::size_t kLong = 65536;    // bytes of a long transfer
constexpr int kOther = 1;               // whose memory PE 0 works on

struct Memory {
  std::uint64_t flag;
  std::uint64_t word;
  std::uint64_t counter;
  long lock;
  long numbers[2];
  alignas(64) std::byte block[kLong];
};

Memory* g_memory = nullptr;  // symmetric
std::byte* g_local = nullptr;
int g_pe = 0;

double now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

void print(const char* call, double us) {
  if (g_pe == 0) std::printf("%-42s %9.3f\n", call, us);
}

// A step of PE 0; the others wait. `after` ends the steps together; `steps` of them are one call each.
template <typename Step, typename After>
void one_sided(const char* call, std::uint64_t steps, Step step, After after) {
  shmem_barrier_all();
  double us = 0;
  if (g_pe == 0) {
    step();
    after();
    const double begin = now_us();
    for (std::uint64_t i = 0; i < steps; ++i) step();
    after();
    us = (now_us() - begin) / static_cast<double>(steps);
  }
  print(call, us);
  shmem_barrier_all();
}
template <typename Step>
void one_sided(const char* call, Step step) {
  one_sided(call, g_times, step, [] {});
}

// Half a round trip of two PEs: each sends, and waits for the other's flag.
template <typename Send>
void round_trip(const char* call, Send send) {
  g_memory->flag = 0;
  shmem_barrier_all();
  double begin = 0;
  if (g_pe <= kOther) {
    for (std::uint64_t i = 1; i <= g_times + 1; ++i) {
      if (i == 2) begin = now_us();
      if (g_pe == 0) send(kOther, i);
      shmem_uint64_wait_until(&g_memory->flag, SHMEM_CMP_GE, i);
      if (g_pe == kOther) send(0, i);
    }
  }
  print(call, (now_us() - begin) / static_cast<double>(g_times) / 2);
  shmem_barrier_all();
}

// A call that all PEs make.
template <typename Call>
void collective(const char* name, Call call) {
  call();
  shmem_barrier_all();
  const double begin = now_us();
  for (std::uint64_t i = 0; i < g_times; ++i) call();
  print(name, (now_us() - begin) / static_cast<double>(g_times));
  shmem_barrier_all();
}

void puts_and_gets() {
  round_trip("put of 8 B, until it is seen",
             [](int pe, std::uint64_t i) { shmem_uint64_put(&g_memory->flag, &i, 1, pe); });
  round_trip("put_signal of 8 B, until it is seen", [](int pe, std::uint64_t i) {
    shmem_putmem_signal(g_memory->block, g_local, 8, &g_memory->flag, i, SHMEM_SIGNAL_SET, pe);
  });
  one_sided("put of 8 B + quiet", [] {
    shmem_putmem(g_memory->block, g_local, 8, kOther);
    shmem_quiet();
  });
  one_sided("put of 64 KiB + quiet", [] {
    shmem_putmem(g_memory->block, g_local, kLong, kOther);
    shmem_quiet();
  });
  one_sided(
      "put of 8 B, one of a stream", kStream, [] { shmem_putmem(g_memory->block, g_local, 8, kOther); },
      [] { shmem_quiet(); });
  one_sided("get of 8 B, g", [] { (void)shmem_uint64_g(&g_memory->word, kOther); });
  one_sided("get of 64 KiB", [] { shmem_getmem(g_local, g_memory->block, kLong, kOther); });
  one_sided(
      "get_nbi of 8 B, one of a stream", kStream,
      [] { shmem_getmem_nbi(g_local, g_memory->block, 8, kOther); }, [] { shmem_quiet(); });
}

void atomics_and_locks() {
  one_sided("atomic_fetch_add", [] { (void)shmem_uint64_atomic_fetch_add(&g_memory->counter, 1, kOther); });
  one_sided("atomic_compare_swap",
            [] { (void)shmem_uint64_atomic_compare_swap(&g_memory->counter, 0, 1, kOther); });
  one_sided(
      "atomic_add, one of a stream", kStream, [] { shmem_uint64_atomic_add(&g_memory->counter, 1, kOther); },
      [] { shmem_quiet(); });
  one_sided("set_lock + clear_lock, free", [] {
    shmem_set_lock(&g_memory->lock);
    shmem_clear_lock(&g_memory->lock);
  });
}

void collectives() {
  collective("barrier_all", [] { shmem_barrier_all(); });
  collective("broadcast of 8 B + sync_all", [] {
    shmem_broadcastmem(SHMEM_TEAM_WORLD, g_memory->block, g_local, 8, 0);
    shmem_sync_all();
  });
  collective("long_sum_reduce of one", [] {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &g_memory->numbers[1], &g_memory->numbers[0], 1);
  });
  collective("fcollect of 8 B", [] { shmem_fcollectmem(SHMEM_TEAM_WORLD, g_memory->block, g_local, 8); });
  collective("alltoall of 8 B", [] { shmem_alltoallmem(SHMEM_TEAM_WORLD, g_memory->block, g_local, 8); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_times = std::max<std::uint64_t>(std::strtoull(argv[1], nullptr, 10), 1);
  shmem_init();
  g_pe = shmem_my_pe();
  g_memory = static_cast<Memory*>(shmem_calloc(1, sizeof *g_memory));
  g_local = static_cast<std::byte*>(std::calloc(1, kLong));
  if (g_memory == nullptr || g_local == nullptr || shmem_n_pes() < 2) {
    std::fprintf(stderr, "this program needs two PEs and %zu bytes of each: orrery run -n 2\n",
                 sizeof(Memory));
    shmem_global_exit(2);
  }
  if (g_pe == 0) std::printf("# OpenSHMEM, %d PEs\n%-42s %9s\n", shmem_n_pes(), "# call", "us");
  puts_and_gets();
  atomics_and_locks();
  collectives();
  shmem_free(g_memory);
  std::free(g_local);
  shmem_finalize();
  return 0;
}
