// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/run_records.hpp"

#include "emu/base/output_file.hpp"
#include "emu/base/printable.hpp"
#include "emu/base/unique_fd.hpp"
#include "tools/orrery/temporary_folder.hpp"
#include "tools/orrery/trace/communication.hpp"
#include "tools/orrery/trace/link_report.hpp"
#include "tools/orrery/trace/replay.hpp"
#include "tools/orrery/trace/trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace orrery::tool {

namespace {

std::string unwritable(const char* option, const std::string& name) {
  std::error_code error;
  const auto path = std::filesystem::absolute(name, error);
  if (!error && !std::filesystem::is_directory(path, error) &&
      access(path.parent_path().c_str(), W_OK | X_OK) == 0)
    return {};
  return fmt::format("{} {} cannot be written: expected a file in a folder that is there and can be written",
                     option, name);
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  if (std::filesystem::equivalent(one, other, error)) return true;
  return std::filesystem::absolute(one, error).lexically_normal() ==
         std::filesystem::absolute(other, error).lexically_normal();
}

// Of the files that the user named; null: none.
const std::string* first_file(const RecordUses& uses) {
  for (const std::string* file : {&uses.trace, &uses.record, &uses.link_report, &uses.json})
    if (!file->empty()) return file;
  return nullptr;
}

std::string write_file(const char* option, const std::string& name, const std::string& text) {
  const UniqueFd file(open_output(name.c_str()));
  std::string_view rest = text;
  while (file.valid() && !rest.empty()) {
    const ssize_t written = write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file.valid() && rest.empty()) return {};
  return fmt::format("{} {} cannot be written: {}", option, name,
                     errno == ENXIO ? "nothing reads from this pipe" : std::strerror(errno));
}

// Of this command's only run; removed when that ends, however it does but by SIGKILL.
std::unique_ptr<TemporaryFolder> g_folder;

std::string how_exact(const RecordUses& uses, const model::Machine& machine, const Records& all,
                      std::uint32_t pes, int exit_code) {
  const std::optional<Replay> replayed =
      replay(machine, all.operations, uses.optimistic ? Ties::by_pe : Ties::as_begun);
  if (!replayed) return "there is no memory for the machine's links: whether the run is exact is not known";
  const Replay& again = *replayed;
  const clock::Inexactness& found = all.inexactness;
  const bool exact = found.none() && again.conflicts == 0;
  if (uses.optimistic)
    std::fprintf(stderr, "orrery: optimistic: %llu operations, %llu conflicts, %llu late events: %s\n",
                 static_cast<unsigned long long>(again.operations),
                 static_cast<unsigned long long>(again.conflicts),
                 static_cast<unsigned long long>(found.late), exact ? "exact" : "this run is not exact");
  else if (again.conflicts != 0)  // the PEs know of the other reasons, and say them
    std::fprintf(stderr,
                 "orrery: warn: virtual time: this run is not exact: the machine would have answered %llu of "
                 "%llu operations otherwise in the order of time; another run may print other times: compare "
                 "several\n",
                 static_cast<unsigned long long>(again.conflicts),
                 static_cast<unsigned long long>(again.operations));
  if (uses.json.empty()) return {};
  const nlohmann::json report{{"exit_code", exit_code},
                              {"machine", machine.description.name},
                              {"clock", "virtual"},
                              {"pes", pes},
                              {"optimistic", uses.optimistic},
                              {"exact", exact},
                              {"operations", again.operations},
                              {"conflicts", again.conflicts},
                              {"late_events", found.late},
                              {"outside_the_clock", found.outside},
                              {"united_intervals", found.merged}};
  return write_file("--json", uses.json, report.dump(2) + "\n");
}

}  // namespace

std::string RecordUses::prefix(std::string* problem) const {
  std::error_code error;
  if (const std::string* file = first_file(*this); file != nullptr) {
    // The PEs may change their folder before they write.
    return std::filesystem::absolute(*file, error).string() + ".pe";
  }
  // Others may write in that folder, but not in one of our own.
  g_folder = std::make_unique<TemporaryFolder>();
  *problem = g_folder->problem();
  return g_folder->there() ? g_folder->path() + "/pe" : "";
}

std::string RecordUses::problem() const {
  const std::pair<const char*, const std::string*> files[] = {
      {"--trace", &trace}, {"--record", &record}, {"--link-report", &link_report}, {"--json", &json}};
  for (const auto& [option, name] : files) {
    if (name->empty()) continue;
    if (std::string why = unwritable(option, *name); !why.empty()) return why;
    for (const auto& [other, same] : files) {
      if (same == name) break;
      if (!same->empty() && same_file(*name, *same))
        return fmt::format("{} {} is {}'s file too: expected another one", option, *name, other);
    }
  }
  return {};
}

void use_records(const RecordUses& uses, const std::string& prefix, std::uint32_t pes, int* exit_code) {
  std::string problem;
  const Records all = read_all_records(prefix, pes, &problem);
  for (std::uint32_t pe = 0; pe < pes; ++pe) unlink(fmt::format("{}.{}", prefix, pe).c_str());
  g_folder.reset();
  // PEs that ended otherwise leave no records, and why they did has been said.
  if (!problem.empty() && *exit_code != 0) return;
  if (problem.empty() && !uses.trace.empty())
    problem = write_file("--trace", uses.trace, trace_json(all.operations));
  if (problem.empty() && !uses.record.empty()) {
    const sim::Trace trace = communication(all.operations, &problem);
    const std::vector<std::uint8_t> bytes = sim::encode_trace(trace);
    const bool is_empty = problem.empty() && trace.records.empty();
    problem = problem.empty() ? write_file("--record", uses.record, {bytes.begin(), bytes.end()})
                              : fmt::format("--record {}: {}", uses.record, problem);
    if (problem.empty() && is_empty)
      std::fprintf(
          stderr,
          "orrery: --record %s: no operation of the run went over the network; the trace has no records\n",
          printable(uses.record).c_str());
  }
  if (problem.empty()) {
    const model::BuiltMachine built = model::build_machine(uses.machine);
    problem = built.error;
    if (built.machine && !uses.link_report.empty())
      problem = write_file("--link-report", uses.link_report, link_report(*built.machine, all.operations));
    if (built.machine && problem.empty()) problem = how_exact(uses, *built.machine, all, pes, *exit_code);
  }
  if (problem.empty()) return;
  std::fprintf(stderr, "orrery: error: %s\n", printable(problem).c_str());
  if (*exit_code == 0) *exit_code = 1;
}

}  // namespace orrery::tool
