// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// 3-D torus: Gemini's, SeaStar's and Blue Gene/L's.
//
// Sources: "The Gemini Network" (Cray, 2010) sections 1, 3, 5, 6; Adiga et al., "Blue Gene/L torus
// interconnection network" (2005), "Torus network"; Dillow and Atchley, "SeaStar Unchained", section II.
//
// Dimensions count NODES, as the Gemini document does. A Gemini router serves two nodes that are
// neighbours in y, so the graph of Geminis is X x Y/2 x Z, with two torus links per direction in x and z
// and one in y, each of 4 parallel tile links of 3 lanes. A link id here is one tile link (Gemini) or
// one link (others): what a single packet occupies.
//
// LIMITATIONS: the folded cabling changes cable lengths only and is not modelled; Gemini's document
// gives no order between dimensions, that of its relatives (direction order) is used.
//
// Value type, immutable after make(), all functions pure and thread safe.
//   Torus t = Torus::make(gemini_shape(3, 10, 4).value()).value();  t.route(0, 1234, {});
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/route.hpp"

#include <array>
#include <cstdint>

namespace orrery::model {

struct Coordinates {
  std::array<std::uint32_t, 3> at{};  // x, y, z
  friend constexpr bool operator==(const Coordinates&, const Coordinates&) = default;
};

// Output directions, in the order in which direction-order routing takes them.
enum class Direction : std::uint8_t { x_plus, y_plus, z_plus, x_minus, y_minus, z_minus };
inline constexpr int kDirections = 6;
constexpr int dimension_of(Direction d) { return static_cast<int>(d) % 3; }
constexpr bool is_minus(Direction d) { return static_cast<int>(d) >= 3; }
constexpr Direction direction(int dimension, bool minus) {
  return static_cast<Direction>(dimension + (minus ? 3 : 0));
}
constexpr Direction opposite(Direction d) { return direction(dimension_of(d), !is_minus(d)); }
const char* direction_name(Direction d);  // "x+"

struct TorusShape {
  std::array<std::uint32_t, 3> nodes{1, 1, 1};        // X, Y, Z
  std::array<bool, 3> closed{true, true, true};       // does the dimension wrap round
  std::uint32_t nodes_per_router = 1;                 // neighbours in y; 1 or 2
  std::array<std::uint32_t, 3> torus_links{1, 1, 1};  // parallel torus links per direction of a router
  std::uint32_t tiles_per_torus_link = 1;             // parallel links of which a packet takes one
};

// Gemini document Table 1, dimensions in nodes. `system_class` 0..3, `cabinets` of one row 1..., `rows`
// 1... ; class 0 and 1 have one row, class 2 two. The class is an explicit argument because the
// document's own 40-cabinet example uses class 3 below its cabinet range. Outcomes: the shape;
// Errc::invalid_param for a class, a count of zero, or rows that the class does not have.
Result<TorusShape> gemini_shape(int system_class, std::uint32_t cabinets, std::uint32_t rows,
                                bool y_closed = true);
// The same classes for SeaStar (its cards are pin compatible): one router and six links per node.
Result<TorusShape> seastar_shape(int system_class, std::uint32_t cabinets, std::uint32_t rows,
                                 bool y_closed = true);
// Whether `cabinets` in all lies in the range the table prints for the class (1-3, 4-16, 16-48, >48).
bool gemini_class_covers(int system_class, std::uint32_t cabinets);
// Gemini with its dimensions given directly; y must be even.
TorusShape gemini_shape_of(std::uint32_t x, std::uint32_t y, std::uint32_t z, bool y_closed = true);
TorusShape plain_torus_shape(std::uint32_t x, std::uint32_t y, std::uint32_t z);

enum class TorusOrder : std::uint8_t {
  direction,  // X+ Y+ Z+ X- Y- Z-
  dimension,  // x, then y, then z
};

struct TorusChoice {
  TorusOrder order = TorusOrder::direction;
  std::uint64_t seed = 0;  // breaks ties at half way round, picks among parallel links
};

// Blue Gene/L's six hint bits: the directions in which a packet may still move. Bit = Direction.
struct HintBits {
  std::uint8_t bits = 0;
  constexpr bool has(Direction d) const { return (bits >> static_cast<int>(d)) & 1; }
  constexpr bool arrived() const { return bits == 0; }
  friend constexpr bool operator==(HintBits, HintBits) = default;
};

class Torus {
 public:
  Torus() = default;  // one node; for containers
  // Outcomes: the torus; Errc::invalid_param for a zero or odd (two nodes a router) dimension or zero
  // links; Errc::size where a shortest path could exceed Route::kCapacity or ids would not fit 32 bits.
  static Result<Torus> make(const TorusShape& shape);

