// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include <fmt/format.h>

namespace orrery::sim {

namespace {

template <typename T>
T load(const std::uint8_t* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(at[i]) << (8 * i));
  return value;
}
template <typename T>
void store(std::vector<std::uint8_t>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

// Waits that no put or get of the trace can satisfy would hang the replay.
Refusal check_waits(const Trace& trace) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sent, awaited;
  for (const TraceRecord& r : trace.records) {
    if (r.kind == TraceKind::put) sent[{r.process, r.peer}] += r.bytes;
    if (r.kind == TraceKind::ask) sent[{r.peer, r.process}] += r.bytes;
    if (r.kind == TraceKind::wait) awaited[{r.peer, r.process}] += r.bytes;
  }
  for (const auto& [pair, bytes] : awaited) {
    const auto found = sent.find(pair);
    const std::uint64_t most = found == sent.end() ? 0 : found->second;
    if (bytes > most)
      return {fmt::format(
          "trace: process {} waits for {} bytes from process {}: expected at most the {} that it puts or is "
          "asked for",
          pair.second, bytes, pair.first, most)};
  }
  return {};
}

}  // namespace

Refusal parse_trace(std::span<const std::uint8_t> file, Trace* out) {
  using namespace trace_format;
  if (file.size() < kHeaderBytes)
    return {fmt::format("trace: {} bytes, cut short: expected at least a header of {}", file.size(),
                        kHeaderBytes)};
  if (std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    return {"trace: expected a file that begins with ORTRACE1"};
  const auto version = load<std::uint32_t>(file.data() + 8);
  if (version == 0 || version > kVersion)
    return {fmt::format("trace: version {}: expected 1 to {}", version, kVersion)};
  const TraceKind last_kind = version == 1 ? TraceKind::wait : TraceKind::ask;
  Trace trace;
  trace.processes = load<std::uint32_t>(file.data() + 12);
  if (trace.processes == 0 || trace.processes > kMaxProcesses)
    return {fmt::format("trace: {} processes: expected 1 to {}", trace.processes, kMaxProcesses)};
  const auto records = load<std::uint64_t>(file.data() + 16);
  const std::size_t body = file.size() - kHeaderBytes;
  if (body % kRecordBytes != 0 || records != body / kRecordBytes)
    return {fmt::format("trace: {} records announced, {} bytes of records: expected {} bytes each", records,
                        body, kRecordBytes)};
  std::vector<std::uint64_t> last(trace.processes, 0);
  trace.records.reserve(static_cast<std::size_t>(records));
  for (std::size_t i = 0; i < records; ++i) {
    const std::uint8_t* at = file.data() + kHeaderBytes + i * kRecordBytes;
    TraceRecord r;
    r.at_ns = load<std::uint64_t>(at);
    r.process = load<std::uint32_t>(at + 8);
    r.peer = load<std::uint32_t>(at + 12);
    r.bytes = load<std::uint32_t>(at + 16);
    const auto kind = load<std::uint32_t>(at + 20);
    if (r.process >= trace.processes || r.peer >= trace.processes)
      return {fmt::format("trace: record {}: process {} and peer {}: expected less than {}", i, r.process,
                          r.peer, trace.processes)};
    if (r.process == r.peer)
      return {fmt::format("trace: record {}: process {} with itself: expected two", i, r.process)};
    if (kind > static_cast<std::uint32_t>(last_kind))
      return {fmt::format("trace: record {}: kind {}: expected 0 put, 1 get, 2 wait{}", i, kind,
                          version == 1 ? "" : ", 3 ask")};
    r.kind = static_cast<TraceKind>(kind);
    if (r.bytes == 0 || r.bytes > kMaxBytes)
      return {fmt::format("trace: record {}: {} bytes: expected 1 to {}", i, r.bytes, kMaxBytes)};
    if (r.at_ns < last[r.process] || r.at_ns > kMaxNs)
      return {fmt::format(
          "trace: record {}: time {} ns after {} ns of the same process: expected no less, up to 2^50", i,
          r.at_ns, last[r.process])};
    last[r.process] = r.at_ns;
    trace.records.push_back(r);
  }
  if (Refusal no = check_waits(trace); no.refused()) return no;
  *out = std::move(trace);
  return {};
}

Refusal read_trace(const std::string& path, Trace* out) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return {fmt::format("trace '{}': cannot be opened", path)};
  std::vector<std::uint8_t> bytes;
  std::uint8_t block[65536];
  // What never ends is a device, not a trace.
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  for (std::size_t got; bytes.size() <= kLargest && (got = std::fread(block, 1, sizeof block, file)) > 0;)
    bytes.insert(bytes.end(), block, block + got);
  std::fclose(file);
  if (bytes.size() > kLargest)
    return {fmt::format("trace '{}': more than {} bytes, which is the limit", path, kLargest)};
  return parse_trace(bytes, out);
}

std::vector<std::uint8_t> encode_trace(const Trace& trace) {
  std::vector<std::uint8_t> out(trace_format::kMagic, trace_format::kMagic + sizeof trace_format::kMagic);
  store<std::uint32_t>(out, trace_format::kVersion);
  store<std::uint32_t>(out, trace.processes);
  store<std::uint64_t>(out, trace.records.size());
  store<std::uint64_t>(out, 0);
  for (const TraceRecord& r : trace.records) {
    store(out, r.at_ns);
    store(out, r.process);
    store(out, r.peer);
    store(out, r.bytes);
    store(out, static_cast<std::uint32_t>(r.kind));
  }
  return out;
}

