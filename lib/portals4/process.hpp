// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/match_unit.hpp"
#include "lib/common/match_node.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <portals4.h>

namespace orrery::clock {
class VirtualClock;
}

// What this library holds of the process: its match unit, its interfaces and the processes that it has met.
namespace orrery::portals4 {

namespace match = nic::match;

using Range = common::MatchRange;
using Peer = common::MatchPeer;
using common::copy;
using common::ranges_of;
using common::read;
using common::write;

// One of the four kinds of interface, as opened by this process.
struct LocalInterface {
  int references = 0;
  ptl_ni_limits_t limits{};
  std::vector<ptl_process_t> map;
  bool mapped = false;
};

class Process : public common::MatchNode {
 public:
  static Process& get() {
    // Acquire: pairs with create().
    Process* const process = s_process.load(std::memory_order_acquire);
    return process != nullptr ? *process : create();
  }

  // ---- PtlInit, PtlFini ----
  std::atomic<int> initialised{0};

  // ---- interfaces; all guarded by mu ----
  std::mutex mu;
  std::array<LocalInterface, match::kInterfaces> interfaces;
  // Signs on under `wanted`, or any free pid. REQUIRES: mu. Returns a PTL_ code.
  int open(ptl_pid_t wanted);
  // The NIC is there, and `pid` is what PTL_PID_ANY will be. REQUIRES: mu. False: the log says why.
  bool prepare(std::uint32_t* pid);
  void close();
  bool any_open() const;
  // This process, as a match unit names it that it moves bytes for.
  std::uint64_t mover() {
    const nic::ProcessName& name = self().name;
    return match::mover_of(name.slot, name.generation);
  }
  // The program makes a call: what it has computed since the last one has taken time (VirtualClock).
  void call_begins() {
    if (works_in_time_ != nullptr) [[unlikely]]
      compute_passes();
  }

  // ---- waiting ----
  std::atomic<int> aborting{0};
  std::atomic<int> waiters{0};

