// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The shared memory of a host directory, version 4. One memfd of kBytes, sealed against resizing:
//
//   0        Header      identity and limits, constant once `ready` is set; the change counter
//   4096     DomainSlot  x kMaxDomains
//   ...      PeSlot      x kMaxPes        constant once `ready` is set
//   ...      ProcessSlot x kMaxProcesses  each written by its process; the phase by any that saw it die
//   ...      EndpointSlot x kMaxEndpoints each written by the process that claimed it
//   ...      WireHeader   x 1             of a job that uses the wire between hosts; stored once
//   ...      WireSlot     x kMaxProcesses where the process of that slot is reached by the wire: written by
//                                         that process, of other hosts by this host's leader (libpmi)
//   ...      BoardLine    x 1 + kMaxProcesses  what their NICs say to all others: the
//                                         first by any, then one each, written by the
//                                         process of that slot (hazard_board.hpp)
//   ...      CallLine     x kMaxProcesses x kCallLines  in which calls its threads sleep (waiting_call.hpp)
//
// A slot is claimed by one compare-and-swap that names the claimer in the same word, filled, and published by
// a second store. So a claimer that dies between the two leaves a slot that says whose it is, and the next
// one to look takes it over: nothing is ever repaired, and nothing is held.
namespace orrery::job::layout {

inline constexpr std::uint64_t kMagic = 0x3172696459524f4f;  // "OORYdir1", little-endian
inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::uint32_t kMaxProcesses = 1024;  // processes of one user's job on one host
inline constexpr std::uint32_t kMaxPes = 1024;
inline constexpr std::uint32_t kMaxEndpoints = 8192;  // eight attached CDMs a process
inline constexpr std::uint32_t kMaxDomains = 256;     // a protection tag is a byte
inline constexpr std::size_t kSocketNameBytes = 48;   // a file in the user's folder, or an abstract name

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t total_bytes;
  std::uint32_t process_bytes, endpoint_bytes, domain_bytes, pe_bytes;  // sizeof of each slot
  std::array<std::uint8_t, 16> boot_id;  // of the kernel that this memory lives in
  std::uint64_t job_id;                  // random, never 0
  std::uint64_t secret;                  // random: a process that knows it can read this memory
  std::uint32_t pe_count;                // 0: the number of PEs is not known
  std::uint32_t node_count;
  std::uint32_t allowed_cores;  // cores that the job's processes may run on
  std::uint32_t reserved;
  alignas(64) std::atomic<std::uint32_t> ready;  // 1 once all of the above is written
  std::atomic<std::uint32_t> change_count;       // futex word: bumped by every join, publish and withdrawal
};

inline constexpr std::size_t kDomainLimits = 5;  // by Resource

// Names a domain. Never reused: domains live as long as the directory.
struct alignas(64) DomainSlot {
  std::atomic<std::uint64_t> key;                    // 0 = free, else 1 << 63 | ptag << 32 | cookie
  std::atomic<std::uint64_t> job_id;                 // the launcher's own, plus 1; 0: none was given
  std::atomic<std::uint32_t> limits[kDomainLimits];  // plus 1; 0: none
  std::atomic<std::uint32_t> translation_size;       // of its range of the NICs' tables; 0: none
};

struct PeSlot {
  std::uint32_t nid;
  std::uint32_t nic_address;
  std::uint32_t node_index;  // dense, in the order of first mention
  std::uint32_t reserved;
};

enum class ProcessPhase : std::uint8_t { free = 0, claimed = 1, live = 2, dead = 3 };

struct alignas(64) ProcessSlot {
  std::atomic<std::uint64_t> state;       // phase [3:0] | pid [27:4] | generation [63:32]
  std::atomic<std::uint64_t> start_time;  // of pid, clock ticks since boot: a reused pid differs
  std::atomic<std::uint64_t>
      request_nonce;  // a client of the descriptor server proves with it that it reads this
  std::atomic<std::uint64_t> reply_nonce;  // and the server answers with this one
  std::atomic<std::int32_t> rank;          // -1: unknown
  std::atomic<std::uint32_t> waiting_in;   // WaitPlace, for the report of a hang
  std::atomic<std::uint64_t> socket_name[kSocketNameBytes / 8];
  std::atomic<std::uint64_t> pid_namespace;  // in which pid counts; 0: unknown
};

enum class EndpointPhase : std::uint8_t { never = 0, claimed = 1, tentative = 2, live = 3, withdrawn = 4 };

struct alignas(32) EndpointSlot {
  std::atomic<std::uint64_t>
      state;  // phase [3:0] | process index [15:4] | version [31:16] | its generation [63:32]
  std::atomic<std::uint64_t> domain_and_address;  // domain [63:32] | NIC address [31:0]
  std::atomic<std::uint32_t> instance;
  std::atomic<std::uint32_t> nic_index;
  std::uint64_t reserved;
};

inline constexpr std::size_t kWireAddressBytes = 224;

// The job as its hosts agreed on it. Written by the process that moves `stage` from none to claimed; all
// write the same.
struct alignas(64) WireHeader {
  std::atomic<std::uint32_t> stage;  // 0 none, 1 claimed, 2 ready
  std::atomic<std::uint32_t> hosts;
  std::atomic<std::uint64_t> job;  // number of the job, the same on all hosts
  std::atomic<std::uint64_t> secret[2];
};

