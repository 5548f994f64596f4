// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Communication traces: what the processes of a run asked of the network, for replay in the simulator.
// The format is described in docs/simulator.md, "Traces".
#pragma once

#include "emu/sim/scene/result.hpp"
#include "emu/sim/workload/workload.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace orrery::sim {

enum class TraceKind : std::uint8_t {
  put = 0,   // process -> peer, bytes
  get = 1,   // process asks peer for bytes: they travel peer -> process, and process waits for them
  wait = 2,  // process goes on once `bytes` more bytes from peer have arrived
  ask = 3,   // a get that process does not wait for: its bytes count as arrived from peer (version 2)
};

struct TraceRecord {
  std::uint64_t at_ns = 0;  // since the start of the run, by the process's clock
  std::uint32_t process = 0, peer = 0;
  std::uint32_t bytes = 0;
  TraceKind kind = TraceKind::put;
};

struct Trace {
  std::uint32_t processes = 0;
  std::vector<TraceRecord> records;
};

// DO NOT CHANGE: the file format, little-endian. Version 1 knows no `ask`.
namespace trace_format {
inline constexpr char kMagic[8] = {'O', 'R', 'T', 'R', 'A', 'C', 'E', '1'};
inline constexpr std::size_t kHeaderBytes = 32, kRecordBytes = 24;
inline constexpr std::uint32_t kVersion = 2, kMaxProcesses = 1u << 20, kMaxBytes = 1u << 30;
inline constexpr std::uint64_t kMaxNs = std::uint64_t{1} << 50;
}  // namespace trace_format

// Reads a whole trace. A refusal says in one line what is wrong and what is accepted; then `out` is
// untouched. Every field is checked: sizes against the file's length, processes, kinds, bytes, times that
// run backwards, waits for more than is ever sent.
Refusal parse_trace(std::span<const std::uint8_t> file, Trace* out);
Refusal read_trace(const std::string& path, Trace* out);
// The bytes of a trace file, version 2. REQUIRES: what parse_trace accepts.
std::vector<std::uint8_t> encode_trace(const Trace& trace);

// Replays a trace: process p is node places[p]. Each process executes its records in order; the time
// between two of them is kept, waiting for the network comes on top.
class TraceTraffic final : public Workload {
 public:
  // REQUIRES: places.size() == trace.processes, places distinct and < nodes; fifos >= 1.
  TraceTraffic(const Trace& trace, const std::vector<Node>& places, Node nodes, std::uint32_t payload_max,
               double tick_ns);
  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override;
  std::uint64_t expected_packets() const override { return expected_; }
  // Processes that executed all their records.
  std::uint32_t completed() const;
  Replayed replayed() const override;

 private:
  struct Process {
    std::vector<TraceRecord> records;
    std::size_t at = 0;                                              // next record
    std::uint64_t sent = 0;                                          // bytes of it already sent
    Tick ready = 0;                                                  // when it may start
    bool asked = false;                                              // a get's request is out
    std::vector<TraceRecord> answers;                                // gets of others that this node serves
    std::unordered_map<std::uint32_t, std::uint64_t> arrived, used;  // bytes by peer
  };
  void advance(Process& process, Tick now);
  Next piece(Process& process, std::uint32_t peer, std::uint64_t bytes, Tick now, Send& out);
  static constexpr std::uint32_t kNobody = ~0u;
  std::vector<std::uint32_t> process_of_;  // by node
  std::vector<Node> places_;
  std::vector<Process> processes_;
  std::uint32_t payload_max_;
  double tick_ns_;
  std::uint64_t expected_ = 0;
};

}  // namespace orrery::sim
