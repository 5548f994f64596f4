// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/log.hpp"
#include "emu/base/patient_yield.hpp"
#include "emu/base/wait.hpp"
#include "lib/dmapp/issue.hpp"
#include "lib/dmapp/reduce.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

// Sets of PEs and their collectives. Up to nine members tell each other; more stand in a tree of eight
// children each, contributions go up, the result comes down. Members write to each other's rows (inside.hpp):
// the data, and behind them the number of the operation, the turn. A member is never more than one turn ahead
// of those that write to it, so that two rows for each of them are enough.
namespace orrery::dmapp {

namespace {

constexpr std::int64_t kSetLookNs = 10'000'000;  // between looks at which PEs live
constexpr std::uint32_t kLooksPerClock = 32;
constexpr std::size_t kFlat = kArity + 1;  // members that tell each other

enum class Phase : std::uint8_t { idle, gathering, waiting };

// One set as this member has it. One thread at a time: mu.
struct Set {
  std::mutex mu;
  std::uint64_t handle = 0;
  std::uint64_t identifier = 0;
  std::vector<int> members;
  std::size_t me = 0;    // place in members
  std::size_t slot = 0;  // in this PE's own part
  bool exported = false;
  bool lost = false;               // a member has died, or an operation was cancelled
  std::vector<std::size_t> peers;  // places of those that this member writes to
  std::vector<std::size_t> slots;  // of the set in each of them
  std::uint64_t turn = 0;
  Phase phase = Phase::idle;
  std::size_t gathered = 0;  // of those that are awaited
  std::uint32_t nelems = 0;
  dmapp_c_type_t type = DMAPP_C_INT64;
  dmapp_c_op_t op = DMAPP_C_SUM;
  void* out = nullptr;
  std::array<std::uint64_t, kSetElements> mine{};    // this member's contribution
  std::array<std::uint64_t, kSetElements> result{};  // of what was gathered so far
  std::int64_t look_at = 0;
  std::uint32_t looks = 0;        // of the operation that found nothing
  std::uint64_t epoch = 0;        // the world's
  std::atomic<bool> there{true};  // until it is destroyed

