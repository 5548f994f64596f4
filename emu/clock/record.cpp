// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/record.hpp"

#include "emu/base/log.hpp"
#include "emu/base/output_file.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace orrery::clock {

std::string line_of(const Recorded& r) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", r.called, r.pe, r.number,
                     r.uncontended ? 1 : 0, static_cast<int>(r.request.op),
                     static_cast<int>(r.request.routing), r.request.src, r.request.dst, r.request.bytes,
                     r.request.now.count(), r.request.seed, r.quote.cpu_busy.count(), r.quote.data_at.count(),
                     r.quote.remote_event_at.count(), r.quote.local_event_at.count(), r.quote.waited.count(),
                     r.quote.hops, r.quote.detoured ? 1 : 0);
}

std::optional<Recorded> parse_line(std::string_view line) {
  const std::string_view whole = line;
  std::array<std::uint64_t, 18> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), numbers[i]);
    if (error != std::errc{}) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    const bool last = i + 1 == numbers.size();
    if (last != line.empty() || (!last && line.front() != ' ')) return std::nullopt;
    if (!last) line.remove_prefix(1);
  }
  if (numbers[4] >= model::kOps || numbers[5] >= model::kRoutings) return std::nullopt;
  const auto time = [&](std::size_t i) { return Picos{static_cast<std::int64_t>(numbers[i])}; };
  Recorded r;
  r.called = time(0).count();
  r.pe = static_cast<std::uint32_t>(numbers[1]);
  r.number = numbers[2];
  r.uncontended = numbers[3] != 0;
  r.request = {.op = static_cast<model::Op>(numbers[4]),
               .routing = static_cast<model::Routing>(numbers[5]),
               .src = static_cast<model::NodeId>(numbers[6]),
               .dst = static_cast<model::NodeId>(numbers[7]),
               .bytes = numbers[8],
               .now = time(9),
               .seed = numbers[10]};
  r.quote.cpu_busy = time(11);
  r.quote.data_at = time(12);
  r.quote.remote_event_at = time(13);
  r.quote.local_event_at = time(14);
  r.quote.waited = time(15);
  r.quote.hops = static_cast<std::uint16_t>(numbers[16]);
  r.quote.detoured = numbers[17] != 0;
  // A number that its field cannot hold, or that is written otherwise, is none of ours: it would be another
  // one silently.
  if (line_of(r) != whole) return std::nullopt;
  return r;
}

namespace {
constexpr std::string_view kInexactness = "# not exact: ";
}  // namespace

std::string line_of(const Inexactness& found) {
  return fmt::format("{}{} {} {}", kInexactness, found.outside, found.merged, found.late);
}

std::optional<Inexactness> parse_inexactness(std::string_view line) {
  if (!line.starts_with(kInexactness)) return std::nullopt;
  Inexactness found;
  std::string_view rest = line.substr(kInexactness.size());
  for (std::uint64_t* const number : {&found.outside, &found.merged, &found.late}) {
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *number);
    if (error != std::errc{}) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  if (line_of(found) != line) return std::nullopt;
  return found;
}

void Recorder::write(std::string_view machine, const Inexactness& found) const {
  const std::string name = fmt::format("{}.{}", prefix_, pe_);
  const int fd = create_file(name.c_str());
  std::FILE* const file = fd < 0 ? nullptr : fdopen(fd, "w");
  bool whole = file != nullptr;
  if (whole) {
    whole = std::fputs(fmt::format("# machine {}\n{}\n", machine, line_of(found)).c_str(), file) >= 0;
    for (const Recorded& record : records_)
      whole = std::fputs((line_of(record) + "\n").c_str(), file) >= 0 && whole;
    whole = std::fclose(file) == 0 && whole;
  }
  if (!whole) log::error("{} cannot be written: {}", name, std::strerror(errno));
}

}  // namespace orrery::clock
