// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Words that all topologies share. Nodes, routers and unidirectional links are dense integers from 0.
// A link id names a slot of a router's port; `has_link()` of the topology says whether the wiring
// provides it (an open dimension's edge and an unused cable have a slot but no link).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::model {

using NodeId = std::uint32_t;
using RouterId = std::uint32_t;
using LinkId = std::uint32_t;
inline constexpr LinkId kNoLink = ~LinkId{0};

// The two routers that a unidirectional link joins. In a fat tree the nodes are vertices too, numbered
// after the switches.
struct LinkEnds {
  RouterId from = 0;
  RouterId to = 0;
  friend constexpr bool operator==(const LinkEnds&, const LinkEnds&) = default;
};

// A path as link ids, source to destination. Fixed capacity, no allocation; the tail of the array is
// left uninitialised on purpose.
//   for (LinkId link : route) ...
class Route {
 public:
  static constexpr std::size_t kCapacity = 128;  // diameter limit that every topology's factory enforces
  Route() : count_(0) {}
  void clear() { count_ = 0; }
  // REQUIRES: size() < kCapacity.
  void push(LinkId link) { links_[count_++] = link; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  LinkId operator[](std::size_t i) const { return links_[i]; }
  const LinkId* begin() const { return links_.data(); }
  const LinkId* end() const { return links_.data() + count_; }

 private:
  std::size_t count_;
  std::array<LinkId, kCapacity> links_;
};

// 64-bit mixing function (the finaliser of SplitMix64, public domain). Every deterministic choice of
// the model, and the seeded ones, go through it, so that a run repeats on every machine.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The hash that in-order modes route by: source and destination, and the remote address where the
// mode includes it (pass 0 where not).
constexpr std::uint64_t route_hash(NodeId src, NodeId dst, std::uint64_t address = 0) {
  return mix64((std::uint64_t{src} << 32 | dst) ^ mix64(address));
}

// For code that must not branch, where a compiler may make a branch of the same with `?`. All ones where `a`
// is less than `b`, else zeros.
constexpr std::uint64_t ones_if_less(std::uint32_t a, std::uint32_t b) {
  return std::uint64_t{0} - std::uint64_t{a < b};
}
// `a` where `ones` is that, `b` where it is zeros.
constexpr std::uint32_t either(std::uint64_t ones, std::uint32_t a, std::uint32_t b) {
  return b ^ ((a ^ b) & static_cast<std::uint32_t>(ones));
}

// Division of 32-bit numbers by a divisor that is known beforehand: one multiplication.
class Divider {
 public:
  constexpr Divider() = default;
  // REQUIRES: divisor >= 1.
  constexpr explicit Divider(std::uint32_t divisor)
      : reciprocal_(divisor == 1 ? 0 : ~std::uint64_t{0} / divisor + 1) {}
  constexpr std::uint32_t operator()(std::uint32_t n) const {
    __extension__ using Wide = unsigned __int128;
    return reciprocal_ == 0 ? n : static_cast<std::uint32_t>((static_cast<Wide>(reciprocal_) * n) >> 64);
  }

 private:
  std::uint64_t reciprocal_ = 0;
};

// A stream of small choices out of one 64-bit seed: each the product of a counter with itself, folded, so
// that one draw need not wait for the one before.
class Choices {
 public:
  constexpr explicit Choices(std::uint64_t seed) : state_(seed) {}
  // Uniform in [0, n), n >= 1, without division.
  std::uint32_t below(std::uint32_t n) { return below_if(~std::uint64_t{0}, n); }
  // The same where `wanted` is all ones. Where it is zeros the next draw is as if there had been none, and
  // the value is any: for code that must not branch.
  std::uint32_t below_if(std::uint64_t wanted, std::uint32_t n) {
    const std::uint64_t drawn = state_ + kStep, other = drawn ^ 0xbf58476d1ce4e5b9u;
#if defined(__x86_64__)
    // gcc 12 takes the halves of a product apart in memory.
    std::uint64_t high, low;
    asm("mulq %3" : "=a"(low), "=d"(high) : "0"(drawn), "rm"(other) : "cc");
#else
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(drawn) * other;
    const auto high = static_cast<std::uint64_t>(product >> 64), low = static_cast<std::uint64_t>(product);
#endif
    skip_if(wanted);
    return static_cast<std::uint32_t>((((high ^ low) >> 32) * n) >> 32);
  }
  // A draw whose value is not needed.
  constexpr void skip_if(std::uint64_t wanted) { state_ += kStep & wanted; }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  std::uint64_t state_;
};

}  // namespace orrery::model