 private:
  static Process& create();
  int begin();
  void compute_passes();
  clock::VirtualClock* works_in_time_ = nullptr;                     // null: there is no virtual clock
  static constinit inline std::atomic<Process*> s_process{nullptr};  // outlives exit handlers of the program
};

// ---- operations (perform.cpp) ----
constexpr bool is_atomic(match::OpKind kind) {
  return kind != match::OpKind::put && kind != match::OpKind::get;
}
// Whether bytes of the target come back.
constexpr bool returns(match::OpKind kind) {
  return kind != match::OpKind::put && kind != match::OpKind::atomic;
}
// The initiator of a message, as its target knows it: `from` is its interface.
[[gnu::always_inline]] inline void name_initiator(const match::Interface& from, match::Arrival* arrival) {
  arrival->uid = from.uid;
  arrival->initiator = (from.options & PTL_NI_LOGICAL) != 0 ? match::ProcessId{from.rank, 0}
                                                            : match::ProcessId{from.nid, from.pid};
}
match::Fail fail_of(Errc status);
match::Move move_of(match::OpKind kind);
// Applies an atomic to the owner's memory in its turn. `bytes`: the operands, then what was there before.
Errc change_atomically(Peer& owner, const std::vector<Range>& there, std::uint8_t operation,
                       std::uint8_t datatype, const std::byte* operand, std::vector<std::byte>* bytes);
// What became of an operation at its target.
struct Outcome {
  match::Fail fail = match::kUndeliverable;
  std::uint64_t moved = 0;
  std::uint64_t offset = 0;
  std::uint8_t list = match::kPriority;
  bool no_ack = false;
};
// Carries out one operation of `initiator`, whose match unit and memory may be another process's: where
// there is no clock, a trigger is carried out by the process that raised its counter.
void perform(Peer& initiator, const match::Operation& operation);
// The same by frames, to its end; sleeps until the target has answered. has_pid: whether a process that is
// reached by frames has that pid.
Outcome perform_by_frame(Peer& initiator, const match::Operation& operation, const match::Arrival& arrival,
                         Peer& target);
bool has_pid(nic::ProcessName process, std::uint32_t pid);
// The same under a clock: it begins now, and ends later.
void perform_in_time(clock::Clock& clock, Peer& initiator, const match::Operation& operation,
                     const match::Arrival& arrival, Peer& target);
// The initiator's events and counts of an operation that has ended.
void tell_initiator(Peer& initiator, const match::Operation& operation, const Outcome& outcome);
// A message of so many bytes is moved under the lock of its target's match unit, where both memories are
// within reach of stores.
inline constexpr std::uint64_t kShort = 256;
// Whether a binding's queue or counter may hear of anything.
inline bool hears(const match::Binding& binding) {
  return binding.queue != 0 ||
         (binding.counter != 0 &&
          (binding.options & (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY)) != 0);
}
// Carries out the triggers of `peer` that are due, and those that become due by that.
void run_due(Peer& peer);

// ---- handles ----
// Those of queues and counters have no generation: the handle of one that was freed may name the next one.
//   31..29 kind | 28..27 interface | 26..17 generation | 16..0 index
enum class Kind : std::uint32_t { eq = 1, ct = 2, md = 3, le = 4, me = 5, ni = 6 };
constexpr ptl_handle_any_t make_handle(Kind kind, std::uint32_t interface, std::uint32_t generation,
                                       std::uint32_t index) {
  return static_cast<std::uint32_t>(kind) << 29 | interface << 27 | (generation & 0x3ff) << 17 | index;
}
struct Handle {
  std::uint32_t kind, interface, generation, index;
};
constexpr Handle open_handle(ptl_handle_any_t handle) {
  return {handle >> 29, handle >> 27 & 3, handle >> 17 & 0x3ff, handle & 0x1ffff};
}
// The interface of a handle, PTL_OK; else PTL_ARG_INVALID.
int interface_of(ptl_handle_ni_t handle, std::uint32_t* interface);
// The index of a live queue or counter; 0 for the value that says none. False: neither.
bool find_queue(ptl_handle_eq_t handle, std::uint32_t* index);
bool find_counter(ptl_handle_ct_t handle, std::uint32_t* index);
// Whether a handle is of that interface, or says none.
inline bool is_of(ptl_handle_any_t handle, std::uint32_t interface) {
  return handle == PTL_EQ_NONE || handle == PTL_CT_NONE || open_handle(handle).interface == interface;
}

struct MemoryDescriptor {
  std::atomic<std::uint32_t> state{0};  // generation << 1 | in use
  std::uint32_t interface = 0;
  match::Binding binding{};
};
inline constexpr std::uint32_t kMostDescriptors = 65536;
extern std::array<MemoryDescriptor, kMostDescriptors> g_descriptors;
inline MemoryDescriptor* find_descriptor(ptl_handle_md_t handle) {
  const Handle parts = open_handle(handle);
  if (parts.kind != static_cast<std::uint32_t>(Kind::md) || parts.index >= kMostDescriptors) return nullptr;
  MemoryDescriptor& descriptor = g_descriptors[parts.index];
  // Acquire: pairs with the store that publishes the binding.
  const std::uint32_t state = descriptor.state.load(std::memory_order_acquire);
  if ((state & 1) == 0 || (state >> 1 & 0x3ff) != parts.generation || descriptor.interface != parts.interface)
    return nullptr;
  return &descriptor;
}
void forget_descriptors(std::uint32_t interface);

// ---- limits ----
inline constexpr ptl_size_t kMostBytes = ptl_size_t{1} << 40;
inline constexpr ptl_size_t kMostAtomicBytes = 4096;
ptl_ni_limits_t limits_for(const ptl_ni_limits_t* desired);

// ---- atomics (atomics.cpp) ----
std::uint32_t size_of(ptl_datatype_t type);  // 0: no such type
// Whether `operation` is one of PtlAtomic's (simple) or PtlSwap's, and exists for that type.
bool is_simple(ptl_op_t operation, ptl_datatype_t type);
bool is_swap(ptl_op_t operation, ptl_datatype_t type);
// target = target op source, for `bytes` of items. `operand`: of the swaps that have one.
void apply(ptl_op_t operation, ptl_datatype_t type, std::byte* target, const std::byte* source,
           const std::byte* operand, std::uint64_t bytes);

}  // namespace orrery::portals4

#define ORRERY_PORTALS_NEEDS_INIT                                                          \
  if (::orrery::portals4::Process::get().initialised.load(std::memory_order_acquire) == 0) \
    return PTL_NO_INIT;                                                                    \
  ::orrery::portals4::Process::get().call_begins()
