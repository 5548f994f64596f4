// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/torus.hpp"

#include <algorithm>
#include <cstdlib>

namespace orrery::model {

namespace {

constexpr std::array<std::uint32_t, 3> kGeminiTorusLinks{2, 1, 2};
constexpr std::uint32_t kGeminiTilesPerTorusLink = 4;

Result<std::array<std::uint32_t, 3>> class_dimensions(int system_class, std::uint32_t cabinets,
                                                      std::uint32_t rows) {
  if (cabinets == 0 || rows == 0 || cabinets > 1000 || rows > 1000) return Errc::invalid_param;
  switch (system_class) {
    case 0:
      if (rows != 1) return Errc::invalid_param;
      return std::array<std::uint32_t, 3>{3 * cabinets, 4, 8};
    case 1:
      if (rows != 1) return Errc::invalid_param;
      return std::array<std::uint32_t, 3>{cabinets, 12, 8};
    case 2:
      if (rows != 2) return Errc::invalid_param;
      return std::array<std::uint32_t, 3>{cabinets, 12, 16};
    case 3:
      return std::array<std::uint32_t, 3>{cabinets, 4 * rows, 24};
    default:
      return Errc::invalid_param;
  }
}

}  // namespace

const char* direction_name(Direction d) {
  static constexpr const char* kNames[kDirections] = {"x+", "y+", "z+", "x-", "y-", "z-"};
  return kNames[static_cast<int>(d)];
}

Result<TorusShape> gemini_shape(int system_class, std::uint32_t cabinets, std::uint32_t rows, bool y_closed) {
  const auto nodes = class_dimensions(system_class, cabinets, rows);
  if (!nodes.ok()) return nodes.code();
  const auto& n = nodes.value();
  return gemini_shape_of(n[0], n[1], n[2], y_closed);
}

Result<TorusShape> seastar_shape(int system_class, std::uint32_t cabinets, std::uint32_t rows,
                                 bool y_closed) {
  const auto nodes = class_dimensions(system_class, cabinets, rows);
  if (!nodes.ok()) return nodes.code();
  TorusShape shape;
  shape.nodes = nodes.value();
  shape.closed[1] = y_closed;
  return shape;
}

bool gemini_class_covers(int system_class, std::uint32_t cabinets) {
  switch (system_class) {
    case 0:
      return cabinets >= 1 && cabinets <= 3;
    case 1:
      return cabinets >= 4 && cabinets <= 16;
    case 2:
      return cabinets >= 16 && cabinets <= 48;
    case 3:
      return cabinets > 48;
    default:
      return false;
  }
}

TorusShape gemini_shape_of(std::uint32_t x, std::uint32_t y, std::uint32_t z, bool y_closed) {
  TorusShape shape;
  shape.nodes = {x, y, z};
  shape.closed[1] = y_closed;
  shape.nodes_per_router = 2;
  shape.torus_links = kGeminiTorusLinks;
  shape.tiles_per_torus_link = kGeminiTilesPerTorusLink;
  return shape;
}

TorusShape plain_torus_shape(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  TorusShape shape;
  shape.nodes = {x, y, z};
  return shape;
}

std::uint32_t gemini_cabled_links_per_chassis() {
  constexpr std::uint32_t kBlades = 8, kGeminisPerBlade = 2;
  const auto [x, y, z] = kGeminiTorusLinks;
  const std::uint32_t all = kBlades * kGeminisPerBlade * 2 * (x + y + z);
  const std::uint32_t in_blade_y = kBlades * 2 * y;
  const std::uint32_t in_chassis_z = (kBlades - 1) * kGeminisPerBlade * 2 * z;
  return all - in_blade_y - in_chassis_z;
}

Result<Torus> Torus::make(const TorusShape& shape) {
  Torus t;
  if (shape.nodes_per_router != 1 && shape.nodes_per_router != 2) return Errc::invalid_param;
  if (shape.tiles_per_torus_link == 0) return Errc::invalid_param;
  std::uint64_t routers = 1, hops = 0, ports = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t per_router = i == 1 ? shape.nodes_per_router : 1;
    if (shape.nodes[i] == 0 || shape.nodes[i] % per_router != 0 || shape.torus_links[i] == 0) {
      return Errc::invalid_param;
    }
    if (shape.nodes[i] > 4096 || shape.torus_links[i] > 64 || shape.tiles_per_torus_link > 64)
      return Errc::size;
    t.grid_[i] = shape.nodes[i] / per_router;
    t.parallel_[i] = shape.torus_links[i] * shape.tiles_per_torus_link;
    routers *= t.grid_[i];
    hops += shape.closed[i] ? t.grid_[i] / 2 : t.grid_[i] - 1;
    ports += 2 * t.parallel_[i];
  }
  if (hops > Route::kCapacity || routers * ports >= kNoLink) return Errc::size;
  std::uint32_t offset = 0;
  for (int d = 0; d < kDirections; ++d) {
    t.offset_[d] = offset;
    offset += t.parallel_[d % 3];
  }
  t.shape_ = shape;
  t.by_x_ = Divider(t.grid_[0]);
  t.by_y_ = Divider(t.grid_[1]);
  t.ports_ = static_cast<std::uint32_t>(ports);
  t.routers_ = static_cast<std::uint32_t>(routers);
  return t;
}

