// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_classic.hpp"
#include "lib/common/match_node.hpp"
#include "lib/portals3/sources.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include <portals3.h>

// What this library holds of the process: its match unit, its one interface, its rank.
namespace orrery::portals3 {

namespace match = nic::match;
namespace classic = nic::match::classic;
using Peer = common::MatchPeer;
using Range = common::MatchRange;

// Where a process stands among those of its program, and where they are.
struct Ranks {
  int rank = -1;  // not known
  int size = 0;
  std::vector<ptl_nid_t> nids;  // empty: not given
  std::vector<ptl_pid_t> pids;
  ptl_jid_t jid = PTL_JID_NONE;
};

inline constexpr std::uint8_t kInterface = 0;
inline constexpr std::uint32_t kAccesses = 64;
inline constexpr std::uint32_t kPids = 65536;

class Process : public common::MatchNode {
 public:
  static Process& get();

  std::atomic<int> initialised{0};
  std::mutex mu;
  int references = 0;  // of the interface; guarded by mu
  std::atomic<bool> open{false};
  ptl_ni_limits_t limits{};  // as opened
  Ranks ranks;               // guarded by mu; constant while open
  Sources sources;

  // Joins and signs on. REQUIRES: mu. Returns a PTL_ code.
  int begin(ptl_pid_t wanted);
  void end();
  // The nid under which this program knows its own process.
  ptl_nid_t own_nid() const;
  // The process that a program means; null: none.
  Peer* find_target(ptl_process_id_t id);
  // Whether its memory could not be reached (`fail`) because it has closed its interface or is at its end:
  // the kernel takes the memory away before the process is known to be dead. Waits for that, 1 s at most.
  bool is_ending(const Peer& peer, match::Fail fail) const;
  static bool has_closed(const Peer& peer);

  // ---- event queues with handlers ----
  void serve(std::uint32_t queue, ptl_eq_handler_t handler);
  void serve_no_more(std::uint32_t queue);

 private:
  bool is_expected(ptl_process_id_t id) const;
  Peer* await(match::ProcessId id);
  std::mutex awaited_mu_;
  std::set<std::uint64_t> awaited_;  // nid << 32 | pid, guarded by awaited_mu_
  [[noreturn]] void run_handlers();
  std::mutex handlers_mu_;
  std::map<std::uint32_t, ptl_eq_handler_t> handlers_;  // by queue, guarded by handlers_mu_
  bool thread_ = false;                                 // guarded by handlers_mu_
};

// Takes what the environment or the launcher says of the rank, where the program has said nothing.
// False: it cannot be understood; the log says what.
bool take_ranks_from_environment(Ranks* ranks);

// ---- handles: 31..29 kind | 28..17 generation | 16..0 index ----
enum class Kind : std::uint32_t { ni = 1, me = 2, md = 4, eq = 6 };
constexpr ptl_handle_any_t make_handle(Kind kind, std::uint32_t generation, std::uint32_t index) {
  return static_cast<std::uint32_t>(kind) << 29 | (generation & 0xfff) << 17 | index;
}
inline constexpr ptl_handle_ni_t kNiHandle = make_handle(Kind::ni, 0, 0);
struct Handle {
  std::uint32_t kind, generation, index;
  bool is(Kind wanted) const { return kind == static_cast<std::uint32_t>(wanted); }
};
constexpr Handle open_handle(ptl_handle_any_t handle) {
  return {handle >> 29, handle >> 17 & 0xfff, handle & 0x1ffff};
}
// Whether a handle names a live one now; the last two under a Session, which they look at. Else 0.
std::uint32_t find_queue(ptl_handle_eq_t handle);
std::uint32_t find_entry(const match::View& view, ptl_handle_me_t handle);
std::uint32_t find_descriptor(const match::View& view, ptl_handle_md_t handle);

// Whether an id names no one process.
inline bool is_wild(ptl_process_id_t id) { return id.nid == PTL_NID_ANY || id.pid == PTL_PID_ANY; }

// The event of that queue, as the program takes it.
void translate(std::uint32_t queue, const match::EventRecord& record, std::uint64_t sequence,
               ptl_event_t* event);

}  // namespace orrery::portals3

#define ORRERY_PORTALS3_NEEDS_INIT \
  if (::orrery::portals3::Process::get().initialised.load(std::memory_order_acquire) == 0) return PTL_NO_INIT
#define ORRERY_PORTALS3_NEEDS_NI(handle)                                                     \
  ORRERY_PORTALS3_NEEDS_INIT;                                                                \
  if ((handle) != ::orrery::portals3::kNiHandle || !::orrery::portals3::Process::get().open) \
  return PTL_NI_INVALID
