// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <array>

namespace orrery::sim {

// Directions of a torus, numbered as emu/model's Direction: x+ y+ z+ x- y- z-.
constexpr int dim_of(int direction) { return direction % 3; }
constexpr bool minus_of(int direction) { return direction >= 3; }
constexpr int reverse_of(int direction) { return direction >= 3 ? direction - 3 : direction + 3; }

// Torus coordinates as the event loop needs them: packed in one word, 10 bits a dimension, stepped with
// a few additions and no division. emu/model's Torus is the description; a test holds the two together.
// Node id = x + X (y + Y z).
class TorusGrid {
 public:
  using Packed = std::uint32_t;
  static constexpr std::uint32_t kMaxSide = 1024;

  TorusGrid() = default;
  // REQUIRES: sides 1..1024.
  explicit TorusGrid(std::array<std::uint32_t, 3> sides) : side_(sides) {
    stride_ = {1, sides[0], sides[0] * sides[1]};
  }
  std::uint32_t side(int dim) const { return side_[static_cast<std::size_t>(dim)]; }
  const std::array<std::uint32_t, 3>& sides() const { return side_; }
  Node nodes() const { return side_[0] * side_[1] * side_[2]; }

  static std::uint32_t at(Packed c, int dim) { return (c >> (10 * dim)) & 1023; }
  static Packed pack(std::uint32_t x, std::uint32_t y, std::uint32_t z) { return x | y << 10 | z << 20; }
  Packed coordinates(Node node) const {
    return pack(node % side_[0], node / side_[0] % side_[1], node / stride_[2]);
  }
  Node node(Packed c) const { return at(c, 0) + stride_[1] * at(c, 1) + stride_[2] * at(c, 2); }

  // The node one step from `node`, which is at `c`, in `direction`; wraps round.
  Node step(Node node, Packed c, int direction) const {
    const auto dim = static_cast<std::size_t>(dim_of(direction));
    const std::uint32_t x = at(c, static_cast<int>(dim)), top = side_[dim] - 1;
    if (minus_of(direction)) return x == 0 ? node + top * stride_[dim] : node - stride_[dim];
    return x == top ? node - top * stride_[dim] : node + stride_[dim];
  }
  Packed step_packed(Packed c, int direction) const {
    const int dim = dim_of(direction);
    const std::uint32_t x = at(c, dim), top = side_[static_cast<std::size_t>(dim)] - 1;
    const std::uint32_t to = minus_of(direction) ? (x == 0 ? top : x - 1) : (x == top ? 0 : x + 1);
    return (c & ~(1023u << (10 * dim))) | to << (10 * dim);
  }
  // Does that step go over the edge (the dateline at the highest coordinate)?
  bool wraps(Packed c, int direction) const {
    const int dim = dim_of(direction);
    return at(c, dim) == (minus_of(direction) ? 0 : side_[static_cast<std::size_t>(dim)] - 1);
  }

  // Steps from one to the other in `direction`.
  std::uint32_t hops(Packed from, Packed to, int direction) const {
    const int dim = dim_of(direction);
    const std::uint32_t a = at(from, dim), b = at(to, dim), n = side_[static_cast<std::size_t>(dim)];
    return (minus_of(direction) ? a + n - b : b + n - a) % n;
  }

  // Directions of a minimal path as bits; half way round is decided by `coin`'s bit for the dimension.
  // `open`: bit of a dimension that does not wrap round.
  std::uint8_t hints(Packed from, Packed to, std::uint32_t coin, std::uint32_t open = 0) const {
    std::uint8_t bits = 0;
    for (int dim = 0; dim < 3; ++dim) {
      const std::uint32_t a = at(from, dim), b = at(to, dim), n = side_[static_cast<std::size_t>(dim)];
      if (a == b) continue;
      const std::uint32_t up = b > a ? b - a : b + n - a;
      bool minus = 2 * up > n || (2 * up == n && ((coin >> dim) & 1));
      if ((open >> dim) & 1) minus = b < a;
      bits = static_cast<std::uint8_t>(bits | 1u << (dim + (minus ? 3 : 0)));
    }
    return bits;
  }

 private:
  std::array<std::uint32_t, 3> side_{1, 1, 1};
  std::array<std::uint32_t, 3> stride_{1, 1, 1};
};

}  // namespace orrery::sim
