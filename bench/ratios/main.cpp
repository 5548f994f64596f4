// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// bench/ratios: what our operations cost against what the memory costs, in the same run. One command: starts
// the measuring jobs under `orrery run`, takes medians over repetitions, compares with the limits in the
// table.
//
//   ratios [--repetitions N] [--json] [--only NAME-PART]
//
// Exit code: 0 when every row holds, 1 when one does not, 2 when it could not be measured.
#include "bench/common/clock.hpp"
#include "bench/common/options.hpp"
#include "bench/ratios/stage.hpp"
#include "bench/ratios/tests.hpp"
#include "bench/revision.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Row {
  const char* name;
  const char* what;
  const char* unit;               // of ours and limit
  std::optional<double> at_most;  // of ours / limit
  std::optional<double> at_least;
};

// Every row: what it is, and what its ratio (ours / limit) may be.
const std::vector<Row> kRows = {
    {"put8_memory_polled", "8 B FMA put, half round trip, memory polled / raw line", "ns", 1.15, {}},
    {"put8_event_polled", "8 B FMA put, half round trip, remote event polled / raw line", "ns", 1.3, {}},
    {"put8_and_local_event", "8 B put + local event reaped", "ns", 20, {}},
    {"put8_silent", "8 B put, silent", "ns", 8, {}},
    {"get8_and_event", "8 B get + event reaped", "ns", 20, {}},
    {"bte_put_bandwidth_4096", "BTE put + event, 4 KiB / memcpy", "GB/s", {}, 0.65},
    {"bte_put_bandwidth_65536", "BTE put + event, 64 KiB / memcpy", "GB/s", {}, 0.95},
    {"bte_put_bandwidth_1048576", "BTE put + event, 1 MiB / memcpy", "GB/s", {}, 0.98},
    {"bte_put8_after_fence", "8 B BTE put + event, after the NIC's first fence / before it", "ns", 1.5, {}},
    {"rdma_256_mib_returns_us", "PostRdma of 256 MiB: until it returns", "us", 50, {}},
    {"half_bandwidth_bytes", "half-bandwidth size, silent FMA puts, window 64", "B", 1024, {}},
    {"register_known_range_us", "MemRegister + MemDeregister, known range", "us", 1, {}},
    {"register_new_page_us", "MemRegister + MemDeregister, new 4 KiB", "us", 20, {}},
    {"frame_put8_target_polls", "8 B put by frame, half round trip, target polls / raw line", "ns", 3, {}},
    {"ce_barrier_2_pes", "CE barrier, 2 PEs / raw line", "ns", 1.5, {}},
    {"ce_allreduce8_2_pes", "CE allreduce of a double, 2 PEs / raw line", "ns", 1.5, {}},
    {"ce_allreduce8_8_pes", "CE allreduce of a double, 8 PEs / bare counter-and-yield barrier", "ns", 2, {}},
    {"amo_fetching_and_event", "fetching AMO, 64 bits + event reaped", "ns", 25, {}},
    {"amo_silent", "AMO, 64 bits, silent", "ns", 20, {}},
    {"fma_launch", "FMA Launch, 8 B, in an open transaction", "ns", 6, {}},
    {"scatter_64_to_8_pes", "64 B to each of 8 PEs by one window store / eight memcpys", "ns", 1.3, {}},
    {"smsg8_memory_polled", "8 B short message, half round trip, no queues / raw line", "ns", 1.5, {}},
    {"smsg8_event_polled", "8 B short message, half round trip, both queues read / raw line", "ns", 2.5, {}},
    {"smsg8_window_64", "8 B short messages, window 64, per message / raw line", "ns", 0.6, {}},
    {"datagram_exchange_us", "datagram exchange, both sides polling", "us", 2, {}},
    {"counter_increment", "counter increment, half round trip, counter polled / raw line", "ns", 1.15, {}},
    {"trigger_put8",
     "increment that triggers a put of 8 B, until the data is there / raw line",
     "ns",
     1.5,
     {}},
    {"put8_through_space", "8 B put through the whole address space / through a registration", "ns", 1.1, {}},
    {"put8_8_threads", "8 B puts, 8 threads to 8 PEs, per put / 8 processes", "ns", 1.25, {}},
    {"dmapp_put8_nbi", "DMAPP 8 B put_nbi / uGNI's silent put", "ns", 1.2, {}},
    {"dmapp_put8_nbi_gsync", "DMAPP 8 B put_nbi + gsync / uGNI's put + event", "ns", 1.2, {}},
    {"dmapp_get8", "DMAPP 8 B blocking get / uGNI's get + event", "ns", 1.2, {}},
    {"dmapp_afadd", "DMAPP blocking fetch-add / uGNI's fetching AMO + event", "ns", 1.2, {}},
    {"dmapp_put8_memory_polled", "DMAPP 8 B put, half round trip, memory polled / raw line", "ns", 1.15, {}},
    {"dmapp_barrier_2_pes", "DMAPP barrier, 2 PEs / raw line", "ns", 1.5, {}},
    {"dmapp_barrier_8_pes", "DMAPP barrier, 8 PEs / bare counter-and-yield barrier", "ns", 1.5, {}},
    {"shmem_put64_memory_polled", "shmem_put64, half round trip, memory polled / raw line", "ns", 1.15, {}},
    {"shmem_put_nbi_quiet", "shmem_put64_nbi + quiet / DMAPP's put_nbi + gsync", "ns", 1.2, {}},
    {"shmem_g", "shmem_ulong_g / DMAPP's blocking get", "ns", 1.2, {}},
    {"shmem_fetch_add", "shmem_ulong_atomic_fetch_add / DMAPP's fetch-add", "ns", 1.2, {}},
    {"shmem_barrier_2_pes", "shmem_barrier_all, 2 PEs / raw line", "ns", 2, {}},
    {"shmem_reduce_2_pes", "shmem_long_sum_reduce of one, 2 PEs / raw line", "ns", 2, {}},
    {"shmem_barrier_8_pes", "shmem_barrier_all, 8 PEs / bare counter-and-yield barrier", "ns", 1.5, {}},
    {"barrier_by_puts_8_pes", "barrier by puts, 8 PEs / bare counter-and-yield barrier", "ns", 1.5, {}},
    {"portals_put8_counter_polled",
     "PtlPut of 8 B, half round trip, counter polled / raw line",
     "ns",
     1.3,
     {}},
    {"portals_put8_event_polled",
     "PtlPut of 8 B, half round trip, event queue polled / raw line",
     "ns",
     1.8,
     {}},
    {"portals3_put8_event_polled", "Portals 3.3: the same / Portals 4", "ns", 1.2, {}},
    {"portals_put8_window_64", "PtlPut of 8 B, window 64, per message / raw line", "ns", 0.65, {}},
    {"portals_match_1000_in_order",
     "PtlPut against 1,000 exact entries, in order / against 1",
     "ns",
     1.5,
     {}},
    {"portals_match_1000_reverse",
     "PtlPut against 1,000 exact entries, in reverse / against 1",
     "ns",
     1.5,
     {}},
    {"portals_match_1000_among_10_wild",
     "PtlPut against 1,000 exact among 10 wild / against 1",
     "ns",
     1.5,
     {}},
    {"portals_triggered_allreduce_8_pes",
     "triggered allreduce, 8 PEs / bare counter-and-yield barrier",
     "ns",
     2,
     {}},
    {"cci_ro_8", "CCI 8 B message, RO, half round trip, polled / raw line", "ns", 1.8, {}},
    {"cci_uu_8", "CCI 8 B message, UU, half round trip, polled / raw line", "ns", 1.5, {}},
    {"cci_ro_8_window_16", "CCI 8 B messages, RO, window 16, per message / raw line", "ns", 0.65, {}},
    {"cci_rma_write_1_mib", "CCI RMA write + event, 1 MiB / memcpy", "GB/s", {}, 0.9},
    {"cci_wake", "CCI wake by the handle / poll and read of an eventfd", "ns", 1.3, {}},
};