  const TorusShape& shape() const { return shape_; }
  std::uint32_t nodes() const { return routers_ * shape_.nodes_per_router; }
  std::uint32_t routers() const { return routers_; }
  // Router grid: X x Y/nodes_per_router x Z.
  const std::array<std::uint32_t, 3>& grid() const { return grid_; }

  // REQUIRES for all below: ids in range.
  Coordinates coordinates(NodeId node) const;
  NodeId node_at(const Coordinates& c) const;
  // Nodes are numbered x + X (y + Y z), routers x + X (y/2 + Y/2 z): halving the row number halves y.
  RouterId router_of(NodeId node) const {
    if (shape_.nodes_per_router == 1) return node;
    const std::uint32_t row = by_x_(node);
    return node - row * grid_[0] + (row >> 1) * grid_[0];
  }
  // Which of its router's NICs a node is: 0, or y & 1 on Gemini.
  std::uint32_t nic_of(NodeId node) const { return node / shape_.nodes[0] % shape_.nodes_per_router; }
  Coordinates router_coordinates(RouterId router) const {
    const std::uint32_t row = by_x_(router), plane = by_y_(row);
    return {{router - row * grid_[0], row - plane * grid_[1], plane}};
  }
  RouterId router_at(const Coordinates& c) const;

  // Link slots: routers() * links_per_router(). Parallel link k of a direction is 0..parallel(d)-1;
  // torus link k / tiles_per_torus_link.
  std::uint32_t links_per_router() const { return ports_; }
  LinkId link_slots() const { return routers_ * ports_; }
  std::uint32_t parallel(Direction d) const { return parallel_[dimension_of(d)]; }
  LinkId link(RouterId router, Direction d, std::uint32_t k = 0) const {
    return router * ports_ + offset_[static_cast<int>(d)] + k;
  }
  bool has_link(LinkId link) const;
  Direction direction_of(LinkId link) const;
  std::uint32_t parallel_index(LinkId link) const;
  LinkEnds ends(LinkId link) const;
  // The router one step away. REQUIRES: a link leads there.
  RouterId neighbour(RouterId router, Direction d) const;

  // Signed steps in each dimension on a shortest path; exactly half way round is broken by the bits
  // of `seed` (bit i: dimension i goes minus).
  std::array<int, 3> steps(RouterId from, RouterId to, std::uint64_t seed) const {
    return steps_between(router_coordinates(from), router_coordinates(to), seed);
  }
  std::array<int, 3> steps_between(const Coordinates& from, const Coordinates& to, std::uint64_t seed) const;
  std::uint32_t distance(RouterId from, RouterId to) const;
  // The links of a shortest path between the routers of two nodes; empty on one router.
  Route route(NodeId src, NodeId dst, const TorusChoice& choice) const;
  void route_routers(RouterId from, RouterId to, const TorusChoice& choice, Route* out) const;

  // Hint bits for a minimal path, ties by `seed`; and after a packet left `router` in direction `d`
  // (cleared when the next router has the destination's coordinate).
  HintBits hints(RouterId from, RouterId to, std::uint64_t seed) const;
  HintBits hints_after(HintBits hints, RouterId next, Direction d, RouterId to) const;

  // Bidirectional torus links that a worst-case cut across the dimension severs: two cuts where it is
  // closed, one where it is open ("Bisection Bandwidth", Gemini document section 6.2).
  std::uint64_t bisection_links(int dimension) const;
  std::uint64_t smallest_bisection_links() const;
  std::uint32_t diameter() const;

 private:
  TorusShape shape_;
  std::array<std::uint32_t, 3> grid_{1, 1, 1};
  std::array<std::uint32_t, 3> parallel_{1, 1, 1};
  std::array<std::uint32_t, kDirections> offset_{0, 1, 2, 3, 4, 5};
  Divider by_x_, by_y_;  // nodes of a row, routers of a column
  std::uint32_t ports_ = 6;
  std::uint32_t routers_ = 1;
};

// Torus links of a Gemini chassis (8 blades, 1x4x8 nodes) that leave it by cable, counting link ends.
std::uint32_t gemini_cabled_links_per_chassis();

}  // namespace orrery::model