// `state` changes last when the rest is written, and first when it is written anew: odd means "being
// written".
struct alignas(64) WireSlot {
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> bytes;       // of the address; 0: none
  std::atomic<std::uint32_t> generation;  // of the process, on its own host
  std::atomic<std::uint32_t> host;        // 0: this host; else the number of its host, from 1
  std::atomic<std::uint64_t> address[kWireAddressBytes / 8];
};

// An odd word says that its writer is in the middle of a change: the next owner of the slot ends what its
// predecessor left so.
struct alignas(64) BoardLine {
  std::atomic<std::uint64_t> word[8];
};

inline constexpr std::uint32_t kCallLines = 16;    // threads of a process that are told of
inline constexpr std::size_t kCallNameBytes = 48;  // longer names are cut

// A thread that sleeps in a call. Claimed by one compare-and-swap, free again by one store; what a process
// that died left is of another generation than its successor's and may be claimed.
struct alignas(64) CallLine {
  std::atomic<std::uint64_t> claim;  // generation [63:32] | thread [31:0]; 0: free
  std::atomic<std::int64_t> since;   // CLOCK_MONOTONIC, ns; 0: the name is being written
  std::atomic<std::uint64_t> name[kCallNameBytes / 8];
};

inline constexpr std::size_t kDomainsAt = 4096;
inline constexpr std::size_t kPesAt = kDomainsAt + kMaxDomains * sizeof(DomainSlot);
inline constexpr std::size_t kProcessesAt = kPesAt + kMaxPes * sizeof(PeSlot);
inline constexpr std::size_t kEndpointsAt = kProcessesAt + kMaxProcesses * sizeof(ProcessSlot);
inline constexpr std::size_t kWireHeaderAt = kEndpointsAt + kMaxEndpoints * sizeof(EndpointSlot);
inline constexpr std::size_t kWireSlotsAt = kWireHeaderAt + sizeof(WireHeader);
inline constexpr std::size_t kBoardAt = kWireSlotsAt + kMaxProcesses * sizeof(WireSlot);
inline constexpr std::size_t kBoardBytes = (1 + kMaxProcesses) * sizeof(BoardLine);
inline constexpr std::size_t kCallsAt = kBoardAt + kBoardBytes;
inline constexpr std::size_t kCallsBytes = kMaxProcesses * kCallLines * sizeof(CallLine);
inline constexpr std::size_t kBytes = (kCallsAt + kCallsBytes + 4095) / 4096 * 4096;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(offsetof(Header, magic) == 0 && offsetof(Header, version) == 8);
static_assert(offsetof(Header, header_bytes) == 12 && offsetof(Header, total_bytes) == 16);
static_assert(offsetof(Header, process_bytes) == 24 && offsetof(Header, boot_id) == 40);
static_assert(offsetof(Header, job_id) == 56 && offsetof(Header, secret) == 64);
static_assert(offsetof(Header, pe_count) == 72 && offsetof(Header, node_count) == 76);
static_assert(offsetof(Header, allowed_cores) == 80);
static_assert(offsetof(Header, ready) == 128 && offsetof(Header, change_count) == 132);
static_assert(offsetof(CallLine, since) == 8 && offsetof(CallLine, name) == 16 && sizeof(CallLine) == 64);
static_assert(kCallsAt % alignof(CallLine) == 0);
static_assert(sizeof(Header) == 192 && sizeof(Header) <= kDomainsAt);
static_assert(offsetof(DomainSlot, job_id) == 8 && offsetof(DomainSlot, limits) == 16 &&
              offsetof(DomainSlot, translation_size) == 36 && sizeof(DomainSlot) == 64);
static_assert(sizeof(PeSlot) == 16);
static_assert(offsetof(ProcessSlot, state) == 0 && offsetof(ProcessSlot, start_time) == 8);
static_assert(offsetof(ProcessSlot, request_nonce) == 16 && offsetof(ProcessSlot, reply_nonce) == 24);
static_assert(offsetof(ProcessSlot, rank) == 32 && offsetof(ProcessSlot, waiting_in) == 36);
static_assert(offsetof(ProcessSlot, socket_name) == 40 && offsetof(ProcessSlot, pid_namespace) == 88 &&
              sizeof(ProcessSlot) == 128);
static_assert(offsetof(EndpointSlot, state) == 0 && offsetof(EndpointSlot, domain_and_address) == 8);
static_assert(offsetof(EndpointSlot, instance) == 16 && offsetof(EndpointSlot, nic_index) == 20);
static_assert(sizeof(EndpointSlot) == 32);
static_assert(offsetof(WireHeader, job) == 8 && offsetof(WireHeader, secret) == 16 &&
              sizeof(WireHeader) == 64);
static_assert(offsetof(WireSlot, host) == 12 && offsetof(WireSlot, address) == 16 && sizeof(WireSlot) == 256);
static_assert(kWireHeaderAt % 64 == 0 && kBoardAt % 64 == 0 && sizeof(BoardLine) == 64);
static_assert(kProcessesAt % 64 == 0 && kEndpointsAt % 64 == 0);
static_assert(kMaxProcesses <= 4096, "a process index has 12 bits in an endpoint's state");

}  // namespace orrery::job::layout
