// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/machine.hpp"
#include "emu/sim/failure/asked_losses.hpp"
#include "emu/sim/scene/report.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "tools/orrery/sim/sim_html.hpp"
#include "tools/orrery/subcommand.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <unistd.h>

namespace orrery::tool {

namespace {

std::atomic<bool> g_interrupted{false};
extern "C" void note_interrupt(int) { g_interrupted.store(true); }

struct SimOptions {
  sim::RunSpec spec;
  std::string hot_region, sweep, html;
  bool json = false, csv = false, quiet = false;
};

// "load=0.1:1.0:0.1" into its values.
std::string parse_sweep(const std::string& text, std::vector<double>* loads) {
  double from = 0, to = 0, step = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "load=%lf:%lf:%lf%c", &from, &to, &step, &rest) != 3 || !(from > 0) ||
      !(to <= 1) || !(step > 0) || from > to || (to - from) / step > 1000)
    return fmt::format("sweep '{}': expected load=<from>:<to>:<step>, 0 < from <= to <= 1", text);
  const int count = static_cast<int>(std::floor((to - from) / step + 1e-9));
  for (int i = 0; i <= count; ++i) loads->push_back(from + i * step);
  return {};
}

// Share done and time left on one line of stderr, if that is a terminal.
class Progress {
 public:
  void operator()(double us, const sim::Counters& totals, std::uint64_t expected) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (now - shown_ < milliseconds(500)) return;
    shown_ = now;
    const double wall = duration<double>(now - started_).count();
    std::string line = fmt::format("\r{:10.1f} us  {:12} packets  {:6.2f} M packet-hops/s", us,
                                   totals.delivered, static_cast<double>(totals.link_hops) / wall / 1e6);
    if (expected > 0 && totals.delivered > 0) {
      const double done = static_cast<double>(totals.delivered) / static_cast<double>(expected);
      line += fmt::format("  {:5.1f} %  {:.0f} s left ", 100 * done, wall * (1 - done) / done);
    }
    std::fputs(line.c_str(), stderr);
  }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now(), shown_ = started_;
};

int run_sim(SimOptions& options) {
  sim::RunSpec& spec = options.spec;
  if (model::build_machine(spec.workload).machine)
    return usage_error(fmt::format(
        "'{0}' stands where a workload is expected: the machine is given by --machine {0}", spec.workload));
  if (spec.workload.empty() && spec.trace.empty())
    return usage_error("no workload given: expected --replay <file> or one of " + sim::workload_names());
  if (!options.hot_region.empty() && !sim::parse_shape(options.hot_region, &spec.hot_region))
    return usage_error(fmt::format("hot region '{}': expected a shape such as 2x2x2", options.hot_region));
  std::vector<double> loads;
  if (options.sweep.empty()) {
    loads.push_back(spec.load);
  } else if (const std::string no = parse_sweep(options.sweep, &loads); !no.empty()) {
    return usage_error(no);
  }
  std::ofstream page;
  if (!options.html.empty()) {
    spec.keep_link_busy = true;
    // Before the run: a page that cannot be written is not worth the wait.
    page.open(options.html);
    if (!page)
      return usage_error(fmt::format("page '{}': expected a file that can be written", options.html));
  }
  spec.watch_buffers = options.json || page.is_open();
  const bool terminal = isatty(2) != 0 && !options.quiet;
  spec.interrupt = &g_interrupted;
  std::signal(SIGINT, note_interrupt);
  std::vector<sim::SimResult> results;
  for (const double load : loads) {
    spec.load = load;
    if (terminal) spec.progress = Progress();
    sim::SimResult result;
    if (const auto no = sim::simulate(spec, &result); no.refused()) return usage_error(no.why);
    if (terminal) std::fputs("\r\033[K", stderr);
    results.push_back(std::move(result));
    if (g_interrupted.load()) break;
  }
  if (options.csv) {
    fmt::print("{}\n", sim::csv_header());
    for (const auto& result : results) fmt::print("{}\n", sim::to_csv(result));
  } else if (options.json) {
    if (!options.sweep.empty()) fmt::print("[");
    for (std::size_t i = 0; i < results.size(); ++i)
      fmt::print("{}{}", i ? ",\n" : "", sim::to_json(results[i]));
    fmt::print("{}\n", options.sweep.empty() ? "" : "]");
  } else {
    for (const auto& result : results) fmt::print("{}", sim::to_text(result));
  }
  if (page.is_open()) {
    page << sim_html(results);
    page.close();
    if (!page) return usage_error(fmt::format("page '{}': writing failed", options.html));
  }
  bool sound = true;
  for (const auto& result : results)
    sound =
        sound && result.outcome.conserved && result.outcome.stop != sim::Stop::deadlock && !result.stuck();
  return sound ? 0 : kExitFailure;
}

}  // namespace

