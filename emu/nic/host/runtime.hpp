// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/clock/clock.hpp"
#include "emu/job/job.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/cross_attach.hpp"
#include "emu/memory/peer_memory.hpp"
#include "emu/memory/unmapping.hpp"
#include "emu/nic/host/wire_watch.hpp"
#include "emu/nic/nic.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/wire/ofi_wire.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace orrery::nic {

// The composition root: the one place that names the concrete parts. Ties the process's NIC to its job, its
// memory file, its service thread and its peers. One per process, made by the first API that needs it.
//
// Threads: of_process and the members from any thread; the NIC has its own rules.
// Invariants: (1) a fork()ed child has none until it asks, and then one of its own; (2) the NIC's segment,
// the memory file and the doorbell are offered to peers only when all three work.
// Usage: auto runtime = Runtime::of_process();  runtime.value()->nic().open_port(domain, address, id);
class Runtime final : public HostServices {
 public:
  // Joins the job and starts the NIC on the first call. May block for some milliseconds.
  // Errors: those of the parts; the log says why.
  static Result<Runtime*> of_process();
  // The process's clock, by what the environment chose; null: raw time. The first call joins the job's, and
  // may block until PE 0 has made it. Errors: those of the choice and of SharedClock::open; the log says why.
  // `first`: the process that is PE 0, where the caller knows it.
  static Result<clock::Clock*> clock_of_process(job::ProcessRef first = {});
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Nic& nic() { return *nic_; }
  job::Job& job() { return job_; }
  memory::AddressSpace& memory() { return *memory_; }

  // Opens our end of the wire between hosts and says in the host directory where it is; nothing when it is
  // open. Needed before processes of other hosts can reach us (libpmi does it when the job has more than
  // one); ORRERY_WIRE=ofi does it at the start. Errors: unsupported (also under a clock), system (also after
  // one that failed half way); the log says why and what could be used.
  Status open_wire();

  // HostServices
  Result<Range> inspect(std::uint64_t address, std::uint64_t length) override;
  Status adopt(std::uint64_t begin, std::uint64_t end, SwitchGuard& guard) override;
  Pages adoptable_around(std::uint64_t page, std::uint64_t low, std::uint64_t high) override;
  void cut_off(std::uint64_t begin, std::uint64_t end) override;
  void settle(std::uint64_t begin, std::uint64_t end) override;
  void run_on_service_thread(void (*work)(void*), void* argument) override;
  ProcessName self() override {
    return {static_cast<wire::ProcessSlot>(job_.self().index), job_.self().generation};
  }
  Result<ProcessName> find_port(std::uint16_t domain, std::uint32_t nic_address,
                                std::uint32_t instance) override;
  Result<ProcessName> process_in(wire::ProcessSlot slot) override;
  Result<ProcessName> find_process(std::uint32_t nic_address, wire::ProcessSlot slot) override;
  std::vector<ProcessName> remote_behind(std::uint32_t nic_address) override;
  Result<PeerRoute> connect(ProcessName process) override;
  bool alive(ProcessName process) override;
  bool slot_alive(wire::ProcessSlot slot) override;
  bool slot_stopped(wire::ProcessSlot slot) override;
  static_assert(sizeof(HazardBoard) == job::layout::kBoardBytes &&
                kMaxProcesses == job::layout::kMaxProcesses);
  HazardBoard* hazard_board() override { return reinterpret_cast<HazardBoard*>(job_.directory().board()); }
  void watch(ProcessName process) override;
  void wire_lost(wire::ProcessSlot slot) override;
  void attend_wire(bool soon) override;
  void postpone_service(std::int64_t ns) override;
  void post_to_wire(std::uint64_t polls) override { wire_watch_.before_post(polls); }
  void hand_wire_back() override;
  void ring(ProcessName process) override;
  void start_heartbeat() override;
  void ring_self() override;
  Errc attach_write(ProcessName process, const MrtEntry& entry, std::uint64_t word, std::uint64_t to,
                    const std::byte* from, std::uint64_t bytes) override;
  Errc attach_read(ProcessName process, std::byte* to, std::uint64_t from, std::uint64_t bytes) override;
  Errc guarded(Errc (*body)(void*), void* argument) override;
  clock::Clock* clock() override { return clock_; }
  WaitBudget wait_budget() override { return job_.wait_budget(); }