TraceTraffic::TraceTraffic(const Trace& trace, const std::vector<Node>& places, Node nodes,
                           std::uint32_t payload_max, double tick_ns)
    : process_of_(nodes, kNobody),
      places_(places),
      processes_(trace.processes),
      payload_max_(payload_max),
      tick_ns_(tick_ns) {
  for (std::uint32_t p = 0; p < trace.processes; ++p) process_of_[places[p]] = p;
  for (const TraceRecord& r : trace.records) {
    processes_[r.process].records.push_back(r);
    expected_ += (std::uint64_t{r.bytes} + payload_max - 1) / payload_max * (r.kind != TraceKind::wait) +
                 (r.kind == TraceKind::get || r.kind == TraceKind::ask);
  }
  for (Process& process : processes_)
    if (!process.records.empty())
      process.ready = static_cast<Tick>(static_cast<double>(process.records[0].at_ns) / tick_ns);
}

// The record at hand is done: the next may start after the time that lay between the two.
void TraceTraffic::advance(Process& process, Tick now) {
  const std::uint64_t was = process.records[process.at].at_ns;
  ++process.at;
  process.sent = 0;
  process.asked = false;
  if (process.at < process.records.size())
    process.ready =
        std::max(now, process.ready) +
        static_cast<Tick>(static_cast<double>(process.records[process.at].at_ns - was) / tick_ns_);
}

namespace {
std::uint8_t part_of_message(std::uint64_t before, bool more) {
  return static_cast<std::uint8_t>((before != 0 ? kFollows : 0) | (more ? kMore : 0));
}
}  // namespace

Next TraceTraffic::piece(Process& process, std::uint32_t peer, std::uint64_t bytes, Tick now, Send& out) {
  out.dst = places_[peer];
  out.payload = static_cast<std::uint16_t>(std::min<std::uint64_t>(payload_max_, bytes - process.sent));
  out.created = now;
  out.flags = part_of_message(process.sent, bytes - process.sent > out.payload);
  out.tag = 0;
  return Next::send;
}

Next TraceTraffic::next(Node node, std::uint32_t fifo, Tick now, Random&, Send& out) {
  // One FIFO carries a node's trace, so that what it does has one order.
  const std::uint32_t self = process_of_[node];
  if (fifo != 0 || self == kNobody) return Next::idle;
  Process& process = processes_[self];
  if (!process.answers.empty()) {
    TraceRecord& answer = process.answers.front();
    out.dst = places_[answer.process];
    out.payload = static_cast<std::uint16_t>(std::min(payload_max_, answer.bytes));
    out.created = now;
    out.flags = part_of_message(answer.at_ns, answer.bytes > out.payload);
    out.tag = 0;
    answer.at_ns += out.payload;  // of an answer: bytes that went
    answer.bytes -= out.payload;
    if (answer.bytes == 0) process.answers.erase(process.answers.begin());
    return Next::send;
  }
  while (process.at < process.records.size()) {
    const TraceRecord& r = process.records[process.at];
    if (process.ready > now) {
      out.created = process.ready;
      return Next::later;
    }
    if (r.kind == TraceKind::put) {
      const Next next = piece(process, r.peer, r.bytes, now, out);
      process.sent += out.payload;
      if (process.sent >= r.bytes) advance(process, now);
      return next;
    }
    const bool asks = r.kind == TraceKind::ask;
    if (asks || (r.kind == TraceKind::get && !process.asked)) {
      process.asked = true;
      out.dst = places_[r.peer];
      out.payload = 1;
      out.created = now;
      out.tag = r.bytes;  // the request: how much to send back
      if (asks) advance(process, now);
      return Next::send;
    }
    const std::uint64_t have = process.arrived[r.peer] - process.used[r.peer];
    if (have < r.bytes) return Next::idle;
    process.used[r.peer] += r.bytes;
    advance(process, now);
  }
  return Next::idle;
}

bool TraceTraffic::delivered(Node node, const Packet& packet, Tick, bool) {
  const std::uint32_t self = process_of_[node];
  if (self == kNobody) return false;
  Process& process = processes_[self];
  const std::uint32_t from = process_of_[packet.src];
  if (packet.tag != 0) {
    TraceRecord answer;
    answer.process = from;
    answer.bytes = packet.tag;
    // By process number, so that two requests of one tick have one order.
    const auto place = std::upper_bound(
        process.answers.begin() + (process.answers.empty() ? 0 : 1), process.answers.end(), answer,
        [](const TraceRecord& a, const TraceRecord& b) { return a.process < b.process; });
    process.answers.insert(place, answer);
  } else {
    process.arrived[from] += packet.payload;
  }
  return true;
}

std::uint32_t TraceTraffic::completed() const {
  std::uint32_t count = 0;
  for (const Process& process : processes_) count += process.at == process.records.size();
  return count;
}

Workload::Replayed TraceTraffic::replayed() const {
  Replayed all;
  for (const Process& process : processes_) {
    all.records += process.records.size();
    all.never_ran += process.records.size() - process.at;
  }
  return all;
}

}  // namespace orrery::sim
