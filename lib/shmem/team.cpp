// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/shmem/team.hpp"

#include "emu/base/log.hpp"
#include "lib/shmem/access.hpp"
#include "lib/shmem/context_table.hpp"
#include "lib/shmem/group.hpp"
#include "lib/shmem/life.hpp"
#include "lib/shmem/profiling.hpp"

#include "include/pmi/pmi.h"
#include "include/pmi/pmi_cray_ext.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

namespace orrery::shmem {

namespace {

TeamWords* g_words = nullptr;  // kTeams of them
std::mutex g_mu;
std::array<std::unique_ptr<Team>, kTeams> g_teams;  // guarded by g_mu; [0] world, [1] shared: constant
bool g_one_thread = true;  // no PE asked for SHMEM_THREAD_MULTIPLE; constant after start_teams
constexpr std::size_t kWorld = 0;
constexpr std::size_t kShared = 1;
constexpr std::size_t kSlotWords = kTeams / 64;
constexpr std::uint64_t kSetNames = 0x5348'4d45'4d00'0000;  // of DMAPP's sets; with the slot behind it

ContextTable g_contexts;

std::unique_ptr<Team> make_team(std::size_t slot, const Set& set) {
  auto team = std::make_unique<Team>();
  team->slot = slot;
  team->set = set;
  team->set.words = &g_words[slot].sync;
  team->set.taken = &team->taken;
  // No member sends to another one before all have made the team.
  std::memset(static_cast<void*>(team->set.words), 0, sizeof *team->set.words);
  return team;
}

// PEs of this host, in order.
std::vector<int> pes_here() {
  int count = 0;
  if (PMI_Get_numpes_on_smp(&count) != PMI_SUCCESS || count <= 0) return {g_job.pe};
  std::vector<int> pes(static_cast<std::size_t>(count));
  if (PMI_Get_pes_on_smp(pes.data(), count) != PMI_SUCCESS) return {g_job.pe};
  std::sort(pes.begin(), pes.end());
  return pes;
}

// As a start and a stride where it is one; else by its list.
void use_list(Team& team, std::vector<int> pes) {
  const auto at = std::find(pes.begin(), pes.end(), g_job.pe);
  team.set.me = at == pes.end() ? -1 : static_cast<int>(at - pes.begin());
  team.set.size = static_cast<int>(pes.size());
  team.list = std::move(pes);
  team.set.list = &team.list;
}

// Gives the team its set of DMAPP's, if teams of its slot have one. The members meet between the two steps.
void create_set(const char* call, Team& team) {
  if (team.slot >= kTeamsWithSets) return;
  std::vector<dmapp_pe_t> pes;
  for (int i = 0; i < team.set.size; ++i) pes.push_back(team.set.pe(i));
  dmapp_c_pset_desc_t members{};
  members.type = DMAPP_C_PSET_DELIMITER_LIST;
  members.u.list_type = {.n_pes = static_cast<int>(pes.size()), .pes = pes.data()};
  if (const dmapp_return_t rc =
          dmapp_c_pset_create(&members, kSetNames + team.slot, 0, nullptr, &team.set.pset);
      rc != DMAPP_RC_SUCCESS)
    fail(call, "DMAPP has no set for the team (%d): expected that the program has at most %zu of its own", rc,
         64 - kTeamsWithSets);
}
void export_set(const char* call, const Team& team) {
  if (team.set.pset == 0) return;
  if (const dmapp_return_t rc = dmapp_c_pset_export(team.set.pset); rc != DMAPP_RC_SUCCESS) {
    fail_if_a_pe_just_ended(call);
    fail(call, "DMAPP's set of the team cannot be exported (%d)", rc);
  }
}

// Handles of teams name a place and how many teams there were before; those of the library are the constants.
//
//   63..16 number, from 1 on | 15..0 place
constexpr std::size_t kSlotBits = 16;
std::uint64_t g_numbers = 0;  // guarded by g_mu

shmem_team_t handle_of(const Team* team) { return reinterpret_cast<shmem_team_t>(team->handle); }

// A slot that is free in every member of the parent; kTeams: there is none. Collective over the parent.
std::size_t agree_on_slot(Team& parent) {
  std::array<std::uint64_t, kSlotWords> free{};
  {
    const std::lock_guard lock(g_mu);
    for (std::size_t i = 0; i < kTeams; ++i)
      if (g_teams[i] == nullptr) free[i / 64] |= std::uint64_t{1} << i % 64;
  }
  std::memcpy(parent.scratch(), free.data(), sizeof free);
  group::reduce(parent.set, parent.result(), parent.scratch(), kSlotWords, 8, reduction_and<std::uint64_t>());
  for (std::size_t i = 0; i < kSlotWords; ++i)
    if (parent.result()[i] != 0)
      return i * 64 + static_cast<std::size_t>(std::countr_zero(parent.result()[i]));
  return kTeams;
}

// Makes the team of those members of the parent that `pes` names (places in the world), which differ from
// member to member perhaps: then the sets have no member in common. Collective over the parent.
int split(const char* call, Team& parent, std::vector<int> pes, const shmem_team_config_t* config, long mask,
          shmem_team_t* new_team) {
  Team* made = nullptr;
  *new_team = SHMEM_TEAM_INVALID;
  const std::size_t slot = agree_on_slot(parent);
  if (slot == kTeams) {
    log::error("a team is to be made, and {} exist, which is the most", kTeams);
    return -1;
  }
  if (std::find(pes.begin(), pes.end(), g_job.pe) != pes.end()) {
    auto team = make_team(slot, {});
    use_list(*team, std::move(pes));
    if (config != nullptr && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) team->config = *config;
    create_set(call, *team);
    made = team.get();
    const std::lock_guard lock(g_mu);
    team->handle = ++g_numbers << kSlotBits | slot;
    *new_team = handle_of(team.get());
    g_teams[slot] = std::move(team);
  }
  group::sync(parent.set);
  if (made != nullptr) export_set(call, *made);
  return 0;
}

std::vector<int> strided(const Team& parent, int start, int stride, int size) {
  std::vector<int> pes;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t place = start + i * stride;
    if (place < 0 || place >= parent.set.size) return {};
    pes.push_back(parent.set.pe(static_cast<int>(place)));
  }
  return pes;
}

int make_context(Team* team, long options, shmem_ctx_t* ctx) {
  if (ctx == nullptr) return -1;
  *ctx = SHMEM_CTX_INVALID;
  if (team == nullptr) return -1;
  if ((options & ~(SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)) != 0) {
    log::error("a context with options {:#x}: expected SHMEM_CTX_SERIALIZED, _PRIVATE and _NOSTORE combined",
               options);
    return -1;
  }
  *ctx = g_contexts.make(team, options);
  if (*ctx == SHMEM_CTX_INVALID) return -1;
  const std::lock_guard lock(team->contexts_mu);
  team->made.push_back(*ctx);
  return 0;
}

}  // namespace

