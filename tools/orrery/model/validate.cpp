// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"
#include "emu/model/measure.hpp"
#include "emu/model/reference.hpp"
#include "tools/orrery/subcommand.hpp"
#include "tools/orrery/text_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace orrery::tool {

namespace {

struct ValidateOptions {
  std::string machine, reference;
  bool json = false, all = false;
};

std::string tolerance_text(const model::ReferenceRow& row) {
  if (row.compare == model::Compare::percent) return fmt::format("{} %", row.tolerance_percent);
  return std::string(model::compare_name(row.compare));
}

// Machines by name, each built once; or one of the user's own, which is held to the rows of the machine that
// its `name` says.
class Machines {
 public:
  // What is wrong, empty if nothing.
  std::string use_own(const std::string& name) {
    model::BuiltMachine built = model::build_machine(name);
    own_ = std::move(built.machine);
    return built.error;
  }
  // nullptr where the row is of another machine than the user's own. REQUIRES: else the row's is a shipped
  // one.
  const model::Machine* of(const std::string& name, std::string* error) {
    if (own_) return own_->description.name == name ? own_.get() : nullptr;
    auto& built = shipped_[name];
    if (!built) {
      model::BuiltMachine made = model::build_machine(name);
      *error = made.error;
      built = std::move(made.machine);
    }
    return built.get();
  }
  std::string own_name() const { return own_ ? own_->description.name : std::string(); }