 private:
  // What we hold of one peer besides its NIC's link.
  struct Contact {
    std::uint32_t generation = 0;
    UniqueFd doorbell;
    memory::CrossAttach attach;
    bool can_attach = false;
  };

  // Where the wire finds processes whose first frame comes before ours. Called under the NIC's lock.
  struct Addresses final : wire::PeerAddresses {
    job::HostDirectory& directory;
    explicit Addresses(job::HostDirectory& d) : directory(d) {}
    std::vector<std::byte> address_of(std::uint32_t rank) override;
  };

  // The program's own calls that unmap memory pass through the NIC.
  struct Unmaps final : memory::UnmapListener {
    Runtime& runtime;
    explicit Unmaps(Runtime& r) : runtime(r) {}
    int before(memory::Range range) override {
      return runtime.nic_->regions().leave_pages(range.begin, range.end);
    }
    void after(int token) override { runtime.nic_->regions().left_pages(token); }
  };

  explicit Runtime(job::Job& job) : job_(job) {}
  void end();
  static Result<std::unique_ptr<Runtime>> create();
  Status make_segment();
  void on_doorbell();
  void on_heartbeat();
  void tick();
  bool serve();

  // runtime_wire.cpp
  Status start_wire();
  void stop_wire();
  bool goes_by_wire(wire::ProcessSlot slot) const;
  Result<PeerRoute> connect_by_wire(ProcessName process);
  Status watch_death(ProcessName process);
  // The process of another host in that slot. Errors: unreachable.
  Result<ProcessName> remote_in(wire::ProcessSlot slot) const;
  bool rest_wire(bool polls);
  bool program_polls();
  void on_wire();
  void on_wire_timer();

  job::Job& job_;
  bool ended_ = false;
  clock::Clock* clock_ = nullptr;
  std::unique_ptr<memory::AddressSpace> memory_;
  UniqueFd segment_fd_;
  void* segment_ = nullptr;
  std::uint64_t segment_bytes_ = 0;
  UniqueFd doorbell_;
  UniqueFd heartbeat_;  // timerfd
  // Between hosts; before the NIC, which uses it to its end.
  Lock<LockRank::opened_wire> wire_mu_;
  Addresses addresses_{job_.directory()};
  std::unique_ptr<wire::OfiWire> wire_;    // set once, under wire_mu_
  std::atomic<bool> wire_is_open_{false};  // wire_ and what follows will not change
  bool wire_for_all_ = false;              // constant after make_segment()
  UniqueFd wire_timer_;                    // timerfd: the wire's next deadline
  // How the service thread is woken for the wire. Used once wire_is_open_.
  struct WireSystem final : WireWatch::System {
    Runtime& runtime;
    explicit WireSystem(Runtime& r) : runtime(r) {}
    bool watch(bool on) override;
    bool set_timer(std::int64_t at_ns) override;
    std::int64_t now_ns() override { return monotonic_ns(); }
  } wire_system_{*this};
  WireWatch wire_watch_{wire_system_};
  std::atomic<bool> handed_back_{false};  // the program polled, but is about to sleep
  // When the service thread looks after the wire at the latest.
  std::atomic<std::int64_t> wire_wakes_at_{INT64_MAX};
  NicView empty_nic_;  // the empty NIC that stands for those of other hosts
  std::array<std::atomic<std::uint64_t>, kMaxProcesses> lost_{};     // generation + 1 of the last one lost
  std::array<std::atomic<std::uint64_t>, kMaxProcesses> refused_{};  // generation + 1 of another user's
  std::array<std::atomic<std::uint64_t>, kMaxProcesses> told_{};     // of one that does not hand out its NIC
  std::unique_ptr<Nic> nic_;
  Unmaps unmaps_{*this};
  bool hears_of_unmaps_ = false;  // service thread
  std::atomic<bool> ticking_{false};
  std::atomic<std::int64_t> served_ns_{0};  // when the service thread last did its share
  Lock<LockRank::contacts> contacts_mu_;
  // Written under contacts_mu_; a published contact does not change.
  std::array<std::atomic<Contact*>, kMaxProcesses> contacts_{};
  std::vector<std::unique_ptr<Contact>> contact_storage_;
  std::vector<ProcessName> watched_;  // without being connected to; guarded by contacts_mu_
};

}  // namespace orrery::nic