Coordinates Torus::coordinates(NodeId node) const {
  const std::uint32_t x = shape_.nodes[0], y = shape_.nodes[1];
  const std::uint32_t row = node / x;
  return {{node - row * x, row % y, row / y}};
}

NodeId Torus::node_at(const Coordinates& c) const {
  return c.at[0] + shape_.nodes[0] * (c.at[1] + shape_.nodes[1] * c.at[2]);
}

RouterId Torus::router_at(const Coordinates& c) const {
  return c.at[0] + grid_[0] * (c.at[1] + grid_[1] * c.at[2]);
}

Direction Torus::direction_of(LinkId link) const {
  const std::uint32_t port = link % ports_;
  int d = kDirections - 1;
  while (offset_[d] > port) --d;
  return static_cast<Direction>(d);
}

std::uint32_t Torus::parallel_index(LinkId link) const {
  return link % ports_ - offset_[static_cast<int>(direction_of(link))];
}

bool Torus::has_link(LinkId link) const {
  if (link >= link_slots()) return false;
  const Direction d = direction_of(link);
  const int i = dimension_of(d);
  if (grid_[i] == 1) return false;
  if (shape_.closed[i]) return true;
  const std::uint32_t at = router_coordinates(link / ports_).at[i];
  return is_minus(d) ? at > 0 : at + 1 < grid_[i];
}

RouterId Torus::neighbour(RouterId router, Direction d) const {
  Coordinates c = router_coordinates(router);
  const int i = dimension_of(d);
  if (is_minus(d)) {
    c.at[i] = c.at[i] == 0 ? grid_[i] - 1 : c.at[i] - 1;
  } else {
    c.at[i] = c.at[i] + 1 == grid_[i] ? 0 : c.at[i] + 1;
  }
  return router_at(c);
}

LinkEnds Torus::ends(LinkId link) const {
  const RouterId from = link / ports_;
  return {from, neighbour(from, direction_of(link))};
}

std::array<int, 3> Torus::steps_between(const Coordinates& a, const Coordinates& b,
                                        std::uint64_t seed) const {
  std::array<int, 3> out{};
  for (int i = 0; i < 3; ++i) {
    const int n = static_cast<int>(grid_[i]);
    int delta = static_cast<int>(b.at[i]) - static_cast<int>(a.at[i]);
    if (shape_.closed[i]) {
      if (2 * delta > n) delta -= n;
      if (2 * delta < -n) delta += n;
      if (2 * std::abs(delta) == n) delta = ((seed >> i) & 1) ? -std::abs(delta) : std::abs(delta);
    }
    out[i] = delta;
  }
  return out;
}

std::uint32_t Torus::distance(RouterId from, RouterId to) const {
  const auto s = steps(from, to, 0);
  return static_cast<std::uint32_t>(std::abs(s[0]) + std::abs(s[1]) + std::abs(s[2]));
}

Route Torus::route(NodeId src, NodeId dst, const TorusChoice& choice) const {
  Route out;
  route_routers(router_of(src), router_of(dst), choice, &out);
  return out;
}

void Torus::route_routers(RouterId from, RouterId to, const TorusChoice& choice, Route* out) const {
  const auto want = steps(from, to, choice.seed);
  Choices choices(choice.seed);
  RouterId at = from;
  const auto walk = [&](Direction d, int count) {
    const std::uint32_t width = parallel(d);
    for (int i = 0; i < count; ++i) {
      out->push(link(at, d, width == 1 ? 0 : choices.below(width)));
      at = neighbour(at, d);
    }
  };
  if (choice.order == TorusOrder::dimension) {
    for (int i = 0; i < 3; ++i) walk(direction(i, want[i] < 0), std::abs(want[i]));
    return;
  }
  for (int d = 0; d < kDirections; ++d) {
    const auto dir = static_cast<Direction>(d);
    const int count = want[dimension_of(dir)];
    if (is_minus(dir) ? count < 0 : count > 0) walk(dir, std::abs(count));
  }
}

HintBits Torus::hints(RouterId from, RouterId to, std::uint64_t seed) const {
  const auto want = steps(from, to, seed);
  HintBits out;
  for (int i = 0; i < 3; ++i) {
    if (want[i] != 0)
      out.bits |= static_cast<std::uint8_t>(1u << static_cast<int>(direction(i, want[i] < 0)));
  }
  return out;
}

HintBits Torus::hints_after(HintBits hints, RouterId next, Direction d, RouterId to) const {
  const int i = dimension_of(d);
  if (router_coordinates(next).at[i] == router_coordinates(to).at[i]) {
    hints.bits &= static_cast<std::uint8_t>(~(1u << static_cast<int>(d)));
  }
  return hints;
}

std::uint64_t Torus::bisection_links(int dimension) const {
  const std::uint64_t plane = std::uint64_t{routers_} / grid_[dimension];
  return plane * shape_.torus_links[dimension] * (shape_.closed[dimension] ? 2 : 1);
}

std::uint64_t Torus::smallest_bisection_links() const {
  return std::min({bisection_links(0), bisection_links(1), bisection_links(2)});
}

std::uint32_t Torus::diameter() const {
  std::uint32_t hops = 0;
  for (int i = 0; i < 3; ++i) hops += shape_.closed[i] ? grid_[i] / 2 : grid_[i] - 1;
  return hops;
}

}  // namespace orrery::model