Team* find_team(const char* call, shmem_team_t team) {
  if (team == SHMEM_TEAM_INVALID) return nullptr;
  if (team == SHMEM_TEAM_WORLD) return g_teams[kWorld].get();
  if (team == SHMEM_TEAM_SHARED) return g_teams[kShared].get();
  const auto handle = reinterpret_cast<std::uint64_t>(team);
  const std::size_t slot = handle & ((std::size_t{1} << kSlotBits) - 1);
  Team* const one = slot < kTeams ? g_teams[slot].get() : nullptr;
  if (one == nullptr || one->handle != handle)
    fail(call,
         "the team %#llx is none: expected SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED or one that a split gave and "
         "that is not destroyed",
         static_cast<unsigned long long>(handle));
  return one;
}

Context* context_of(const char* call, shmem_ctx_t ctx) {
  if (ctx == SHMEM_CTX_INVALID) fail(call, "%s", "the context is SHMEM_CTX_INVALID");
  Context* const one = g_contexts.find(ctx);
  if (one == nullptr)
    fail(call,
         "the context %#llx is none: expected SHMEM_CTX_DEFAULT or one that was created and is not destroyed",
         static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(ctx)));
  return one;
}

Team& world_team() { return *g_teams[kWorld]; }

int translate(const char* call, shmem_ctx_t ctx, int pe) {
  const Team* const team = context_of(call, ctx)->team;
  if (pe < 0 || pe >= team->set.size)
    fail(call, "PE %d of the context's team: expected 0 to %d", pe, team->set.size - 1);
  return team->set.pe(pe);
}

