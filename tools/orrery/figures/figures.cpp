// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// `orrery figures`: reruns the papers' figures that their text lets one hold, paper beside ours.
#include "tools/orrery/figures/figures_book.hpp"
#include "tools/orrery/subcommand.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <unistd.h>

namespace orrery::tool {

namespace {

struct Figure {
  const char* name;
  bool brief;                    // part of the short set
  double brief_hops, full_hops;  // millions, for the budget
  void (*run)(Book&);
};
constexpr Figure kFigures[] = {
    {"alltoall-symmetric", true, 24, 130, alltoall_symmetric},
    {"alltoall-routing", true, 6, 25, alltoall_routing},
    {"alltoall-complete", true, 33, 360, alltoall_complete},
    {"alltoall-asymmetric", false, 0, 1170, alltoall_asymmetric},
    {"hot-region", true, 5, 5, hot_region},
    {"fills", true, 1, 1, fills},
    {"ping-pong", true, 1, 1, ping_pong},
    {"light-traffic", true, 10, 1200, light_traffic},
    {"arbitration", true, 18, 220, arbitration},
    {"buffers", false, 60, 120, buffers},
    {"hot-arbitration", false, 30, 60, hot_arbitration},
    {"escapes", false, 60, 160, escapes},
    {"aries-routing", false, 80, 2200, aries_routing},
    {"aries-placement", false, 15, 50, aries_placement},
    {"aries-scale", false, 80, 205, aries_scale},
    {"gemini", true, 34, 106, gemini},
    {"quadrics", true, 1, 1, quadrics},
    {"tiers", false, 12, 85, tiers},
    {"latency-by-hops", true, 0, 0, latency_by_hops},
};

// Before hours of simulation, not after them.
bool can_write_into(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
}

int run_figures(const FigureOptions& options) {
  std::vector<const Figure*> chosen;
  std::string names;
  for (const Figure& figure : kFigures) {
    names += (names.empty() ? "" : ", ") + std::string(figure.name);
    if (options.only.empty() ? !options.brief || figure.brief : options.only == figure.name)
      chosen.push_back(&figure);
  }
  if (chosen.empty()) return usage_error(fmt::format("figure '{}': expected one of {}", options.only, names));
  const auto hops_of = [&](const Figure& figure) {
    return options.brief ? figure.brief_hops : figure.full_hops;
  };
  double budget = 0;
  fmt::print("budget, millions of packet-hops:\n");
  for (const Figure* figure : chosen) {
    budget += hops_of(*figure);
    fmt::print("  {:<22} {:6.0f}\n", figure->name, hops_of(*figure));
  }
  fmt::print("  {:<22} {:6.0f}\n", "all", budget);
  if (options.list) return 0;
  if (!options.folder.empty() && !can_write_into(options.folder))
    return usage_error(
        fmt::format("cannot write into '{}': expected a folder, or a place for one", options.folder));
  Book book(options);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    book.begin(chosen[i]->name, i + 1, chosen.size(), hops_of(*chosen[i]));
    chosen[i]->run(book);
  }
  std::size_t known = 0, unknown = 0;
  for (const Row& row : book.rows()) {
    known += !row.holds && row.known;
    unknown += !row.holds && !row.known;
  }
  fmt::print("{} of {} hold; {} miss and are known to; {} miss unexpectedly; {} million packet-hops\n",
             book.rows().size() - known - unknown, book.rows().size(), known, unknown, book.hops() / 1000000);
  if (!options.folder.empty()) {
    std::ofstream table(options.folder + "/" + (options.only.empty() ? "figures" : options.only) + ".csv");
    table << "figure,paper,ours,tolerance,kind,holds\n";
    for (const Row& row : book.rows())
      table << fmt::format("\"{}\",\"{}\",\"{}\",\"{}\",{},{}\n", row.what, row.paper, row.ours,
                           row.tolerance, row.kind, row.holds ? "yes" : "no");
    if (!table.good())
      return usage_error(
          fmt::format("the table in '{}' cannot be written: {}", options.folder, std::strerror(errno)));
  }
  if (book.failed()) return kExitFailure;
  return unknown == 0 ? 0 : kExitFailure;
}

}  // namespace

void add_figures(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<FigureOptions>();
  auto* command = root.add_subcommand("figures", "Rerun the papers' figures, paper beside ours");
  command->add_option("figure", options->only, "One of them; --list names them");
  command->add_flag("--short", options->brief, "The short set, at smaller sizes");
  command->add_flag("--list", options->list, "Names and budgets only");
  command->add_flag("--detail", options->detail, "tiers: every load");
  command->add_option("--out", options->folder, "Folder for curves and table; made if it is not there");
  command->add_option("--program", options->program,
                      "latency-by-hops: orrery_put_latency, run for points beside the curves");
  command->add_option("--threads", options->threads, "The results are the same for any number")
      ->check(CLI::Range(1, 256));
  command->add_option("--seed", options->seed, "Of every random choice");
  command->callback([options, &exit_code] { exit_code = run_figures(*options); });
}

}  // namespace orrery::tool
