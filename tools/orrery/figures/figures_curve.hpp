// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orrery::tool {

// Curves of one figure, with the numbers that the paper states marked as horizontal lines.
struct Curves {
  std::string name;  // of the files: <name>.svg, <name>.csv
  std::string title, x_label, y_label;
  bool log_x = false;
  struct Line {
    std::string label;
    std::vector<std::pair<double, double>> points;
  };
  std::vector<Line> lines;
  std::vector<Line> measured;  // by running programs: drawn as circles
  struct Mark {
    std::string label;
    double y;
  };
  std::vector<Mark> marks;
};

// Writes both files into `folder`. False if one cannot be written.
bool write_curves(const Curves& curves, const std::string& folder);
// The picture alone.
std::string curves_svg(const Curves& curves);

}  // namespace orrery::tool