void start_teams() {
  constexpr const char* kCall = "shmem_init";
  g_words = static_cast<TeamWords*>(dmapp_sheap_malloc(kTeams * sizeof(TeamWords)));
  if (g_words == nullptr)
    fail(kCall, "the symmetric heap has no room for %zu bytes of the teams", kTeams * sizeof(TeamWords));
  std::memset(static_cast<void*>(g_words), 0, kTeams * sizeof(TeamWords));
  g_teams[kWorld] = make_team(kWorld, {.start = 0, .stride = 1, .size = g_job.npes, .me = g_job.pe});
  g_teams[kShared] = make_team(kShared, {});
  use_list(*g_teams[kShared], pes_here());
  g_teams[kWorld]->handle = reinterpret_cast<std::uint64_t>(SHMEM_TEAM_WORLD);
  g_teams[kShared]->handle = reinterpret_cast<std::uint64_t>(SHMEM_TEAM_SHARED);
  create_set(kCall, *g_teams[kWorld]);
  create_set(kCall, *g_teams[kShared]);
  // No PE writes to the words of one that has not zeroed them.
  g_one_thread = start_life(g_job.level) < SHMEM_THREAD_MULTIPLE;
  export_set(kCall, *g_teams[kWorld]);
  export_set(kCall, *g_teams[kShared]);
  // A PE that ends right behind shmem_init is no longer needed by the others' own.
  if (PMI_Barrier() != PMI_SUCCESS) fail(kCall, "%s", "PMI_Barrier failed");
}

void end_teams() {
  const std::lock_guard lock(g_mu);
  for (auto& team : g_teams) {
    if (team == nullptr) continue;
    for (const shmem_ctx_t ctx : team->made) g_contexts.destroy(ctx);
    if (team->set.pset != 0) (void)dmapp_c_pset_destroy(team->set.pset);
    team.reset();
  }
}

Set active_set(const char* call, int start, int log_stride, int size, long* sync) {
  must_be_up(call);
  if (log_stride < 0 || log_stride > 30) fail(call, "logPE_stride %d: expected 0 to 30", log_stride);
  const std::int64_t stride = std::int64_t{1} << log_stride;
  if (start < 0 || size < 1 || start + (size - 1) * stride >= g_job.npes)
    fail(call, "PE_start %d, logPE_stride %d, PE_size %d: expected PEs of 0 to %d", start, log_stride, size,
         g_job.npes - 1);
  if (sync == nullptr) fail(call, "%s", "pSync is null");
  const std::int64_t distance = g_job.pe - start;
  if (distance < 0 || distance % stride != 0 || distance / stride >= size)
    fail(call, "PE %d is none of the active set: PE_start %d, logPE_stride %d, PE_size %d", g_job.pe, start,
         log_stride, size);
  // All PEs: the world's own words, which cost fewer messages, unless two threads may be in two such
  // collectives at a time.
  if (size == g_job.npes && g_one_thread) return g_teams[kWorld]->set;
  return {.start = start,
          .stride = static_cast<int>(stride),
          .size = size,
          .me = static_cast<int>(distance / stride),
          .list = nullptr,
          .words = reinterpret_cast<SyncWords*>(sync)};
}

}  // namespace orrery::shmem

using orrery::shmem::Context;
using orrery::shmem::context_of;
using orrery::shmem::find_team;
using orrery::shmem::must_be_up;
using orrery::shmem::Team;
namespace shmem = orrery::shmem;

extern "C" {

SHMEM_NAMES_TEAM_(ORRERY_PROFILED)

int shmem_team_my_pe(shmem_team_t team) {
  must_be_up("shmem_team_my_pe");
  const Team* const one = find_team("shmem_team_my_pe", team);
  return one == nullptr ? -1 : one->set.me;
}

int shmem_team_n_pes(shmem_team_t team) {
  must_be_up("shmem_team_n_pes");
  const Team* const one = find_team("shmem_team_n_pes", team);
  return one == nullptr ? -1 : one->set.size;
}

int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t* config) {
  must_be_up("shmem_team_get_config");
  const Team* const one = find_team("shmem_team_get_config", team);
  if (one == nullptr || config == nullptr || (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0) return -1;
  if ((config_mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) config->num_contexts = one->config.num_contexts;
  return 0;
}

int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team) {
  must_be_up("shmem_team_translate_pe");
  const Team* const from = find_team("shmem_team_translate_pe", src_team);
  const Team* const to = find_team("shmem_team_translate_pe", dest_team);
  if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= from->set.size) return -1;
  const int pe = from->set.pe(src_pe);
  for (int i = 0; i < to->set.size; ++i)
    if (to->set.pe(i) == pe) return i;
  return -1;
}

