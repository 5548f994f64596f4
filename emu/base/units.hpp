// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Quantities with their units in the type. Time is an integer count of picoseconds, so that sums are
// exact and the same on every machine; 2^63 ps are 106 days. All functions are pure and thread safe.
//
//   Picos t = 105_ns + transfer_time(Bytes{64}, Rate::from_bytes_per_second(4687500000));
#pragma once

#include "emu/base/status.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

// A duration, or a point in (virtual) time, in picoseconds. May be negative as a difference.
class Picos {
 public:
  constexpr Picos() = default;
  constexpr explicit Picos(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }
  constexpr double nanos() const { return static_cast<double>(count_) / 1e3; }
  constexpr double micros() const { return static_cast<double>(count_) / 1e6; }

  friend constexpr auto operator<=>(Picos, Picos) = default;
  friend constexpr Picos operator+(Picos a, Picos b) { return Picos{a.count_ + b.count_}; }
  friend constexpr Picos operator-(Picos a, Picos b) { return Picos{a.count_ - b.count_}; }
  friend constexpr Picos operator*(Picos a, std::int64_t n) { return Picos{a.count_ * n}; }
  friend constexpr Picos operator*(std::int64_t n, Picos a) { return a * n; }
  friend constexpr Picos operator/(Picos a, std::int64_t n) { return Picos{a.count_ / n}; }
  constexpr Picos& operator+=(Picos other) { return *this = *this + other; }
  constexpr Picos& operator-=(Picos other) { return *this = *this - other; }

 private:
  std::int64_t count_ = 0;
};

constexpr Picos operator""_ps(unsigned long long n) { return Picos{static_cast<std::int64_t>(n)}; }
constexpr Picos operator""_ns(unsigned long long n) { return Picos{static_cast<std::int64_t>(n) * 1'000}; }
constexpr Picos operator""_us(unsigned long long n) {
  return Picos{static_cast<std::int64_t>(n) * 1'000'000};
}

// An amount of memory or payload.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
  constexpr std::uint64_t count() const { return count_; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.count_ + b.count_}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count_ - b.count_}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes{a.count_ * n}; }

 private:
  std::uint64_t count_ = 0;
};

// A data rate, in whole bytes a second. Zero stands for "no limit".
class Rate {
 public:
  constexpr Rate() = default;
  static constexpr Rate from_bytes_per_second(std::uint64_t n) { return Rate{n}; }
  constexpr std::uint64_t bytes_per_second() const { return bytes_per_second_; }
  constexpr double gigabytes_per_second() const { return static_cast<double>(bytes_per_second_) / 1e9; }
  constexpr bool unlimited() const { return bytes_per_second_ == 0; }
  friend constexpr auto operator<=>(Rate, Rate) = default;
  friend constexpr Rate operator*(Rate r, std::uint64_t n) { return Rate{r.bytes_per_second_ * n}; }

 private:
  constexpr explicit Rate(std::uint64_t n) : bytes_per_second_(n) {}
  std::uint64_t bytes_per_second_ = 0;
};

// Time that `size` occupies something of that rate, rounded up to a whole picosecond; zero where the
// rate is unlimited. Exact, with one wide division: not for the hot path (see PerByte).
constexpr Picos transfer_time(Bytes size, Rate rate) {
  if (rate.unlimited()) return Picos{};
  __extension__ using Wide = unsigned __int128;
  const Wide numerator = static_cast<Wide>(size.count()) * 1'000'000'000'000u;
  return Picos{
      static_cast<std::int64_t>((numerator + rate.bytes_per_second() - 1) / rate.bytes_per_second())};
}

// A clock rate, in cycles a second.
class Hertz {
 public:
  constexpr Hertz() = default;
  constexpr explicit Hertz(std::uint64_t count) : count_(count) {}
  constexpr std::uint64_t count() const { return count_; }
  friend constexpr auto operator<=>(Hertz, Hertz) = default;

 private:
  std::uint64_t count_ = 0;
};

// A rate as a multiplier, for the hot path: 44.20 fixed-point picoseconds a byte. The error against
// transfer_time() is under one part in 10^7 for rates up to 100 GB/s.
class PerByte {
 public:
  constexpr PerByte() = default;
  constexpr explicit PerByte(Rate rate) {
    if (rate.unlimited()) return;
    __extension__ using Wide = unsigned __int128;
    const Wide scaled = (static_cast<Wide>(1'000'000'000'000u) << kShift) + rate.bytes_per_second() / 2;
    scaled_ = static_cast<std::uint64_t>(scaled / rate.bytes_per_second());
  }
  // From the fixed-point number itself.
  static constexpr PerByte from_scaled(std::uint64_t scaled) {
    PerByte out;
    out.scaled_ = scaled;
    return out;
  }
  static constexpr PerByte from_picos(Picos per_byte) {
    return from_scaled(static_cast<std::uint64_t>(per_byte.count()) << kShift);
  }
  constexpr std::uint64_t scaled() const { return scaled_; }
  friend constexpr auto operator<=>(PerByte, PerByte) = default;  // the slower one is the greater
  static constexpr int kShift = 20;

  // `size` up to 2^40 bytes at 1 GB/s or faster does not overflow.
  constexpr Picos operator()(std::uint64_t size) const {
    __extension__ using Wide = unsigned __int128;
    return Picos{static_cast<std::int64_t>((static_cast<Wide>(size) * scaled_) >> kShift)};
  }

 private:
  std::uint64_t scaled_ = 0;
};

// What the parsers take, for messages.
inline constexpr std::string_view kDurationAccepts = "a duration such as \"105 ns\" (ps, ns, us, ms, s)";
inline constexpr std::string_view kRateAccepts =
    "a rate such as \"4.6875 GB/s\" (B/s, kB/s, MB/s, GB/s, b/s, kb/s, Mb/s, Gb/s)";
inline constexpr std::string_view kHertzAccepts = "a clock such as \"650 MHz\" (Hz, kHz, MHz, GHz)";
inline constexpr std::string_view kBytesAccepts = "a size such as \"64 B\" (B, KiB, MiB, GiB)";

// Each parser reads one non-negative decimal number, one space and one unit of its own kind, nothing
// else. Outcomes: the value rounded to the nearest whole unit; Errc::invalid_param for any other text;
// Errc::bounds where it does not fit (over 100 days, 10^18 bytes a second, 2^62 bytes).
Result<Picos> parse_duration(std::string_view text);
Result<Rate> parse_rate(std::string_view text);
Result<Bytes> parse_bytes(std::string_view text);
Result<Hertz> parse_hertz(std::string_view text);

// The shortest exact text that the parsers read back ("1.3 us", "4.6875 GB/s", "4 KiB").
std::string to_string(Picos duration);
std::string to_string(Rate rate);
std::string to_string(Bytes size);
std::string to_string(Hertz clock);

}  // namespace orrery