 private:
  std::unique_ptr<model::Machine> own_;
  std::map<std::string, std::unique_ptr<model::Machine>> shipped_;
};

// Rows of one class, as they are added up.
struct Tally {
  int rows = 0, held = 0;
  double worst = 0;
  std::string worst_row = "none";
  void add(const model::ReferenceRow& row, const model::Verdict& v) {
    ++rows;
    held += v.holds ? 1 : 0;
    if (row.compare != model::Compare::percent || std::abs(v.error_percent) <= worst) return;
    worst = std::abs(v.error_percent);
    worst_row = row.id;
  }
};

nlohmann::json as_json(const model::ReferenceRow& row, const model::Verdict& v, const char* status) {
  return {{"id", row.id},
          {"machine", row.machine},
          {"place", row.place},
          {"what", row.what},
          {"printed", row.printed},
          {"unit", row.unit},
          {"model", v.model ? nlohmann::json(*v.model) : nlohmann::json()},
          {"error_percent", v.error_percent},
          {"accepts", tolerance_text(row)},
          {"status", status},
          {"holds", v.holds},
          {"constants", row.constants}};
}

void print_row(const model::ReferenceRow& row, const model::Verdict& v, const char* status,
               const char* outcome) {
  fmt::print("{:<6} {:<10} {:<20} {:<58} {:>9} {:>10} {:<9} {:>7.2f} % {:>9}  {:<9} {}\n", row.id,
             row.machine, row.place, row.what, row.printed, v.model ? fmt::format("{:.5g}", *v.model) : "-",
             row.unit, v.error_percent, tolerance_text(row), status, outcome);
}

// Shown and told, never judged: a model need not be right about a machine of another year with another
// library.
int measurements(Machines& machines, bool json, nlohmann::json* out) {
  const model::ReferenceTable table =
      model::parse_reference(model::shipped_measurements(), "measurements.csv");
  if (!table.error.empty()) return usage_error(table.error);
  Tally tallies[2];
  int elsewhere = 0;
  nlohmann::json rows = nlohmann::json::array();
  if (!json) fmt::print("\nother measurements of such machines:\n");
  for (const model::ReferenceRow& row : table.rows) {
    std::string error;
    const model::Machine* const machine = machines.of(row.machine, &error);
    if (!error.empty()) return usage_error(error);
    if (machine == nullptr) continue;
    const model::Verdict v = model::judge(*machine, row);
    if (!v.model)
      ++elsewhere;
    else
      tallies[v.fitted].add(row, v);
    const char* const status = !v.model ? "simulator" : v.fitted ? "fitted" : "predicted";
    if (json)
      rows.push_back(as_json(row, v, status));
    else
      print_row(row, v, status, !v.model ? "-" : v.holds ? "ok" : "misses");
  }
  if (json) {
    *out = std::move(rows);
    return 0;
  }
  fmt::print("{} rows: of {} predicted {} within 15 %, of {} fitted {}; {} the simulator's\n",
             tallies[0].rows + tallies[1].rows + elsewhere, tallies[0].rows, tallies[0].held, tallies[1].rows,
             tallies[1].held, elsewhere);
  fmt::print("worst error: fitted {:.2f} % ({}), predicted {:.2f} % ({})\n", tallies[1].worst,
             tallies[1].worst_row, tallies[0].worst, tallies[0].worst_row);
  return 0;
}

int validate(const ValidateOptions& options) {
  std::string csv(model::shipped_reference());
  std::string file = "reference.csv";
  if (!options.reference.empty()) {
    auto text = read_text_file(options.reference);
    if (!text) {
      return usage_error(fmt::format("{}: cannot be read: {}; expected a reference table", options.reference,
                                     std::strerror(errno)));
    }
    csv = *std::move(text);
    file = options.reference;
  }
  const model::ReferenceTable table = model::parse_reference(csv, file);
  if (!table.error.empty()) return usage_error(table.error);

  Machines machines;
  if (!options.machine.empty()) {
    if (const std::string error = machines.use_own(options.machine); !error.empty())
      return usage_error(error);
  }
  nlohmann::json rows = nlohmann::json::array();
  Tally tallies[2];  // predicted, fitted
  int conflicts = 0;
  std::vector<const model::ReferenceRow*> unmeasured;
  // Apart: first what the file was calibrated to, then what follows.
  const int passes = options.all && !options.json ? 2 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    if (passes == 2)
      fmt::print("{}of the papers, {}:\n", pass == 0 ? "" : "\n", pass == 0 ? "fitted" : "predicted");
    for (const model::ReferenceRow& row : table.rows) {
      std::string error;
      const model::Machine* const machine = machines.of(row.machine, &error);
      if (!error.empty()) return usage_error(error);
      if (machine == nullptr) continue;
      const model::Verdict v = model::judge(*machine, row);
      if (passes == 2 && v.fitted != (pass == 0)) continue;
      if (!v.model) unmeasured.push_back(&row);
      const bool conflict = row.compare == model::Compare::conflict;
      if (conflict)
        ++conflicts;
      else
        tallies[v.fitted].add(row, v);
      const char* const status = conflict ? "conflict" : v.fitted ? "fitted" : "predicted";
      if (options.json)
        rows.push_back(as_json(row, v, status));
      else
        print_row(row, v, status, conflict ? "-" : v.holds ? "ok" : "FAILS");
    }
  }
  for (const model::ReferenceRow* row : unmeasured)
    fmt::print(stderr, "orrery: {}: row {}: measure '{}' is none, or machine {} has no such thing\n", file,
               row->id, row->measure, row->machine);
  if (!unmeasured.empty())
    fmt::print(stderr, "measures, each of a machine or, behind 'layer: ', of it with that layer:\n{}",
               model::measure_help());
  const int judged = tallies[0].rows + tallies[1].rows;
  const int failed = judged - tallies[0].held - tallies[1].held;
  if (judged == 0)
    return usage_error(fmt::format("no row of {} is about machine '{}'", file, machines.own_name()));
  nlohmann::json others;
  if (!options.json) {
    fmt::print(
        "{} rows: {} fitted, {} predicted, {} failed; {} shown unjudged (the source contradicts itself)\n",
        judged, tallies[1].rows, tallies[0].rows, failed, conflicts);
    fmt::print("worst error of a row with a percentage: fitted {:.2f} % ({}), predicted {:.2f} % ({})\n",
               tallies[1].worst, tallies[1].worst_row, tallies[0].worst, tallies[0].worst_row);
  }
  if (options.all) {
    if (const int code = measurements(machines, options.json, &others); code != 0) return code;
  }
  if (options.json) {
    nlohmann::json all = {
        {"rows", rows},
        {"fitted", tallies[1].rows},
        {"predicted", tallies[0].rows},
        {"conflicts", conflicts},
        {"failed", failed},
        {"worst_error_percent", {{"fitted", tallies[1].worst}, {"predicted", tallies[0].worst}}}};
    if (options.all) all["measurements"] = others;
    fmt::print("{}\n", all.dump(2));
  }
  return failed == 0 ? 0 : kExitFailure;
}

}  // namespace

void add_validate(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = root.add_subcommand("validate", "Hold the machines to the figures that their papers print");
  command->add_option("machine", options->machine,
                      "A machine's name or file; all shipped machines if not given");
  command->add_option("--reference", options->reference, "Another reference table (CSV)");
  command->add_flag("--all", options->all,
                    "Fitted and predicted rows apart, and what others measured on such machines");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = validate(*options); });
}

}  // namespace orrery::tool