  bool flat() const { return members.size() <= kFlat; }
  std::size_t parent() const { return (me - 1) / kArity; }
  std::size_t first_child() const { return me * kArity + 1; }
  std::size_t children() const {
    return first_child() >= members.size() ? 0 : std::min(kArity, members.size() - first_child());
  }
  std::size_t bytes() const { return std::size_t{nelems} * reduce::bytes_of(type); }
};

std::mutex g_sets_mu;
std::array<std::shared_ptr<Set>, kSets> g_sets;  // guarded by g_sets_mu
std::uint64_t g_numbers = 0;                     // guarded by g_sets_mu
std::uint64_t g_epoch_of_sets = 0;               // guarded by g_sets_mu

// The set that the thread was given last. Not an object of the thread itself: those are gone when an exit
// handler ends the job.
thread_local constinit std::shared_ptr<Set>* t_last = nullptr;
struct Forgetting {
  ~Forgetting() { delete std::exchange(t_last, nullptr); }
};

//   63..8 number | 7..0 slot
// Stays until the thread's next call of it.
Set* find_set(std::uint64_t handle) {
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (t_last != nullptr) [[likely]] {
    Set* const last = t_last->get();
    if (last->handle == handle && last->epoch == epoch && last->there.load(std::memory_order_acquire))
        [[likely]]
      return last;
  }
  const std::lock_guard lock(g_sets_mu);
  const std::size_t slot = handle & 0xff;
  if (g_epoch_of_sets != epoch || slot >= kSets || g_sets[slot] == nullptr || g_sets[slot]->handle != handle)
    return nullptr;
  if (t_last == nullptr) {
    thread_local Forgetting at_end;
    (void)at_end;
    t_last = new std::shared_ptr<Set>();
  }
  *t_last = g_sets[slot];
  return t_last->get();
}

// The members that a description names; empty: none that could be.
std::vector<int> members_of(const dmapp_c_pset_desc_t& d, int npes) {
  std::vector<int> members;
  const auto type = static_cast<unsigned>(d.type);
  if (type == DMAPP_C_PSET_DELIMITER_STRIDED) {
    const auto& s = d.u.stride_type;
    if (s.n_pes <= 0 || s.n_pes > npes) return {};
    for (std::int64_t i = 0; i < s.n_pes; ++i) {
      const std::int64_t pe = s.base_pe + i * s.stride_pe;
      if (pe < 0 || pe >= npes) return {};
      members.push_back(static_cast<int>(pe));
    }
  } else if (type == DMAPP_C_PSET_DELIMITER_LIST) {
    const auto& l = d.u.list_type;
    if (l.n_pes <= 0 || l.n_pes > npes || l.pes == nullptr) return {};
    members.assign(l.pes, l.pes + l.n_pes);
  }
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool good =
      std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
      std::all_of(sorted.begin(), sorted.end(), [npes](int pe) { return pe >= 0 && pe < npes; });
  return good ? members : std::vector<int>{};
}

// Where the set is in another PE. Errors: no_match.
Result<std::size_t> find_slot(Context& context, int pe, std::uint64_t identifier) {
  for (std::size_t slot = 0; slot < kSets; ++slot) {
    std::uint64_t word = 0;
    const Place place = context.find_inside(
        pe, offsetof(Inside, sets) + slot * sizeof(SetSlot) + offsetof(SetSlot, identifier));
    Issue issue(context, Mode::blocking);
    issue.get(place, &word, sizeof word);
    if (issue.finish() != DMAPP_RC_SUCCESS) return Errc::unreachable;
    if (word == identifier + 1) return slot;
  }
  return Errc::no_match;
}

// Writes data and turn into a row of a peer of the set. Under a clock nothing waits for the acknowledgement,
// as nothing does without one: gsync takes it in. A failure is the death of a member, which the set's waits
// find.
dmapp_return_t tell(Context& context, const Set& set, std::size_t peer, std::size_t row,
                    const std::array<std::uint64_t, kSetElements>& data) {
  const bool timed = context.nic().clock() != nullptr;
  const std::uint64_t at = offsetof(Inside, sets) + set.slots[peer] * sizeof(SetSlot) + row;
  const int pe = set.members[set.peers[peer]];
  const Place turn = context.find_inside(pe, at + offsetof(SetRow, turn));
  std::uint64_t word = set.turn;
  if (set.bytes() == 0 && !timed) {
    Issue issue(context, Mode::blocking);
    issue.put(turn, &word, sizeof word);
    return issue.finish();
  }
  const Place row_at = context.find_inside(pe, at);
  // With a flag it goes by FMA, whatever the threshold, which takes the source at once.
  const std::size_t bytes = std::max<std::size_t>((set.bytes() + 7) / 8, 1) * 8;
  // Two stores of this processor are seen in their order; anything else goes as one request.
  if (context.try_now<nic::Op::put>(row_at, const_cast<std::uint64_t*>(data.data()), bytes,  // NOLINT
                                    Mode::blocking) == Errc::ok &&
      context.try_now<nic::Op::put>(turn, &word, sizeof word, Mode::blocking) == Errc::ok)
    return DMAPP_RC_SUCCESS;
  nic::Request request = Context::put_request(row_at, data.data(), bytes);
  request.flags |= nic::kSyncFlag;
  request.sync_address = turn.address;
  request.sync_value = word;
  Issue issue(context, timed ? Mode::implicit : Mode::blocking);
  issue.start(row_at, request);
  return issue.finish();
}

constexpr std::size_t up_row(std::uint64_t turn, std::size_t child) {
  return offsetof(SetSlot, up) + ((turn & 1) * kArity + child) * sizeof(SetRow);
}
// In which row of `reader` the member `writer` of a flat set writes.
constexpr std::size_t flat_row(std::size_t writer, std::size_t reader) {
  return writer < reader ? writer : writer - 1;
}

void add(Set& set, const void* data) {
  if (set.nelems != 0) reduce::combine(set.op, set.type, set.nelems, set.result.data(), data);
}

dmapp_return_t finish(Set& set, const void* result) {
  if (set.nelems != 0) std::memcpy(set.out, result, set.bytes());
  set.phase = Phase::idle;
  return DMAPP_RC_SUCCESS;
}

// Takes in what is there of the others, in the order of the members, so that all come to the same result.
dmapp_return_t advance_flat(Set& set, const SetSlot& here) {
  for (; set.gathered < set.members.size(); ++set.gathered) {
    const std::uint64_t* data = set.mine.data();
    if (set.gathered != set.me) {
      const SetRow& row = here.up[set.turn & 1][flat_row(set.gathered, set.me)];
      // Acquire: the data were written before.
      if (row.turn.load(std::memory_order_acquire) != set.turn) return DMAPP_RC_NOT_DONE;
      data = row.data;
    }
    if (set.gathered == 0) {
      std::memcpy(set.result.data(), data, sizeof set.result);
    } else {
      add(set, data);
    }
  }
  return finish(set, set.result.data());
}

dmapp_return_t release_children(Context& context, Set& set,
                                const std::array<std::uint64_t, kSetElements>& result) {
  const std::size_t first = set.me == 0 ? 0 : 1;
  for (std::size_t i = first; i < set.peers.size(); ++i) {
    const dmapp_return_t rc = tell(context, set, i, offsetof(SetSlot, down), result);
    if (rc != DMAPP_RC_SUCCESS) return rc;
  }
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t advance_tree(Context& context, Set& set, const SetSlot& here) {
  if (set.phase == Phase::gathering) {
    for (; set.gathered < set.children(); ++set.gathered) {
      const SetRow& row = here.up[set.turn & 1][set.gathered];
      if (row.turn.load(std::memory_order_acquire) != set.turn) return DMAPP_RC_NOT_DONE;
      add(set, row.data);
    }
    if (set.me == 0) {
      const dmapp_return_t rc = release_children(context, set, set.result);
      return rc == DMAPP_RC_SUCCESS ? finish(set, set.result.data()) : rc;
    }
    const dmapp_return_t rc = tell(context, set, 0, up_row(set.turn, (set.me - 1) % kArity), set.result);
    if (rc != DMAPP_RC_SUCCESS) return rc;
    set.phase = Phase::waiting;
  }
  if (here.down.turn.load(std::memory_order_acquire) != set.turn) return DMAPP_RC_NOT_DONE;
  std::memcpy(set.result.data(), here.down.data, sizeof set.result);
  const dmapp_return_t rc = release_children(context, set, set.result);
  return rc == DMAPP_RC_SUCCESS ? finish(set, set.result.data()) : rc;
}

// As far as it goes now.
dmapp_return_t advance(Context& context, Set& set) {
  if (set.lost) return DMAPP_RC_TRANSACTION_ERROR;
  if (set.phase == Phase::idle) return DMAPP_RC_SUCCESS;
  const SetSlot& own = context.world().inside().sets[set.slot];
  const dmapp_return_t rc = set.flat() ? advance_flat(set, own) : advance_tree(context, set, own);
  if (rc != DMAPP_RC_NOT_DONE && rc != DMAPP_RC_SUCCESS) set.lost = true;
  if (rc != DMAPP_RC_NOT_DONE) return rc;
  // A look at the clock takes as long as many at the rows.
  if (++set.looks % kLooksPerClock != 0) return rc;
  const std::int64_t now = monotonic_ns();
  if (now < set.look_at) return rc;
  set.look_at = now + kSetLookNs;
  const bool all_live =
      std::all_of(set.members.begin(), set.members.end(), [&](int pe) { return context.world().alive(pe); });
  if (all_live) return rc;
  // What it wrote before it died counts.
  const dmapp_return_t last = set.flat() ? advance_flat(set, own) : advance_tree(context, set, own);
  if (last == DMAPP_RC_SUCCESS) return last;
  set.lost = true;
  return DMAPP_RC_TRANSACTION_ERROR;
}

dmapp_return_t begin(std::uint64_t handle, const void* in, void* out, std::uint32_t nelems,
                     dmapp_c_type_t type, dmapp_c_op_t op) {
  const Visit visit;
  Context* const context = visit.context();
  Set* const set = find_set(handle);
  if (context == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(set->mu);
  if (!set->exported) return DMAPP_RC_NOT_DONE;
  if (set->lost) return DMAPP_RC_TRANSACTION_ERROR;
  if (set->phase != Phase::idle) return DMAPP_RC_BUSY;
  ++set->turn;
  set->phase = Phase::gathering;
  set->gathered = 0;
  set->nelems = nelems;
  set->type = type;
  set->op = op;
  set->out = out;
  set->look_at = monotonic_ns() + kSetLookNs;
  if (nelems != 0) {
    std::memcpy(set->mine.data(), in, set->bytes());
    set->result = set->mine;
  }
  if (set->flat()) {
    for (std::size_t i = 0; i < set->peers.size(); ++i) {
      const dmapp_return_t rc =
          tell(*context, *set, i, up_row(set->turn, flat_row(set->me, set->peers[i])), set->mine);
      if (rc != DMAPP_RC_SUCCESS) {
        set->lost = true;
        return rc;
      }
    }
    return DMAPP_RC_SUCCESS;
  }
  // A leaf's contribution is in flight before its parent asks.
  const dmapp_return_t rc = advance(*context, *set);
  return rc == DMAPP_RC_NOT_DONE ? DMAPP_RC_SUCCESS : rc;
}

dmapp_return_t create(const dmapp_c_pset_desc_t& description, std::uint64_t identifier, std::uint64_t modes,
                      std::uint64_t* handle) {
  const Visit visit;
  World* const world = visit.context() == nullptr ? nullptr : &visit.context()->world();
  if (world == nullptr || identifier == UINT64_MAX) return DMAPP_RC_INVALID_PARAM;
  auto set = std::make_shared<Set>();
  set->identifier = identifier;
  set->members = members_of(description, world->npes());
  const auto me = std::find(set->members.begin(), set->members.end(), world->pe());
  if (me == set->members.end()) return DMAPP_RC_INVALID_PARAM;
  if ((modes & DMAPP_C_PSET_MODE_CONCAT) != 0 &&
      (description.concat_buf == nullptr || description.concat_buf_size / 8 < set->members.size()))
    return DMAPP_RC_INVALID_PARAM;
  set->me = static_cast<std::size_t>(me - set->members.begin());
  if (set->flat()) {
    for (std::size_t i = 0; i < set->members.size(); ++i) {
      if (i != set->me) set->peers.push_back(i);
    }
  } else {
    if (set->me != 0) set->peers.push_back(set->parent());
    for (std::size_t i = 0; i < set->children(); ++i) set->peers.push_back(set->first_child() + i);
  }
  const std::lock_guard lock(g_sets_mu);
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (g_epoch_of_sets != epoch) {
    g_sets.fill(nullptr);
    g_epoch_of_sets = epoch;
  }
  std::size_t free = kSets;
  for (std::size_t i = 0; i < kSets; ++i) {
    if (g_sets[i] == nullptr) {
      free = std::min(free, i);
    } else if (g_sets[i]->identifier == identifier) {
      return DMAPP_RC_BUSY;
    }
  }
  if (free == kSets) return DMAPP_RC_RESOURCE_ERROR;
  SetSlot& slot = world->inside().sets[free];
  for (auto& rows : slot.up) {
    for (SetRow& row : rows) row.turn.store(0, std::memory_order_relaxed);
  }
  slot.down.turn.store(0, std::memory_order_relaxed);
  set->slot = free;
  set->epoch = epoch;
  set->handle = ++g_numbers << 8 | free;
  *handle = set->handle;
  g_sets[free] = std::move(set);
  // Release: a member that finds the set finds its rows empty.
  slot.identifier.store(identifier + 1, std::memory_order_release);
  return DMAPP_RC_SUCCESS;
}

}  // namespace
}  // namespace orrery::dmapp

using orrery::dmapp::Context;
using orrery::dmapp::find_set;
using orrery::dmapp::Visit;
namespace reduce = orrery::dmapp::reduce;

extern "C" {

dmapp_return_t dmapp_c_pset_create(dmapp_c_pset_desc_t* pdesc, uint64_t identifier, uint64_t modes,
                                   dmapp_c_pset_attrs_t* /*attrs*/, dmapp_c_pset_handle_t* hndl) {
  if (pdesc == nullptr || hndl == nullptr || (modes & ~std::uint64_t{DMAPP_C_PSET_MODE_CONCAT}) != 0)
    return DMAPP_RC_INVALID_PARAM;
  return orrery::dmapp::create(*pdesc, identifier, modes, hndl);
}

dmapp_return_t dmapp_c_pset_export(dmapp_c_pset_handle_t hndl) {
  const Visit visit;
  Context* const context = visit.context();
  auto* const set = find_set(hndl);
  if (context == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(set->mu);
  if (set->exported) return DMAPP_RC_SUCCESS;
  std::vector<std::size_t> slots;
  // A member that is gone counts for more than one that is not there yet, for which the caller tries again:
  // that one may have heard of the death, and never come.
  orrery::Errc missing = orrery::Errc::ok;
  for (const std::size_t peer : set->peers) {
    const auto slot = orrery::dmapp::find_slot(*context, set->members[peer], set->identifier);
    if (slot.ok())
      slots.push_back(slot.value());
    else if (slot.code() == orrery::Errc::no_match)
      missing = slot.code();
    else
      return orrery::dmapp::return_of(slot.code());
  }
  if (missing != orrery::Errc::ok) return orrery::dmapp::return_of(missing);
  for (const int pe : set->members) context->world().watch(pe);
  set->slots = std::move(slots);
  set->exported = true;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_pset_destroy(dmapp_c_pset_handle_t hndl) {
  const Visit visit;
  const Context* const context = visit.context();
  auto* const set = find_set(hndl);
  if (context == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(orrery::dmapp::g_sets_mu);
  const std::lock_guard no_operation(set->mu);
  if (set->phase != orrery::dmapp::Phase::idle && !set->lost) return DMAPP_RC_BUSY;
  context->world().inside().sets[set->slot].identifier.store(0, std::memory_order_release);
  set->there.store(false, std::memory_order_release);
  orrery::dmapp::g_sets[set->slot] = nullptr;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_pset_test(dmapp_c_pset_handle_t hndl) {
  const Visit visit;
  Context* const context = visit.context();
  auto* const set = find_set(hndl);
  if (context == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(set->mu);
  const dmapp_return_t rc = orrery::dmapp::advance(*context, *set);
  if (rc == DMAPP_RC_NOT_DONE) context->progress();
  return rc;
}

dmapp_return_t dmapp_c_pset_wait(dmapp_c_pset_handle_t hndl) {
  const Visit visit;
  Context* const context = visit.context();
  auto* const set = find_set(hndl);
  if (context == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const bool timed = context->nic().clock() != nullptr;
  const orrery::WaitBudget budget{.spins = timed ? 1 : context->world().runtime().wait_budget().spins,
                                  .yields = 0};
  orrery::PatientYield yield;
  for (;;) {
    dmapp_return_t rc = DMAPP_RC_NOT_DONE;
    {
      // Given up between looks, so that another thread can cancel the operation.
      const std::lock_guard lock(set->mu);
      orrery::spin_then_yield(budget, [&] {
        rc = orrery::dmapp::advance(*context, *set);
        return rc != DMAPP_RC_NOT_DONE;
      });
    }
    if (rc != DMAPP_RC_NOT_DONE) return rc;
    if (!Visit::is_current()) return DMAPP_RC_INVALID_PARAM;
    context->progress();
    if (!timed) yield();
  }
}

dmapp_return_t dmapp_c_pset_cancel_op(dmapp_c_pset_handle_t hndl) {
  const Visit visit;
  auto* const set = find_set(hndl);
  if (visit.context() == nullptr || set == nullptr) return DMAPP_RC_INVALID_PARAM;
  const std::lock_guard lock(set->mu);
  if (set->phase == orrery::dmapp::Phase::idle) return DMAPP_RC_NOT_FOUND;
  set->lost = true;
  return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_barrier_join(dmapp_c_pset_handle_t hndl) {
  return orrery::dmapp::begin(hndl, nullptr, nullptr, 0, DMAPP_C_INT64, DMAPP_C_SUM);
}

dmapp_return_t dmapp_c_greduce_start(dmapp_c_pset_handle_t hndl, void* in, void* out, uint32_t nelems,
                                     dmapp_c_type_t type, dmapp_c_op_t op) {
  if (orrery::dmapp::here() == nullptr || in == nullptr || out == nullptr || reduce::bytes_of(type) == 0 ||
      !reduce::is_op(op))
    return DMAPP_RC_INVALID_PARAM;
  if (!reduce::takes(op, type)) return DMAPP_RC_NOT_SUPPORTED;
  if (nelems > reduce::most_elements(type)) return DMAPP_RC_NO_SPACE;
  return orrery::dmapp::begin(hndl, in, out, nelems, type, op);
}

dmapp_return_t dmapp_c_greduce_nelems_max(dmapp_c_type_t type, uint32_t* nelems_max) {
  if (nelems_max == nullptr || reduce::bytes_of(type) == 0) return DMAPP_RC_INVALID_PARAM;
  *nelems_max = reduce::most_elements(type);
  return DMAPP_RC_SUCCESS;
}

}  // extern "C"