int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size,
                             const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team) {
  must_be_up("shmem_team_split_strided");
  if (new_team == nullptr) return -1;
  *new_team = SHMEM_TEAM_INVALID;
  Team* const from = find_team("shmem_team_split_strided", parent);
  if (from == nullptr) return -1;
  std::vector<int> pes;
  if (size >= 1 && (stride != 0 || size == 1)) pes = shmem::strided(*from, start, stride, size);
  if (pes.empty()) {
    orrery::log::error(
        "shmem_team_split_strided: start {}, stride {}, size {}: expected members of a team of {}", start,
        stride, size, from->set.size);
    return -1;
  }
  return shmem::split("shmem_team_split_strided", *from, std::move(pes), config, config_mask, new_team);
}

int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* xaxis_config,
                        long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config,
                        long yaxis_mask, shmem_team_t* yaxis_team) {
  must_be_up("shmem_team_split_2d");
  if (xaxis_team == nullptr || yaxis_team == nullptr) return -1;
  *xaxis_team = SHMEM_TEAM_INVALID;
  *yaxis_team = SHMEM_TEAM_INVALID;
  Team* const from = find_team("shmem_team_split_2d", parent);
  if (from == nullptr) return -1;
  if (xrange < 1) {
    orrery::log::error("shmem_team_split_2d: xrange {}: expected 1 or more", xrange);
    return -1;
  }
  const int size = from->set.size;
  const int width = std::min(xrange, size);
  // Rows have no member in common, so that one place serves all of them; so have columns.
  const int row = from->set.me / width;
  const int column = from->set.me % width;
  const int result = shmem::split("shmem_team_split_2d", *from,
                                  shmem::strided(*from, row * width, 1, std::min(width, size - row * width)),
                                  xaxis_config, xaxis_mask, xaxis_team);
  if (result != 0) return result;
  return shmem::split("shmem_team_split_2d", *from,
                      shmem::strided(*from, column, width, (size - column + width - 1) / width), yaxis_config,
                      yaxis_mask, yaxis_team);
}

void shmem_team_destroy(shmem_team_t team) {
  must_be_up("shmem_team_destroy");
  Team* const one = find_team("shmem_team_destroy", team);
  if (one == nullptr) return;
  if (one->slot <= shmem::kShared) {
    orrery::log::error("shmem_team_destroy: SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED stay");
    return;
  }
  shmem::group::sync(one->set);
  for (const shmem_ctx_t ctx : one->made) shmem::g_contexts.destroy(ctx);
  if (one->set.pset != 0) (void)dmapp_c_pset_destroy(one->set.pset);
  const std::lock_guard lock(shmem::g_mu);
  shmem::g_teams[one->slot].reset();
}

void* shmem_team_ptr(shmem_team_t team, const void* dest, int pe) {
  must_be_up("shmem_team_ptr");
  const Team* const one = find_team("shmem_team_ptr", team);
  if (one == nullptr || pe < 0 || pe >= one->set.size) return nullptr;
  return shmem_ptr(dest, one->set.pe(pe));
}

int shmem_ctx_create(long options, shmem_ctx_t* ctx) {
  must_be_up("shmem_ctx_create");
  return shmem::make_context(&shmem::world_team(), options, ctx);
}

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* ctx) {
  must_be_up("shmem_team_create_ctx");
  return shmem::make_context(find_team("shmem_team_create_ctx", team), options, ctx);
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
  must_be_up("shmem_ctx_destroy");
  if (ctx == SHMEM_CTX_INVALID) return;
  if (ctx == SHMEM_CTX_DEFAULT) {
    orrery::log::error("shmem_ctx_destroy: SHMEM_CTX_DEFAULT stays");
    return;
  }
  Context* const context = context_of("shmem_ctx_destroy", ctx);
  shmem::quiet("shmem_ctx_destroy");
  {
    const std::lock_guard lock(context->team->contexts_mu);
    auto& made = context->team->made;
    made.erase(std::remove(made.begin(), made.end(), ctx), made.end());
  }
  shmem::g_contexts.destroy(ctx);
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t* team) {
  must_be_up("shmem_ctx_get_team");
  if (team == nullptr) return -1;
  *team = SHMEM_TEAM_INVALID;
  if (ctx == SHMEM_CTX_INVALID) return -1;
  *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD
                                   : shmem::handle_of(context_of("shmem_ctx_get_team", ctx)->team);
  return 0;
}

}  // extern "C"
