// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/model/machine.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Where a machine's routers lie on a page, and what pages of one file are made with. Pure functions.
namespace orrery::tool {

struct Point {
  double x = 0, y = 0;
};

// A router's place; of a fat tree also a node's (numbered after the switches). REQUIRES: below vertices().
Point place(const model::Pricing& p, model::RouterId r);
// How many places there are.
std::uint32_t vertices(const model::Pricing& p);
// What the machine is wired like, in lines: group bundles, tree links, torus neighbours without the long ones
// that close a ring. None where there would be too many.
std::vector<std::pair<Point, Point>> wires(const model::Pricing& p);
model::LinkEnds ends_of(const model::Pricing& p, model::LinkId link);

// To a tenth.
nlohmann::json rounded(Point at);
std::string html_escaped(const std::string& text);
// Replaces every `mark` of the page.
void fill_in(std::string* page, std::string_view mark, const std::string& text);
// As the text of a script element: nothing in it ends that element.
std::string script_data(const nlohmann::json& data);

}  // namespace orrery::tool
