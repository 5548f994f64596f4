// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/scene/simulate.hpp"
#include "tools/orrery/figures/figures_curve.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::tool {

// One line of the table: a number or an ordering that a paper states, and what came out.
struct Row {
  std::string what, paper, ours, tolerance, kind;  // kind: predicted, fitted
  bool holds;
  bool known = false;  // a miss that docs/simulator.md explains: printed as one, no failure
};

struct FigureOptions {
  std::string only, folder;
  std::string program;  // that measures points of latency-by-hops; empty: none are measured
  bool brief = false, list = false, detail = false;
  unsigned threads = 1;
  std::uint64_t seed = 1;
};

// Runs simulations for figures and keeps what came out.
class Book {
 public:
  explicit Book(const FigureOptions& options) : options_(options) {}
  const FigureOptions& options() const { return options_; }
  // A figure begins, the `number`th `of` so many, which takes about so many packet-hops. That is printed at
  // once, into a pipe too, and so is every tenth of them, or every 20 million where that is more. By
  // packet-hops and not by seconds: the lines are the same in every run.
  void begin(const char* name, std::size_t number, std::size_t of, double million_hops) {
    fmt::print("{}, {} of {}: {:.0f} million packet-hops\n", name, number, of, million_hops);
    std::fflush(stdout);
    begun_ = hops_;
    budget_ = million_hops;
    step_ = std::max(million_hops / 10, 20.0);
    next_ = step_;
  }
  void row(Row row) {
    if (!finite(row.ours)) {
      row.holds = row.known = false;
      row.ours = "nothing to measure";
    }
    fmt::print("{} {:<66} paper {:<16} ours {:<22} within {:<10} {}\n", row.holds ? "ok  " : "MISS", row.what,
               row.paper, row.ours, row.tolerance, row.kind);
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }
  void percent(const std::string& what, double paper, double ours, double points,
               const char* kind = "predicted", bool known = false) {
    row({what, fmt::format("{:.1f} %", paper), fmt::format("{:.1f} %", ours),
         fmt::format("{} points", points), kind, std::fabs(ours - paper) <= points, known});
  }
  void relative(const std::string& what, double paper, double ours, double percent, const char* unit,
                const char* kind = "predicted", bool known = false) {
    row({what, fmt::format("{:.4g} {}", paper, unit), fmt::format("{:.4g} {}", ours, unit),
         fmt::format("{:.0f} %", percent), kind, std::fabs(ours - paper) <= paper * percent / 100, known});
  }
  void order(const std::string& what, const std::string& paper, const std::string& ours, bool holds,
             bool known = false) {
    row({what, paper, ours, "ordering", "predicted", holds, known});
  }
  void curves(const Curves& curves) {
    if (!options_.folder.empty() && !write_curves(curves, options_.folder))
      std::fprintf(stderr, "orrery: cannot write %s/%s\n", options_.folder.c_str(), curves.name.c_str());
  }
  sim::SimResult run(sim::RunSpec spec) {
    spec.threads = options_.threads;
    if (spec.seed == 1) spec.seed = options_.seed;
    spec.progress = [this](double, const sim::Counters& now, std::uint64_t) { tell(hops_ + now.link_hops); };
    sim::SimResult result;
    if (const auto no = sim::simulate(spec, &result); no.refused()) {
      std::fprintf(stderr, "orrery: %s\n", no.why.c_str());
      failed_ = true;
    }
    spent(result);
    if (!result.outcome.conserved) failed_ = true;
    return result;
  }
  // Mean latency of the packets of the window; not a number when none of them arrived, or when the network
  // did not carry what was offered: then queues grow at the sources and latency tells how long the run was.
  // `slack`: what share of the offered load it may fall short of it.
  double latency_us(const sim::RunSpec& spec, double slack = 0.02) {
    const sim::SimResult result = run(spec);
    const bool carried =
        result.outcome.latency.count() != 0 && result.outcome.steady && !result.saturated(slack);
    return carried ? result.mean_latency_ns() / 1000 : std::numeric_limits<double>::quiet_NaN();
  }
  void spent(const sim::SimResult& result) { spent(result.outcome.total.link_hops); }
  void spent(std::uint64_t packet_hops) {
    hops_ += packet_hops;
    tell(hops_);
  }
  bool failed() const { return failed_; }
  std::uint64_t hops() const { return hops_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  // Whether every number in a result is one: what a comparison makes of others means nothing.
  static bool finite(const std::string& ours) {
    std::string word;
    for (const char c : ours + ' ') {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += c;
        continue;
      }
      if (word == "inf" || word == "nan") return false;
      word.clear();
    }
    return true;
  }

  void tell(std::uint64_t hops) {
    const double done = static_cast<double>(hops - begun_) / 1e6;
    if (done < next_ || done >= budget_) return;
    fmt::print("     {:.0f} of {:.0f} million packet-hops\n", done, budget_);
    std::fflush(stdout);
    next_ = step_ * (std::floor(done / step_) + 1);
  }

  FigureOptions options_;
  std::vector<Row> rows_;
  std::uint64_t hops_ = 0;
  std::uint64_t begun_ = 0;                  // of hops_ when the figure began
  double budget_ = 0, step_ = 0, next_ = 0;  // of the figure, in millions
  bool failed_ = false;
};

// The figures; each adds its rows to the book.
void alltoall_symmetric(Book& book);
void alltoall_routing(Book& book);
void alltoall_complete(Book& book);
void alltoall_asymmetric(Book& book);
void hot_region(Book& book);
void fills(Book& book);
void ping_pong(Book& book);
void light_traffic(Book& book);
void arbitration(Book& book);
void buffers(Book& book);
void hot_arbitration(Book& book);
void escapes(Book& book);
void aries_routing(Book& book);
void aries_placement(Book& book);
void aries_scale(Book& book);
void gemini(Book& book);
void quadrics(Book& book);
void tiers(Book& book);
void latency_by_hops(Book& book);

}  // namespace orrery::tool