struct Job {
  const char* part;
  const char* processes;
  const char* adopt;   // ORRERY_ADOPT
  const char* attach;  // ORRERY_ATTACH
};
const std::array<Job, 18> kJobs = {{{"direct", "2", "hot", "on"},
                                    {"frames", "2", "never", "off"},
                                    {"messages", "2", "hot", "on"},
                                    {"units", "2", "hot", "on"},
                                    {"scatter", "8", "hot", "on"},
                                    {"barrier", "8", "hot", "on"},
                                    {"collective", "2", "hot", "on"},
                                    {"collective8", "8", "hot", "on"},
                                    {"counters", "2", "hot", "on"},
                                    {"threads", "8", "hot", "on"},
                                    {"dmapp", "2", "hot", "on"},
                                    {"dmapp8", "8", "hot", "on"},
                                    {"shmem", "2", "hot", "on"},
                                    {"shmem8", "8", "hot", "on"},
                                    {"portals", "2", "hot", "on"},
                                    {"portals8", "8", "hot", "on"},
                                    {"cci", "2", "hot", "on"},
                                    {"cci1", "1", "hot", "on"}}};

std::string self_path() {
  std::array<char, 4096> path{};
  const auto n = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string();
}

// What the measuring jobs said.
struct Measured {
  std::map<std::string, std::vector<std::pair<double, double>>> rows;  // ours and limit, one a repetition
  std::size_t kept = 0;                                                // batches that count
  std::size_t taken = 0;                                               // and all batches
};

