// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The figures that the papers print, and how a machine is held to them: machines/reference.csv.
//
// A row is *fitted* if any constant it depends on consumed it (the machine file says which rows a
// constant consumed); all others are *predicted*. What a row depends on stands in the table and is
// checked by a test that changes every constant.
#pragma once

#include "emu/model/machine.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::model {

// How a model's figure is compared with the printed one.
enum class Compare : std::uint8_t {
  digits,   // rounds (half up) to the printed digits
  percent,  // within the row's tolerance
  at_least,
  at_most,
  above,
  below,
  range,     // between two printed ends
  conflict,  // the source contradicts itself here: shown, never judged
};

struct ReferenceRow {
  std::string id, machine, place, what, printed, unit;
  Compare compare = Compare::percent;
  double tolerance_percent = 0;
  double low = 0, high = 0;  // printed value; both ends of a range
  double half_digit = 0;     // half a unit of the last printed digit
  std::string measure;
  std::vector<std::string> constants;  // that the model's figure depends on
};

struct ReferenceTable {
  std::vector<ReferenceRow> rows;
  std::string error;  // one line, empty where the table is sound
};

// Columns: id, machine, place, what, printed, unit, compare, tolerance, measure, constants.
ReferenceTable parse_reference(std::string_view csv, std::string_view file);

struct Verdict {
  const ReferenceRow* row = nullptr;
  std::optional<double> model;
  double error_percent = 0;  // signed, against the printed value (the nearer end of a range)
  bool fitted = false;
  bool holds = false;
};
Verdict judge(const Machine& machine, const ReferenceRow& row);
// The same of a figure that was found elsewhere, as by a program; not whether the row is fitted.
Verdict judge_value(const ReferenceRow& row, double value);

std::string_view compare_name(Compare compare);

}  // namespace orrery::model
