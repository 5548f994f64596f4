// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/figures/figures_curve.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

namespace orrery::tool {

namespace {
constexpr const char* kColours[] = {"#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
                                    "#d68910", "#34495e", "#16a085", "#7f8c8d"};
constexpr double kWidth = 720, kHeight = 420, kLeft = 70, kRight = 200, kTop = 40, kBottom = 50;
}  // namespace

std::string curves_svg(const Curves& c) {
  double x0 = 1e300, x1 = -1e300, y1 = 0;
  const auto across = [&](double x) { return c.log_x ? std::log2(x) : x; };
  for (const auto& line : c.lines)
    for (auto [x, y] : line.points) {
      x0 = std::min(x0, across(x));
      x1 = std::max(x1, across(x));
      y1 = std::max(y1, y);
    }
  for (const auto& mark : c.marks) y1 = std::max(y1, mark.y);
  if (x1 <= x0) x1 = x0 + 1;
  y1 = y1 > 0 ? y1 * 1.05 : 1;
  const auto px = [&](double x) { return kLeft + (across(x) - x0) / (x1 - x0) * (kWidth - kLeft - kRight); };
  const auto py = [&](double y) { return kHeight - kBottom - y / y1 * (kHeight - kTop - kBottom); };
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {:.0f} {:.0f}' font-family='sans-serif' "
      "font-size='12'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n<text x='{:.0f}' y='22' font-size='14'>{}</text>\n",
      kWidth, kHeight, kLeft, c.title);
  for (int i = 0; i <= 5; ++i) {
    const double y = y1 * i / 5, t = x0 + (x1 - x0) * i / 5, x = c.log_x ? std::exp2(t) : t;
    out += fmt::format(
        "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>"
        "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{:.3g}</text>"
        "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{:.3g}</text>\n",
        kLeft, kWidth - kRight, py(y), py(y), kLeft - 6, py(y) + 4, y, px(x), kHeight - kBottom + 18, x);
  }
  out += fmt::format(
      "<text x='{:.0f}' y='{:.0f}' text-anchor='middle'>{}</text>\n"
      "<text transform='translate(16,{:.0f}) rotate(-90)' text-anchor='middle'>{}</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 10, c.x_label, kHeight / 2, c.y_label);
  for (const auto& mark : c.marks)
    out += fmt::format(
        "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='black' stroke-dasharray='5 4'/>"
        "<text x='{:.1f}' y='{:.1f}'>{}</text>\n",
        kLeft, kWidth - kRight, py(mark.y), py(mark.y), kWidth - kRight + 6, py(mark.y) + 4, mark.label);
  for (std::size_t i = 0; i < c.lines.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string path;
    for (auto [x, y] : c.lines[i].points) path += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
    out += fmt::format(
        "<polyline points='{}' fill='none' stroke='{}' stroke-width='1.8'/>"
        "<text x='{:.0f}' y='{:.0f}' fill='{}'>{}</text>\n",
        path, colour, kWidth - kRight + 6, kHeight - kBottom - 18.0 * static_cast<double>(c.lines.size() - i),
        colour, c.lines[i].label);
  }
  for (std::size_t i = 0; i < c.measured.size(); ++i) {
    const double key = kHeight - kBottom - 18.0 * static_cast<double>(c.lines.size() + i + 1);
    const auto circle = [&](double x, double y) {
      out += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3.5' fill='none' stroke='black'/>\n", x, y);
    };
    for (auto [x, y] : c.measured[i].points) circle(px(x), py(y));
    circle(kWidth - kRight + 10, key - 4);
    out += fmt::format("<text x='{:.0f}' y='{:.0f}'>{}</text>\n", kWidth - kRight + 20, key,
                       c.measured[i].label);
  }
  return out + "</svg>\n";
}

bool write_curves(const Curves& c, const std::string& folder) {
  std::ofstream svg(folder + "/" + c.name + ".svg");
  svg << curves_svg(c);
  std::ofstream csv(folder + "/" + c.name + ".csv");
  csv << "curve,x,y\n";
  for (const auto* set : {&c.lines, &c.measured})
    for (const auto& line : *set)
      for (auto [x, y] : line.points) csv << fmt::format("\"{}\",{:.6g},{:.6g}\n", line.label, x, y);
  for (const auto& mark : c.marks) csv << fmt::format("\"paper: {}\",,{:.6g}\n", mark.label, mark.y);
  return svg.good() && csv.good();
}

}  // namespace orrery::tool
