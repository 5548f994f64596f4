// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/trace.hpp"

#include "emu/base/output_file.hpp"
#include "emu/base/unique_fd.hpp"
#include "emu/model/operation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <unistd.h>

namespace orrery::tool {

namespace {

// False: errno says why.
bool read_all(int fd, std::string* text) {
  std::vector<char> part(1 << 16);
  for (;;) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    text->append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Records read_all_records(const std::string& prefix, std::uint32_t pes, std::string* problem) {
  Records all;
  std::vector<clock::Recorded>& records = all.operations;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    const std::string name = fmt::format("{}.{}", prefix, pe);
    const UniqueFd fd(open_created(name.c_str()));
    if (!fd.valid() && errno == ENOENT) {
      *problem = fmt::format("{} cannot be read: PE {} did not end under virtual time", name, pe);
      return {};
    }
    std::string text;
    if (!fd.valid() || !read_all(fd.get(), &text)) {
      *problem = fmt::format("{} cannot be read: {}", name, std::strerror(errno));
      return {};
    }
    std::istringstream file(std::move(text));
    int number = 0;
    bool says_how_exact = false;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (const auto found = clock::parse_inexactness(line)) {
        says_how_exact = true;
        // They only grow, and not every PE is the last.
        clock::Inexactness& most = all.inexactness;
        most.outside = std::max(most.outside, found->outside);
        most.merged = std::max(most.merged, found->merged);
        most.late = std::max(most.late, found->late);
      }
      if (line.starts_with('#')) continue;
      const auto record = clock::parse_line(line);
      if (!record) {
        *problem = fmt::format("{} line {}: not a record", name, number);
        return {};
      }
      records.push_back(*record);
    }
    if (!says_how_exact) {
      *problem = fmt::format("{} does not say how exact the run was", name);
      return {};
    }
  }
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return all;
}

std::vector<clock::Recorded> read_records(const std::string& prefix, std::uint32_t pes,
                                          std::string* problem) {
  return read_all_records(prefix, pes, problem).operations;
}

namespace {

double us(std::int64_t ps) { return static_cast<double>(ps) / 1e6; }

std::string slice(std::uint32_t pe, std::size_t track, const std::string& name, std::int64_t from,
                  std::int64_t to, const std::string& details) {
  return fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},"args":{{{}}}}})",
                     name, pe, track, us(from), us(to - from), details);
}

std::string label(const char* what, std::uint32_t pe, std::size_t track, const std::string& name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", what, pe, track,
                     name);
}

}  // namespace

std::string trace_json(const std::vector<clock::Recorded>& records) {
  std::vector<std::string> events;
  // When each track of a PE's NIC is free again: operations that overlap are side by side.
  std::map<std::uint32_t, std::vector<std::int64_t>> tracks;
  for (const clock::Recorded& r : records) {
    const auto [found, is_new] = tracks.try_emplace(r.pe);
    if (is_new) {
      events.push_back(label("process_name", r.pe, 0, fmt::format("PE {} on node {}", r.pe, r.request.src)));
      events.push_back(label("thread_name", r.pe, 0, "processor"));
    }
    const std::string name = fmt::format("{} {} B", model::op_name(r.request.op), r.request.bytes);
    const std::int64_t begun = r.request.now.count(), busy = begun + r.quote.cpu_busy.count();
    const std::int64_t end = std::max(r.quote.data_at, r.quote.local_event_at).count();
    if (!r.uncontended && busy > begun) events.push_back(slice(r.pe, 0, name, begun, busy, ""));
    auto& free = found->second;
    auto track = std::find_if(free.begin(), free.end(), [&](std::int64_t at) { return at <= begun; });
    if (track == free.end()) {
      events.push_back(label("thread_name", r.pe, free.size() + 1, fmt::format("NIC {}", free.size() + 1)));
      track = free.insert(free.end(), 0);
    }
    *track = end;
    const auto details = fmt::format(R"("to node":{},"hops":{},"waited ns":{:.3f},"data at us":{:.6f},)"
                                     R"("event there at us":{:.6f},"event here at us":{:.6f},"detoured":{})",
                                     r.request.dst, r.quote.hops, r.quote.waited.nanos(),
                                     us(r.quote.data_at.count()), us(r.quote.remote_event_at.count()),
                                     us(r.quote.local_event_at.count()), r.quote.detoured);
    events.push_back(
        slice(r.pe, static_cast<std::size_t>(track - free.begin()) + 1, name, begun, end, details));
  }
  std::string json = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (std::size_t i = 0; i < events.size(); ++i) json += events[i] + (i + 1 < events.size() ? ",\n" : "\n");
  return json + "]}\n";
}

}  // namespace orrery::tool
