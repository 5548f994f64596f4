// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace orrery {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t numerator;        // how many of the base unit
  std::uint64_t denominator = 1;  // bits: one eighth
};

constexpr auto kDurations = std::to_array<Unit>(
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}});
constexpr auto kRates = std::to_array<Unit>({{"GB/s", 1'000'000'000},
                                             {"MB/s", 1'000'000},
                                             {"kB/s", 1'000},
                                             {"B/s", 1},
                                             {"Gb/s", 1'000'000'000, 8},
                                             {"Mb/s", 1'000'000, 8},
                                             {"kb/s", 1'000, 8},
                                             {"b/s", 1, 8}});
constexpr auto kClocks =
    std::to_array<Unit>({{"GHz", 1'000'000'000}, {"MHz", 1'000'000}, {"kHz", 1'000}, {"Hz", 1}});
constexpr auto kSizes =
    std::to_array<Unit>({{"GiB", 1u << 30}, {"MiB", 1u << 20}, {"KiB", 1u << 10}, {"B", 1}});

// digits [. digits] space unit. At most 18 digits, so that the product fits 128 bits.
Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::uint64_t limit) {
  std::uint64_t digits = 0;
  std::uint64_t scale = 1;
  std::size_t at = 0;
  int count = 0;
  bool point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.') {
      if (point || count == 0) return Errc::invalid_param;
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (++count > 18) return Errc::bounds;
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (point) scale *= 10;
    } else {
      break;
    }
  }
  if (count == 0 || text[at - 1] == '.' || at >= text.size() || text[at] != ' ') return Errc::invalid_param;
  const std::string_view name = text.substr(at + 1);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    __extension__ using Wide = unsigned __int128;
    const Wide divisor = static_cast<Wide>(scale) * unit.denominator;
    const Wide value = (static_cast<Wide>(digits) * unit.numerator + divisor / 2) / divisor;
    if (value > limit) return Errc::bounds;
    return static_cast<std::uint64_t>(value);
  }
  return Errc::invalid_param;
}

// The largest unit in which the value has at most six decimals and is at least one.
std::string format(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.denominator != 1 || (value < unit.numerator && unit.numerator != 1)) continue;
    std::uint64_t fraction = value % unit.numerator;
    if (fraction == 0) return fmt::format("{} {}", value / unit.numerator, unit.name);
    if ((unit.numerator & (unit.numerator - 1)) == 0) continue;  // KiB and up: whole ones only
    std::string decimals =
        fmt::format("{:0{}}", fraction, static_cast<int>(std::log10(unit.numerator) + 0.5));
    while (decimals.back() == '0') decimals.pop_back();
    return fmt::format("{}.{} {}", value / unit.numerator, decimals, unit.name);
  }
  return fmt::format("{} {}", value, units.back().name);
}

}  // namespace

Result<Picos> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurations, 8'640'000'000'000'000'000u);
  if (!value.ok()) return value.code();
  return Picos{static_cast<std::int64_t>(value.value())};
}

Result<Rate> parse_rate(std::string_view text) {
  const auto value = parse(text, kRates, 1'000'000'000'000'000'000u);
  if (!value.ok()) return value.code();
  return Rate::from_bytes_per_second(value.value());
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto value = parse(text, kSizes, std::uint64_t{1} << 62);
  if (!value.ok()) return value.code();
  return Bytes{value.value()};
}

Result<Hertz> parse_hertz(std::string_view text) {
  const auto value = parse(text, kClocks, 1'000'000'000'000'000u);
  if (!value.ok()) return value.code();
  return Hertz{value.value()};
}

std::string to_string(Picos duration) {
  const auto count = duration.count();
  if (count < 0) return "-" + format(static_cast<std::uint64_t>(-count), kDurations);
  return count == 0 ? "0 ns" : format(static_cast<std::uint64_t>(count), kDurations);
}
std::string to_string(Rate rate) {
  return rate.unlimited() ? "unlimited" : format(rate.bytes_per_second(), kRates);
}
std::string to_string(Hertz clock) { return clock.count() == 0 ? "0 Hz" : format(clock.count(), kClocks); }
std::string to_string(Bytes size) { return size.count() == 0 ? "0 B" : format(size.count(), kSizes); }

}  // namespace orrery
