// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/reference.hpp"

#include "emu/model/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace orrery::model {

namespace {

constexpr std::array<std::string_view, 8> kCompares{"digits", "percent", "at_least", "at_most",
                                                    "above",  "below",   "range",    "conflict"};
constexpr std::size_t kColumns = 10;

// One line of comma-separated fields; a field may stand in double quotes.
bool split(std::string_view line, std::vector<std::string>* fields) {
  fields->clear();
  std::string field;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields->push_back(field);
      field.clear();
    } else {
      field += c;
    }
  }
  fields->push_back(field);
  return !quoted && fields->size() == kColumns;
}

bool real(std::string_view text, double* out) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *out, std::chars_format::fixed);
  return error == std::errc{} && end == text.data() + text.size();
}

double half_of_last_digit(std::string_view printed) {
  const auto point = printed.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : printed.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

// The printed value or range; what is wrong, if anything.
std::string_view read_printed(ReferenceRow* row) {
  const auto dots = row->printed.find("..");
  const std::string_view text = row->printed;
  if (row->compare == Compare::range) {
    if (dots == std::string::npos || !real(text.substr(0, dots), &row->low) ||
        !real(text.substr(dots + 2), &row->high) || row->low > row->high) {
      return "printed: expected low..high";
    }
    return {};
  }
  if (!real(text, &row->low)) return "printed: expected a number";
  row->high = row->low;
  row->half_digit = half_of_last_digit(text);
  return {};
}

}  // namespace

std::string_view compare_name(Compare compare) { return kCompares[static_cast<std::size_t>(compare)]; }

ReferenceTable parse_reference(std::string_view csv, std::string_view file) {
  ReferenceTable table;
  std::vector<std::string> fields;
  std::size_t line_number = 0;
  while (!csv.empty()) {
    const auto end = csv.find('\n');
    const std::string_view line = csv.substr(0, end);
    csv = end == std::string_view::npos ? std::string_view{} : csv.substr(end + 1);
    ++line_number;
    if (line.empty() || line.starts_with('#') || line_number == 1) continue;
    const auto fail = [&](std::string_view what) {
      table.error = fmt::format("{}:{}: {}", file, line_number, what);
      table.rows.clear();
      return table;
    };
    if (!split(line, &fields)) return fail("expected 10 columns");
    ReferenceRow row;
    row.id = fields[0];
    row.machine = fields[1];
    row.place = fields[2];
    row.what = fields[3];
    row.printed = fields[4];
    row.unit = fields[5];
    const auto compare = std::find(kCompares.begin(), kCompares.end(), fields[6]);
    if (compare == kCompares.end())
      return fail(
          "compare: expected digits, percent, at_least, at_most, above, below, "
          "range or conflict");
    row.compare = static_cast<Compare>(compare - kCompares.begin());
    if (!fields[7].empty() && (!real(fields[7], &row.tolerance_percent) || row.tolerance_percent < 0)) {
      return fail("tolerance: expected a percentage");
    }
    if (row.compare == Compare::percent && fields[7].empty()) return fail("tolerance: missing");
    row.measure = fields[8];
    std::string_view names = fields[9];
    while (!names.empty()) {
      const auto space = names.find(' ');
      if (space != 0) row.constants.emplace_back(names.substr(0, space));
      names = space == std::string_view::npos ? std::string_view{} : names.substr(space + 1);
    }
    if (const auto problem = read_printed(&row); !problem.empty()) return fail(problem);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Verdict judge(const Machine& machine, const ReferenceRow& row) {
  const std::optional<double> model = measure(machine, row.measure);
  Verdict v = model ? judge_value(row, *model) : Verdict{};
  v.row = &row;
  for (const std::string& name : row.constants) {
    const Constant* c = machine.description.find(name);
    if (c != nullptr && std::find(c->rows.begin(), c->rows.end(), row.id) != c->rows.end()) v.fitted = true;
  }
  return v;
}

Verdict judge_value(const ReferenceRow& row, double model) {
  Verdict v;
  v.row = &row;
  v.model = model;
  const double printed = row.compare == Compare::range ? std::clamp(model, row.low, row.high) : row.low;
  v.error_percent = printed == 0 ? model * 100 : (model - printed) / std::abs(printed) * 100;
  constexpr double kRounding = 1e-9;  // of the doubles that the figures are printed from
  switch (row.compare) {
    case Compare::digits:
      v.holds = model >= row.low - row.half_digit - kRounding && model < row.low + row.half_digit + kRounding;
      break;
    case Compare::percent:
      v.holds = std::abs(v.error_percent) <= row.tolerance_percent;
      break;
    case Compare::at_least:
      v.holds = model >= row.low - kRounding;
      break;
    case Compare::at_most:
      v.holds = model <= row.low + kRounding;
      break;
    case Compare::above:
      v.holds = model > row.low;
      break;
    case Compare::below:
      v.holds = model < row.low;
      break;
    case Compare::range:
      v.holds = model >= row.low - kRounding && model <= row.high + kRounding;
      break;
    case Compare::conflict:
      v.holds = true;
      break;
  }
  return v;
}

}  // namespace orrery::model
