// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/wait.hpp"
#include "emu/clock/clock.hpp"
#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/hazard_board.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/wire/packet.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace orrery::nic {

// One process for ever: a later one in the same slot has another generation.
struct ProcessName {
  wire::ProcessSlot slot = 0;
  std::uint32_t generation = 0;
  friend constexpr bool operator==(const ProcessName&, const ProcessName&) = default;
};

// How a peer's NIC can be reached from here, as the environment found it.
struct PeerRoute {
  ProcessName process;
  NicView nic;
  std::unique_ptr<AddressMap> memory;  // null: its memory cannot be mapped here
  bool same_address_space = false;     // its addresses are ours: always direct
  bool strong_hazards = false;         // announce accesses with a full barrier
  // It shares no memory with us: everything goes by the wire between hosts, where it has this address, and
  // `nic` is an empty NIC of our own in which nothing is registered.
  bool by_wire = false;
  std::vector<std::byte> wire_address;
};

// What a NIC needs from the process and the host around it. Never called on the hot path.
// The production one stands in runtime.cpp; tests bring their own world.
class HostServices {
 public:
  virtual ~HostServices() = default;

  // ---- our own memory ----
  struct Range {
    bool readable = false;
    bool writable = false;
    bool direct = false;  // every page is in the memory file
  };
  // What [address, address + length) is. Errors: invalid_param (not all of it is mapped), permission (not all
  // of it may be read).
  virtual Result<Range> inspect(std::uint64_t address, std::uint64_t length) = 0;
  // Moves the range into the memory file, part by part. Before the pages of a part are taken away from
  // writers, `before_switch` runs: peers that copy into them must be gone when it returns true; false stops
  // the adoption. Service thread only.
  // Errors: whatever makes the range impossible to adopt; what was not moved is as it was.
  class SwitchGuard {
   public:
    virtual bool before_switch(std::uint64_t begin, std::uint64_t end) = 0;

   protected:
    ~SwitchGuard() = default;
  };
  virtual Status adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) = 0;
  // The pages around `page` within [low, high) that may be moved into the memory file without being
  // registered for themselves: writable, and each call that takes them away, or their right to be written,
  // tells Regions::leave_pages() first. Empty: not even that one. Service thread only.
  struct Pages {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  virtual Pages adoptable_around(std::uint64_t page, std::uint64_t low, std::uint64_t high) = 0;
  // Gives the pages private memory again: a peer that still stores through its mapping of the file reaches
  // pages that no process uses any more.
  virtual void cut_off(std::uint64_t begin, std::uint64_t end) = 0;
  // Returns when no adoption that overlaps the range is under way.
  virtual void settle(std::uint64_t begin, std::uint64_t end) = 0;
  // Runs `work` on the service thread and waits for it.
  virtual void run_on_service_thread(void (*work)(void*), void* argument) = 0;

  // ---- peers ----
  // This process.
  virtual ProcessName self() = 0;
  // The live process that opened a port of that domain, NIC address and instance number.
  // Errors: no_match (none, yet), unreachable (it is dead).
  virtual Result<ProcessName> find_port(std::uint16_t domain, std::uint32_t nic_address,
                                        std::uint32_t instance) = 0;
  // The live process in a slot. Errors: unreachable (none).
  virtual Result<ProcessName> process_in(wire::ProcessSlot slot) = 0;
  // The live process in a slot of the host, if it lives behind that NIC address.
  // Errors: unreachable (the slot is empty), no_match (behind another address).
  virtual Result<ProcessName> find_process(std::uint32_t nic_address, wire::ProcessSlot slot) = 0;
  // The live processes of other hosts behind that NIC address.
  virtual std::vector<ProcessName> remote_behind(std::uint32_t) { return {}; }
  // The first connection to a process clears what a predecessor in our slot announced in its segment; a later
  // one clears nothing, for threads may have announced their accesses by then.
  virtual Result<PeerRoute> connect(ProcessName process) = 0;
  virtual bool alive(ProcessName process) = 0;
  // What this process shares with all whose memory it can reach; null: they share none. Outlives the NIC.
  virtual HazardBoard* hazard_board() { return nullptr; }
  // Whether a process lives in the slot: else none can be in the middle of an access.
  virtual bool slot_alive(wire::ProcessSlot slot) = 0;
  // Whether every thread of the process in `slot` is stopped (SIGSTOP): none is in a system call.
  virtual bool slot_stopped(wire::ProcessSlot slot) = 0;
  // From now on Attendant::peer_died is told of that process too, even without a connection to it. Service
  // thread.
  virtual void watch(ProcessName) {}
  // Wakes the service thread of a process that sleeps. A system call.
  virtual void ring(ProcessName process) = 0;
  // The wire between hosts has lost that process: peer_died() is to be called by the service thread.
  virtual void wire_lost(wire::ProcessSlot) {}
  // A thread of the program handed something to the wire, and may not poll: the service thread is to keep the
  // wire's timers. `soon`: some of it could not go out yet. Cheap when it knows.
  virtual void attend_wire(bool /*soon*/) {}
  // A thread of the program moves frames along, or stops to: the service thread's next look comes after that
  // time. A system call.
  virtual void postpone_service(std::int64_t /*ns*/) {}
  // A thread of the program is about to post to the wire; `polls`: how often it has polled so far. Cheap when
  // no sender would wake the service thread.
  virtual void post_to_wire(std::uint64_t /*polls*/) {}
  // A thread of the program is about to sleep: the service thread takes in what comes from now on.
  virtual void hand_wire_back() {}
  // Asks our own service thread to call CollectiveEngine::heartbeat() every kHeartbeatNs until it returns
  // false, and then heart_stopped().
  static constexpr std::int64_t kHeartbeatNs = 2'000'000;
  virtual void start_heartbeat() {}
  // Asks our own service thread to call serve() soon.
  virtual void ring_self() = 0;
  // Copies between our memory and a peer's by the kernel. unsupported: not possible here, ask no more.
  // A write is handed to the kernel only while the entry's control word is `word`, whatever stops the thread
  // on the way there (not_done: it has changed).
  virtual Errc attach_write(ProcessName process, const MrtEntry& entry, std::uint64_t word, std::uint64_t to,
                            const std::byte* from, std::uint64_t bytes) = 0;
  virtual Errc attach_read(ProcessName process, std::byte* to, std::uint64_t from, std::uint64_t bytes) = 0;
  // Runs `body`, which touches our own memory on behalf of a frame; a page that is not there is an error, not
  // a signal. `body` must own nothing that needs destruction. Errors: those of `body`, bounds.
  virtual Errc guarded(Errc (*body)(void*), void* argument) = 0;
  // When operations count as done; none: at once. Outlives the NIC.
  virtual clock::Clock* clock() { return nullptr; }
  // How a blocking wait spends its time before it sleeps.
  virtual WaitBudget wait_budget() = 0;
};

// Turns a lambda into what HostServices::guarded takes.
template <typename Body>
Errc run_guarded(HostServices& services, Body body) {
  return services.guarded([](void* argument) { return (*static_cast<Body*>(argument))(); }, &body);
}

}  // namespace orrery::nic