void add_sim(CLI::App& root, int& exit_code) {
  auto options = std::make_shared<SimOptions>();
  sim::RunSpec& spec = options->spec;
  spec.workload.clear();
  auto* command = root.add_subcommand("sim", "Simulate a machine's network packet by packet");
  auto* workload = command->add_option("workload", spec.workload, "One of " + sim::workload_names());
  auto* replay = command->add_option("--replay", spec.trace, "A trace of a real run instead of a workload");
  workload->excludes(replay);
  command
      ->add_option("--machine", spec.machine,
                   "One of " + sim::machine_names() + ", or a machine file of one of these kinds")
      ->capture_default_str();
  command->add_option(
      "--nodes", spec.nodes,
      "Shape: 8x8x8 (tori), groups of 384 nodes (aries), nodes (asci-q); the machine's own if not given");
  command->add_option("--preset", spec.preset,
                      "Parameters of a figure; bluegene-l: " + sim::preset_names("bluegene-l"));
  command->add_option("--routing", spec.routing,
                      "bluegene-l: " + sim::routing_names("bluegene-l") + "; gemini: " +
                          sim::routing_names("gemini") + "; aries: " + sim::routing_names("aries"));
  command
      ->add_option(
          "--bytes", spec.bytes,
          "Bytes from each node to each other node (alltoall), of a message (broadcast, barrier, allreduce), "
          "that a root or node broadcasts (fills, row-broadcast), or of a packet; if not given the largest "
          "payload of the machine's packets, of a barrier and an allreduce 8")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--load", spec.load,
                      "Offered load, share of the uniform peak, 0 < load <= 1; 0: no limit");
  command->add_option("--sweep", options->sweep, "load=<from>:<to>:<step>");
  command->add_option("--priority", spec.priority,
                      "Share of a rate workload's packets that have priority (bluegene-l, asci-q)");
  command->add_flag("--get", spec.get, "Ask for the bytes instead of sending them (gemini, aries)");
  command->add_option("--order", spec.order, "alltoall: random or shift");
  command->add_flag("--in-step", spec.in_step,
                    "alltoall by shift: a node waits for its own message before it sends the next");
  command->add_option(
      "--ahead", spec.ahead,
      "alltoall by shift: bytes that a node sends at most beyond what has arrived at it; 0: no "
      "limit");
  command->add_option("--burst", spec.burst,
                      "alltoall in random order: packets to one destination in a row; 0: whole messages");
  command->add_option("--subset", spec.subset, "alltoall inside lines or planes (tori), or groups (aries)");
  command->add_option("--hot-fraction", spec.hot_fraction, "Share of packets that go to the hot place");
  command->add_option("--hot-region", options->hot_region, "Its shape, from (0,0,0)");
  command->add_flag("--infinite-fifos", spec.infinite_fifos,
                    "All packets are in the injection FIFOs from the start, each in that of the direction it "
                    "goes furthest");
  command->add_flag("--fifos-in-turn", spec.fifos_in_turn,
                    "... each in the next FIFO instead, whatever its direction");
  command->add_flag("--steady", spec.steady, "alltoall without end, measured once steady");
  command->add_option("--repeat", spec.repeat,
                      "alltoall: whole exchanges; barrier, allreduce: one after the other");
  command->add_option("--grain", spec.grain, "Machine packets that travel as one (gemini, seastar, aries)");
  command->add_option("--job-nodes", spec.job_nodes, "aries: alltoall on this many nodes only ...");
  command->add_option("--job-groups", spec.job_groups, "... spread over this many groups");
  command->add_option("--background", spec.background, "Load of the other nodes");
  command->add_option("--warmup-us", spec.warmup_us, "Not before this is a run called steady");
  command->add_option("--measure-us", spec.measure_us, "Length of the measured window");
  command->add_option("--until-us", spec.until_us, "Stop here at the latest");
  command->add_option("--sample-us", spec.sample_us,
                      fmt::format("Interval of the curves over time; it doubles when a run has {} of them",
                                  sim::kMostSamples));
  command->add_option("--bit-error-rate", spec.bit_error_rate, "Of a link");
  command->add_option("--failed-links", spec.failed_links,
                      "Out of service, drawn by the seed (gemini, aries, asci-q)");
  command->add_option("--severed", spec.severed,
                      "Neighbours that lose all links between them, drawn by the seed: new routing tables "
                      "(gemini, seastar; aries: in a chassis)");
  command->add_option("--fail-at-us", spec.fail_at_us, "When links and routers fail; 0: before the run");
  command->add_option(
      "--reroute-us", spec.reroute_us,
      fmt::format("How long the drained network waits for new tables; {} if not given", sim::kRerouteUs));
  command->add_option(
      "--failed-nodes", spec.failed_nodes,
      "Dead, and led round: how many, drawn by the seed, or coordinates 1.0.3,2.2.2 (bluegene-l: "
      "at most 3; gemini, seastar: routers; aries: routers, group.chassis.slot)");
  command->add_option(
      "--firmware-us", spec.firmware_us,
      "seastar: what a receiver's processor takes for a message, measured 0.96 unreliable and "
      "1.56 reliable; 0: not simulated");
  command->add_option("--seed", spec.seed, "Of every random choice");
  command->add_option("--threads", spec.threads, "The result is the same for any number");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--csv", options->csv, "Print CSV");
  command->add_option("--html", options->html,
                      "Write a page: curves, links by load, how full virtual channels are");
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->callback([options, &exit_code] { exit_code = run_sim(*options); });
}

}  // namespace orrery::tool
