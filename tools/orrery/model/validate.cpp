// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine_file.hpp"
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

namespace orrery::tool {

namespace {

struct ValidateOptions {
  std::string machine, reference;
  bool json = false;
};

std::string tolerance_text(const model::ReferenceRow& row) {
  if (row.compare == model::Compare::percent) return fmt::format("{} %", row.tolerance_percent);
  return std::string(model::compare_name(row.compare));
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

  // A machine of the user's own is held to the rows of the machine that its `name` says.
  std::unique_ptr<model::Machine> own;
  if (!options.machine.empty()) {
    model::BuiltMachine built = model::build_machine(options.machine);
    if (!built.machine) return usage_error(built.error);
    own = std::move(built.machine);
  }
  std::map<std::string, std::unique_ptr<model::Machine>> machines;
  nlohmann::json rows = nlohmann::json::array();
  int fitted = 0, predicted = 0, conflicts = 0, failed = 0;
  double worst[2] = {0, 0};
  std::string worst_row[2] = {"none", "none"};
  for (const model::ReferenceRow& row : table.rows) {
    const model::Machine* machine = own.get();
    if (machine != nullptr) {
      if (machine->description.name != row.machine) continue;
    } else {
      auto& built = machines[row.machine];
      if (!built) {
        model::BuiltMachine made = model::build_machine(row.machine);
        if (!made.machine) return usage_error(made.error);
        built = std::move(made.machine);
      }
      machine = built.get();
    }
    const model::Verdict v = model::judge(*machine, row);
    const bool conflict = row.compare == model::Compare::conflict;
    if (conflict) {
      ++conflicts;
    } else {
      ++(v.fitted ? fitted : predicted);
      failed += v.holds ? 0 : 1;
      if (row.compare == model::Compare::percent && std::abs(v.error_percent) > worst[v.fitted]) {
        worst[v.fitted] = std::abs(v.error_percent);
        worst_row[v.fitted] = row.id;
      }
    }
    const char* status = conflict ? "conflict" : v.fitted ? "fitted" : "predicted";
    const char* outcome = conflict ? "-" : v.holds ? "ok" : "FAILS";
    if (options.json) {
      rows.push_back({{"id", row.id},
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
                      {"constants", row.constants}});
    } else {
      fmt::print("{:<6} {:<10} {:<20} {:<58} {:>9} {:>10} {:<9} {:>7.2f} % {:>9}  {:<9} {}\n", row.id,
                 row.machine, row.place, row.what, row.printed,
                 v.model ? fmt::format("{:.5g}", *v.model) : "-", row.unit, v.error_percent,
                 tolerance_text(row), status, outcome);
    }
  }
  const int judged = fitted + predicted;
  if (judged == 0)
    return usage_error(fmt::format("no row of {} is about machine '{}'", file, own->description.name));
  if (options.json) {
    const nlohmann::json all = {
        {"rows", rows},           {"fitted", fitted},
        {"predicted", predicted}, {"conflicts", conflicts},
        {"failed", failed},       {"worst_error_percent", {{"fitted", worst[1]}, {"predicted", worst[0]}}}};
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print(
        "{} rows: {} fitted, {} predicted, {} failed; {} shown unjudged (the source contradicts itself)\n",
        judged, fitted, predicted, failed, conflicts);
    fmt::print("worst error of a row with a percentage: fitted {:.2f} % ({}), predicted {:.2f} % ({})\n",
               worst[1], worst_row[1], worst[0], worst_row[0]);
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
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &exit_code] { exit_code = validate(*options); });
}

}  // namespace orrery::tool
