// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/osu/table.hpp"

#include "bench/common/clock.hpp"
#include "bench/common/options.hpp"
#include "bench/revision.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bench {

void OsuOptions::parse(const char* about, int argc, char** argv, std::size_t least, std::size_t unit) {
  Options options(about);
  if (has_sizes) {
    options.number("-m,--min", &smallest, "smallest message in bytes", 1, std::size_t{1} << 30);
    options.number("-M,--max", &largest, "largest message in bytes", 1, std::size_t{1} << 30);
  }
  options.number("-i,--iterations", &iterations, "iterations of sizes up to 8 KiB; a tenth above", 10,
                 100'000'000);
  options.number("-x,--warm-up", &warm_up, "iterations before the clock starts", 0, 1'000'000);
  options.text("--format", &format, "osu, csv or json", {"osu", "csv", "json"});
  options.flag("-p,--percentiles", &percentiles, "add p50 and p99 columns to the osu format");
  options.flag("--pin", &pinned, "pin each PE to a core");
  options.flag("--model", &model, "add what the machine's model says, and the difference in percent of it");
  for (const Flag& flag : extra_flags) options.flag(flag.name, flag.set, flag.help);
  options.parse(argc, argv);
  smallest = std::max((smallest + unit - 1) / unit * unit, least);
  if (smallest > largest) {
    std::fprintf(stderr, "--min %zu and --max %zu are not accepted: expected %zu <= min <= max bytes\n",
                 smallest, largest, least);
    std::exit(2);
  }
}

OsuTable::OsuTable(const OsuOptions& options, const char* title, const char* unit) : options_(options) {
  if (options.format == "osu") {
    std::printf("# %s, revision %s\n# %-8s%20s", title, orrery::bench::kRevision, "Size", unit);
    if (options.percentiles) std::printf("%20s%20s", "p50", "p99");
    if (options.model) std::printf("%20s%12s", "Model", "Error (%)");
    std::printf("\n");
  } else if (options.format == "csv") {
    std::printf("size,average,p50,p99,unit%s\n", options.model ? ",model,error_percent" : "");
  } else {
    std::printf("[");
  }
  unit_ = unit;
}

OsuTable::~OsuTable() {
  if (options_.format == "json") std::printf("\n]\n");
}

void OsuTable::line(std::size_t bytes, double average, const std::vector<double>& samples,
                    std::optional<double> model) {
  const double p50 = median(samples);
  const double p99 = percentile(samples, 0.99);
  const double error = model && *model != 0 ? (average / *model - 1) * 100 : 0;
  if (options_.format == "osu") {
    std::printf("%-10zu%20.2f", bytes, average);
    if (options_.percentiles) std::printf("%20.2f%20.2f", p50, p99);
    if (model) std::printf("%20.2f%12.2f", *model, error);
    std::printf("\n");
  } else if (options_.format == "csv") {
    std::printf("%zu,%.3f,%.3f,%.3f,%s", bytes, average, p50, p99, unit_.c_str());
    if (model) std::printf(",%.3f,%.3f", *model, error);
    std::printf("\n");
  } else {
    std::printf("%s\n  {\"size\": %zu, \"average\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"unit\": \"%s\"",
                first_ ? "" : ",", bytes, average, p50, p99, unit_.c_str());
    if (model) std::printf(", \"model\": %.3f, \"error_percent\": %.3f", *model, error);
    std::printf("}");
  }
  first_ = false;
  std::fflush(stdout);
}

}  // namespace bench