// Runs one measuring job and adds what its lines say.
bool run_job(const Job& job, int repetitions, Measured& measured) {
  std::array<int, 2> pipe_ends{};
  const int stage = memfd_create("ratios-stage", 0);
  if (stage < 0 || ftruncate(stage, sizeof(bench::StageMemory)) != 0 || pipe(pipe_ends.data()) != 0)
    return false;
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    setenv(bench::kStageVariable, std::to_string(stage).c_str(), 1);
    setenv("ORRERY_ADOPT", job.adopt, 1);
    setenv("ORRERY_ATTACH", job.attach, 1);
    const std::string self = self_path();
    const std::string count = std::to_string(repetitions);
    execl(ORRERY_TOOL, ORRERY_TOOL, "run", "-n", job.processes, "--", self.c_str(), "--measure", job.part,
          "--repetitions", count.c_str(), nullptr);
    std::perror(ORRERY_TOOL);
    _exit(127);
  }
  close(pipe_ends[1]);
  close(stage);
  FILE* lines = fdopen(pipe_ends[0], "r");
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), lines) != nullptr) {
    std::array<char, 128> name{};
    double ours = 0;
    double limit = 0;
    if (std::sscanf(line.data(), "ROW %127s %lf %lf", name.data(), &ours, &limit) == 3) {
      measured.rows[name.data()].emplace_back(ours, limit);
    }
    std::size_t kept = 0;
    std::size_t taken = 0;
    if (std::sscanf(line.data(), "SAMPLES %zu %zu", &kept, &taken) == 2) {
      measured.kept += kept;
      measured.taken += taken;
    }
  }
  std::fclose(lines);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  std::fprintf(stderr, "the measuring job `%s` ended with status %d\n", job.part, status);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("ratios of our operations to what the memory itself costs");
  int repetitions = 7;
  bool as_json = false;
  std::string only;
  std::string measure;
  options.number("--repetitions", &repetitions, "repetitions of each row; the median is reported", 1, 1000);
  options.flag("--json", &as_json,
               "a list of rows {name, unit, ours, limit, ratio, at_most or at_least, holds}");
  options.text("--only", &only,
               "only rows of the jobs whose name contains this: direct, frames, messages, units, scatter, "
               "barrier, collective, counters, threads, dmapp, shmem, portals, cci");
  options.text("--measure", &measure, "");  // internal: this process measures
  options.parse(argc, argv);

  if (measure == "direct") return bench::measure_direct(repetitions), 0;
  if (measure == "frames") return bench::measure_frames(repetitions), 0;
  if (measure == "units") return bench::measure_units(repetitions), 0;
  if (measure == "scatter") return bench::measure_scatter(repetitions), 0;
  if (measure == "messages") return bench::measure_messages(repetitions), 0;
  if (measure == "barrier") return bench::measure_barrier(repetitions), 0;
  if (measure == "collective") return bench::measure_collective(repetitions), 0;
  if (measure == "collective8") return bench::measure_collective_8(repetitions), 0;
  if (measure == "counters") return bench::measure_counters(repetitions), 0;
  if (measure == "threads") return bench::measure_threads(repetitions), 0;
  if (measure == "dmapp") return bench::measure_dmapp(repetitions), 0;
  if (measure == "dmapp8") return bench::measure_dmapp_8(repetitions), 0;
  if (measure == "shmem") return bench::measure_shmem(repetitions), 0;
  if (measure == "shmem8") return bench::measure_shmem_8(repetitions), 0;
  if (measure == "portals") return bench::measure_portals(repetitions), 0;
  if (measure == "portals8") return bench::measure_portals_8(repetitions), 0;
  if (measure == "cci") return bench::measure_cci(repetitions), 0;
  if (measure == "cci1") return bench::measure_cci_asleep(repetitions), 0;

  Measured measured;
  for (const Job& job : kJobs) {
    if (std::string(job.part).find(only) == std::string::npos) continue;
    if (!run_job(job, repetitions, measured)) return 2;
  }
  nlohmann::json rows = nlohmann::json::array();
  bool all_hold = true;
  if (!as_json)
    std::printf(
        "# revision %s; %zu of %zu batches count, beside the others a core was shared\n%-66s %12s %12s %9s "
        "%10s\n",
        orrery::bench::kRevision, measured.kept, measured.taken, "# what", "ours", "limit", "ratio",
        "allowed");
  for (const Row& row : kRows) {
    const auto found = measured.rows.find(row.name);
    if (found == measured.rows.end()) {
      if (only.empty()) {
        std::fprintf(stderr, "no measurement of %s\n", row.name);
        return 2;
      }
      continue;
    }
    std::vector<double> ours, limits, ratios;
    for (const auto& [o, l] : found->second) {
      ours.push_back(o);
      limits.push_back(l);
      ratios.push_back(o / l);
    }
    const double ratio = bench::median(ratios);
    const bool holds = (!row.at_most || ratio <= *row.at_most) && (!row.at_least || ratio >= *row.at_least);
    all_hold = all_hold && holds;
    if (as_json) {
      nlohmann::json r = {{"name", row.name},
                          {"what", row.what},
                          {"unit", row.unit},
                          {"ours", bench::median(ours)},
                          {"limit", bench::median(limits)},
                          {"ratio", ratio},
                          {"holds", holds}};
      if (row.at_most) r["at_most"] = *row.at_most;
      if (row.at_least) r["at_least"] = *row.at_least;
      rows.push_back(r);
    } else {
      std::printf("%-66s %12.2f %12.2f %9.3f %s %7.2f %s\n", row.what, bench::median(ours),
                  bench::median(limits), ratio,
                  row.at_most ? "<=" : ">=", row.at_most ? *row.at_most : *row.at_least,
                  holds ? "ok" : "FAILS");
    }
  }
  if (as_json) std::printf("%s\n", rows.dump(2).c_str());
  return all_hold ? 0 : 1;
}
