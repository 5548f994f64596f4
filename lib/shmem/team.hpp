// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/shmem/job.hpp"

#include "include/shmem/shmem.h"

#include <cstdint>
#include <mutex>
#include <vector>

// Sets of PEs, teams, contexts.
namespace orrery::shmem {

// Words by which the members of a set tell each other how far they are, symmetric: SHMEM_SYNC_SIZE of them,
// those of an active set all 0 between collectives. Each has one writer, which adds 1, and one reader, which
// waits for that; the writer of word r stands 2^r places before the reader (rounds, down) or behind it (up).
inline constexpr std::size_t kRounds = 24;
struct SyncWords {
  std::uint64_t rounds[kRounds];  // of the dissemination that synchronises
  std::uint64_t up[kRounds];      // a child's contribution is there
  std::uint64_t down[kRounds];    // the parent's data are there
  std::uint64_t sums[kRounds];    // of the exclusive scan of a collect: the values
  std::uint64_t summed[kRounds];  // and that they are there
  std::uint64_t spare[SHMEM_SYNC_SIZE - 5 * kRounds];
};
static_assert(sizeof(SyncWords) == SHMEM_SYNC_SIZE * 8);

// What every PE has for a team, in the symmetric heap.
struct TeamWords {
  SyncWords sync;
  std::uint64_t scratch[8];  // in and out of the library's own reductions
  std::uint64_t result[8];
};

// PEs in an order. Value.
struct Set {
  int start = 0;
  int stride = 1;
  int size = 0;
  int me = -1;                             // place of this PE; -1: no member
  const std::vector<int>* list = nullptr;  // instead of start and stride
  SyncWords* words = nullptr;
  SyncWords* taken = nullptr;      // how often each word was waited for; null: the words themselves say it
  dmapp_c_pset_handle_t pset = 0;  // of DMAPP's collectives; 0: there is none

  int pe(int place) const {
    return list != nullptr ? (*list)[static_cast<std::size_t>(place)] : start + place * stride;
  }
};

inline constexpr std::size_t kTeams = 256;  // that can be at a time, with those of the library
// The teams of the first slots have a set of DMAPP's, which has 64 and leaves some to the program.
inline constexpr std::size_t kTeamsWithSets = 48;

struct Team {
  Set set;
  SyncWords taken{};         // what set.taken points to
  std::vector<int> list;     // what set.list points to, if it is one
  std::size_t slot = 0;      // of TeamWords
  std::uint64_t handle = 0;  // as a program names it
  shmem_team_config_t config{};
  std::mutex contexts_mu;
  std::vector<shmem_ctx_t> made;  // guarded by contexts_mu: destroyed with the team

  std::uint64_t* scratch() const { return all()->scratch; }
  std::uint64_t* result() const { return all()->result; }

 private:
  TeamWords* all() const { return reinterpret_cast<TeamWords*>(set.words); }
};

struct Context {
  Team* team = nullptr;
  long options = 0;
};

// The team of a handle; null: SHMEM_TEAM_INVALID. Ends the job for a handle that names none.
Team* find_team(const char* call, shmem_team_t team);
Team& world_team();

// Ends the job for a handle that names no context, SHMEM_CTX_INVALID and SHMEM_CTX_DEFAULT among them.
Context* context_of(const char* call, shmem_ctx_t ctx);

// The PE that a context's number means.
int translate(const char* call, shmem_ctx_t ctx, int pe);
[[gnu::always_inline]] inline int pe_of(const char* call, shmem_ctx_t ctx, int pe) {
  return ctx == SHMEM_CTX_DEFAULT ? pe : translate(call, ctx, pe);
}

// World and shared team, and where all teams' words are. Collective.
void start_teams();
void end_teams();

// The set of an active-set collective; ends the job where it is none of this PE's.
Set active_set(const char* call, int start, int log_stride, int size, long* sync);

}  // namespace orrery::shmem
