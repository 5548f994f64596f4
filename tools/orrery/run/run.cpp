// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/fault_spec.hpp"
#include "emu/base/printable.hpp"
#include "emu/clock/choice.hpp"
#include "emu/job/cores.hpp"
#include "emu/job/resource_limits.hpp"
#include "emu/model/machine.hpp"
#include "tools/orrery/hosts/host_launcher.hpp"
#include "tools/orrery/run/launcher.hpp"
#include "tools/orrery/run/pe_process.hpp"
#include "tools/orrery/run/run_checks.hpp"
#include "tools/orrery/run/run_records.hpp"
#include "tools/orrery/run/via.hpp"
#include "tools/orrery/run/wire_check.hpp"
#include "tools/orrery/subcommand.hpp"
#include "tools/orrery/text_file.hpp"
#include "tools/orrery/trace/call_log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace orrery::tool {

namespace {

constexpr std::uint32_t kMaxPes = job::HostDirectory::kMaxPes;

// What the command line says, as it says it.
struct Words {
  std::string pes;  // empty: 1, or as --hosts says
  std::string hosts;
  std::string launcher_exec;
  std::string via;
  std::string nodes;
  std::string place;
  std::string timeout;
  std::string patience;
  std::string bind = "none";
  std::string provider;
  std::string interface;
  std::string machine;
  std::string layer;
  std::string clock;
  std::string compute;
  std::string trace;
  std::string record;
  std::string link_report;
  std::string json;
  std::string optimistic;
  std::string device;
  std::string limit;
  std::string fault;
  std::string log;
  bool label = false;
  bool keep_going = false;
  bool encrypt = false;
  bool has_virtual_time = false;  // found by read_clock()
};

// The machine and its clock, from the command line or else the environment. `nodes`: how many nodes the
// machine has, 0 without one. `uses`: what is to be made of the run's records. The line to show when
// something is not accepted, else empty.
std::string read_clock(Words& words, RunOptions* options, RecordUses* uses, std::uint32_t* nodes) {
  const auto chosen = [](const std::string& word, const char* variable) {
    return word.empty() ? config::text(variable) : word;
  };
  if (words.optimistic.empty()) {
    if (std::string problem = wrong_value("ORRERY_OPTIMISTIC"); !problem.empty()) return problem;
  }
  std::string machine = chosen(words.machine, "ORRERY_MACHINE");
  if (!words.layer.empty() && machine.empty())
    return fmt::format("--layer {} needs a machine: expected --machine with it", words.layer);
  if (!words.layer.empty()) machine += "+" + words.layer;
  const clock::ReadChoice read = clock::read_choice(machine, chosen(words.clock, "ORRERY_CLOCK"),
                                                    chosen(words.compute, "ORRERY_COMPUTE"),
                                                    chosen(words.optimistic, "ORRERY_OPTIMISTIC"));
  if (!read.problem.empty()) return read.problem;
  if (!words.compute.empty() && read.choice.kind != clock::Kind::virtual_time)
    return fmt::format("--compute {} needs virtual time: expected --machine with it", words.compute);
  if (!words.optimistic.empty() && read.choice.kind != clock::Kind::virtual_time)
    return fmt::format("--optimistic {} needs virtual time: expected --machine with it", words.optimistic);
  const auto set = [&](const char* variable, const std::string& value) {
    if (!value.empty()) options->variables.emplace_back(variable, value);
  };
  set("ORRERY_MACHINE", words.layer.empty() ? words.machine : machine);
  set("ORRERY_CLOCK", words.clock);
  set("ORRERY_COMPUTE", words.compute);
  set("ORRERY_OPTIMISTIC", words.optimistic);
  words.has_virtual_time = read.choice.kind == clock::Kind::virtual_time;
  if (words.has_virtual_time) {
    // An address sanitizer's allocator looks at the clock now and then, to give memory back to the system:
    // those looks cannot be told from the program's. What the user says comes later, and wins.
    const char* const chosen_options = std::getenv("ASAN_OPTIONS");
    set("ASAN_OPTIONS", std::string("allocator_release_to_os_interval_ms=-1") +
                            (chosen_options == nullptr ? "" : std::string(":") + chosen_options));
  }
  uses->optimistic = read.choice.ahead_ns != 0;
  uses->machine = machine;
  uses->trace = words.trace;
  uses->record = words.record;
  uses->link_report = words.link_report;
  uses->json = words.json;
  if (uses->any() && read.choice.kind != clock::Kind::virtual_time) {
    const char* const option = !words.trace.empty()         ? "--trace"
                               : !words.record.empty()      ? "--record"
                               : !words.link_report.empty() ? "--link-report"
                                                            : "--json";
    return fmt::format("{} needs virtual time: expected --machine with it", option);
  }
  if (std::string problem = uses->problem(); !problem.empty()) return problem;
  *nodes = read.choice.kind == clock::Kind::raw ? 0 : model::build_machine(machine).machine->pricing.nodes;
  return {};
}

// Fills `options`; the line to show when something is not accepted, else empty.
std::string read_words(Words& words, RunOptions* options, RecordUses* uses) {
  const auto pes = words.pes.empty() ? std::optional(1u) : parse_count(words.pes, kMaxPes);
  if (!pes) return fmt::format("-n {} is not accepted: expected 1..{} PEs", words.pes, kMaxPes);
  options->pes = *pes;
  options->label = words.label;
  options->keep_going = words.keep_going;
  std::uint32_t machine_nodes = 0;
  const std::string clock_problem = read_clock(words, options, uses, &machine_nodes);
  if (!clock_problem.empty()) return clock_problem;
  std::string why;
  if (!words.place.empty()) {
    const auto text = read_text_file(words.place);
    if (!text) {
      return fmt::format("--place {} cannot be read: {}; expected a place file (see 'orrery run --help')",
                         words.place, std::strerror(errno));
    }
    auto placement = job::Placement::parse(*text, *pes, &why);
    if (!placement.ok()) return fmt::format("--place {}: {}", words.place, why);
    options->placement = std::move(placement).value();
  } else {
    // On a machine each PE has a node of its own unless told otherwise.
    const auto nodes =
        words.nodes.empty() ? std::optional(machine_nodes != 0 ? *pes : 1u) : parse_count(words.nodes, *pes);
    if (!nodes) {
      return fmt::format("--nodes {} is not accepted: expected 1..{}, no more than there are PEs",
                         words.nodes, *pes);
    }
    options->placement =
        std::move(job::Placement::blocks(*pes, *nodes, &why, machine_nodes != 0 ? 0 : 1)).value();
  }
  for (const job::PePlace& place : options->placement.pes()) {
    if (machine_nodes == 0 || place.nid < machine_nodes) continue;
    return fmt::format("node {} is not on the machine: expected 0..{}; {} PEs need fewer nodes (--nodes)",
                       place.nid, machine_nodes - 1, *pes);
  }
  if (!words.timeout.empty()) {
    const auto timeout_ns = parse_seconds(words.timeout);
    if (!timeout_ns) {
      return fmt::format("--timeout {} is not accepted: expected 0.001..{:.0f} seconds", words.timeout,
                         kMaxTimeout);
    }
    options->timeout_ns = *timeout_ns;
  }
  const char* const fault = std::getenv("ORRERY_FAULT");
  if (!words.fault.empty() && !parse_faults(words.fault, &why)) return fmt::format("--fault: {}", why);
  if (words.fault.empty() && fault != nullptr && !parse_faults(fault, &why))
    return fmt::format("ORRERY_FAULT: {}", why);
  if (machine_nodes != 0) {
    if (std::string problem = refused_with_clock(words.fault); !problem.empty()) return problem;
  }
  if (!words.fault.empty()) options->variables.emplace_back("ORRERY_FAULT", words.fault);
  if (words.bind != "none" && words.bind != "core") {
    return fmt::format("--bind {} is not accepted: expected none or core", words.bind);
  }
  options->bind_to_cores = words.bind == "core";
  if (!words.device.empty() && words.device != "aries" && words.device != "gemini") {
    return fmt::format("--device {} is not accepted: expected aries or gemini", words.device);
  }
  if (!words.device.empty()) options->variables.emplace_back("ORRERY_DEVICE", words.device);
  if (words.encrypt) options->variables.emplace_back("ORRERY_ENCRYPT", "on");
  const bool from_environment = words.limit.empty();
  if (!job::parse_limits(from_environment ? config::text("ORRERY_LIMITS") : words.limit, &why).ok())
    return fmt::format("{}: {}", from_environment ? "ORRERY_LIMITS" : "--limit", why);
  if (!words.limit.empty()) options->variables.emplace_back("ORRERY_LIMITS", words.limit);
  if (!words.log.empty()) {
    if (std::string problem = log_calls(words.log, &options->variables); !problem.empty()) return problem;
  }
  // On other hosts it is theirs to say.
  if (options->bind_to_cores && words.hosts.empty() && *pes > job::allowed_cores().cores) {
    return fmt::format("--bind core is not accepted for {} PEs: expected 1..{}, the cores allowed here", *pes,
                       job::allowed_cores().cores);
  }
  return {};
}

// Fills `options` for a job on several hosts, from what read_words() has accepted; the line to show when
// something is not accepted, else empty.
std::string read_hosts(const Words& words, const RunOptions& run, HostRunOptions* options) {
  const std::pair<const char*, const std::string*> here_only[] = {
      {"--nodes", &words.nodes},     {"--place", &words.place},
      {"--machine", &words.machine}, {"--clock", &words.clock},
      {"--compute", &words.compute}, {"--trace", &words.trace},
      {"--record", &words.record},   {"--link-report", &words.link_report},
      {"--json", &words.json},       {"--optimistic", &words.optimistic},
      {"--layer", &words.layer}};
  for (const auto& [name, value] : here_only) {
    if (!value->empty())
      return fmt::format("{} {} cannot be used with --hosts: expected a job on this host alone", name,
                         *value);
  }
  const std::uint32_t pes = words.pes.empty() ? 0 : run.pes;
  if (std::string problem = parse_hosts(words.hosts, pes, &options->hosts); !problem.empty()) return problem;
  options->launcher_exec = words.launcher_exec;
  options->timeout_ns = run.timeout_ns;
  if (!words.patience.empty()) {
    const auto patience_ns = parse_seconds(words.patience);
    if (!patience_ns)
      return fmt::format("--patience {} is not accepted: expected 0.001..{:.0f} seconds", words.patience,
                         kMaxTimeout);
    options->patience_ns = *patience_ns;
  }
  options->label = run.label;
  options->keep_going = run.keep_going;
  options->bind_to_cores = run.bind_to_cores;
  options->variables = run.variables;
  options->command = run.command;
  return {};
}

// The line to show when an option does not go with --via, else empty.
std::string refused_with_via(const Words& words) {
  const std::pair<const char*, bool> launchers_own[] = {
      {"--hosts", !words.hosts.empty()}, {"--nodes", !words.nodes.empty()},
      {"--place", !words.place.empty()}, {"--timeout", !words.timeout.empty()},
      {"--bind", words.bind != "none"},  {"--label", words.label},
      {"--keep-going", words.keep_going}};
  for (const auto& [name, is_given] : launchers_own) {
    if (is_given)
      return fmt::format("{} cannot be used with --via: expected the launcher's own, as in --via \"{} ...\"",
                         name, words.via);
  }
  return {};
}

// "" or what is wrong with the first option that was given an empty value, as an unset variable of a script
// gives.
std::string empty_value(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty())
        return fmt::format("{} '' is not accepted: expected a value", option->get_name(false, true));
    }
  }
  return {};
}

// Separates the program from what CLI11 did not know before it.
// `elsewhere`: it is looked for on other hosts.
std::string read_command(std::vector<std::string> rest, bool elsewhere, RunOptions* options) {
  if (rest.empty()) return "no program given: expected 'orrery run [options] [--] program [arguments]'";
  if (rest.front().starts_with("-")) {
    return fmt::format("unknown option {}: expected one of those of 'orrery run --help'", rest.front());
  }
  options->program = find_program(rest.front());
  if (options->program.empty() && !elsewhere) {
    return fmt::format("'{}' cannot be run: expected an executable file{}, {}", rest.front(),
                       rest.front().find('/') == std::string::npos ? " in PATH" : "",
                       why_not_run(rest.front()));
  }
  options->command = std::move(rest);
  return {};
}

// Options of `run` that take the next word, for drop_separator().
constexpr std::string_view kWithValue[] = {
    "--hosts",       "--launcher-exec", "-n",        "--pes",     "--np",      "--nodes", "--place",
    "--timeout",     "--bind",          "--machine", "--clock",   "--compute", "--trace", "--record",
    "--link-report", "--json",          "--fault",   "--device",  "--log",     "--limit", "--provider",
    "--interface",   "--layer",         "--via",     "--patience"};

constexpr const char* kHelp =
    "Start a job: N processes of one program, on this host or, with --hosts, on others\n\n"
    "A place file puts PEs on nodes, one node a line, each PE exactly once:\n"
    "  node 5 pes 0-3,8          # node number 5, its NIC has address 5\n"
    "  node 7 nic 0x12 pes 4-7   # NIC address of its own; # starts a comment\n\n"
    "Exit code: that of the first PE that fails, 128 + n for signal n; 124 after --timeout;\n"
    "75 after a deadlock in virtual time; 2 when the command line or a variable is not accepted;\n"
    "1 when PEs left others in a barrier.";

// CLI11 knows nothing of what follows the options.
struct RunHelp : CLI::Formatter {
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} [OPTIONS] [--] PROGRAM [ARGUMENTS]\n\n", name);
  }
};

}  // namespace

void drop_separator(std::vector<std::string>& args) {
  if (args.empty() || args[0] != "run") return;
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (args[i] == "-np") args[i] = "-n";  // as other launchers write it
    if (args[i] == "--") {
      args.erase(args.begin() + static_cast<std::ptrdiff_t>(i));
      // A program whose name would pass for an option.
      if (i < args.size() && args[i].starts_with("-")) args[i].insert(0, "./");
      return;
    }
    if (!args[i].starts_with("-")) return;  // the program: what follows is its own
    if (std::find(std::begin(kWithValue), std::end(kWithValue), args[i]) != std::end(kWithValue)) ++i;
  }
}

void add_run(CLI::App& root, int& exit_code) {
  auto* command = root.add_subcommand("run", kHelp);
  auto words = std::make_shared<Words>();
  auto* pes =
      command->add_option("-n,--pes,--np", words->pes, "Number of PEs (default 1; with --hosts one for each)")
          ->type_name("N")
          ->take_last();
  command
      ->add_option("--hosts", words->hosts,
                   "Run on these hosts, PEs in blocks, or on each as many as stand behind a colon; localhost "
                   "is this one")
      ->type_name("A[:N],B[:N]...");
  command
      ->add_option(
          "--launcher-exec", words->launcher_exec,
          "With --hosts: what reaches a host, called with HOST and a command, as ssh (the default) is")
      ->type_name("COMMAND");
  command
      ->add_option(
          "--via", words->via,
          "Let that launcher start the PEs, with all that they need set: mpirun, mpiexec.hydra, srun or "
          "another that takes -n N; its own options stand behind it")
      ->type_name("\"LAUNCHER [OPTIONS]\"");
  auto* nodes = command->add_option(
      "--nodes", words->nodes,
      "Pretend that many nodes, PEs in blocks (default 1; with --machine one for each PE)");
  nodes->type_name("M");
  command->add_option("--place", words->place, "Place PEs on nodes as the file says")
      ->type_name("FILE")
      ->excludes(nodes);
  command->add_option("--timeout", words->timeout, "Stop after that time and say which PE waits for which")
      ->type_name("SECONDS");
  command
      ->add_option("--patience", words->patience,
                   "With --hosts: how long a host may say nothing until its PEs run (default 60)")
      ->type_name("SECONDS");
  command
      ->add_option("--bind", words->bind,
                   "core: one PE per core, memory near it; none: leave it to the kernel")
      ->type_name("none|core")
      ->capture_default_str();
  command->add_option("--provider", words->provider, "What carries the wire between hosts (ORRERY_PROVIDER)")
      ->type_name("NAME");
  command->add_option("--interface", words->interface, "Where it leaves this host (ORRERY_INTERFACE)")
      ->type_name("NAME|ADDRESS|NETWORK");
  command
      ->add_flag("--encrypt", words->encrypt, "Encrypt what the wire between hosts carries (ORRERY_ENCRYPT)")
      ->disable_flag_override();
  command->add_option("--device", words->device, "The device that uGNI programs find (default aries)")
      ->type_name("aries|gemini");
  command
      ->add_option("--limit", words->limit,
                   "What each domain of a PE may have of its NIC: mdd=16,cq=8,fma=4,ce=2,bte=8")
      ->type_name("LIST");
  command
      ->add_option("--machine", words->machine,
                   "Time as on that machine: one of 'orrery machines', or a machine file")
      ->type_name("MACHINE");
  command->add_option("--layer", words->layer, "Software above the machine's NIC to add, by name: mpi")
      ->type_name("LAYER");
  command
      ->add_option(
          "--clock", words->clock,
          "raw: as fast as it goes; paced: the machine's time, waited for; virtual: the machine's time, "
          "counted (the default with --machine)")
      ->type_name("raw|paced|virtual");
  command
      ->add_option(
          "--compute", words->compute,
          "What the program's own work between calls counts in virtual time: zero (the default), measured "
          "processor time, or that times a factor")
      ->type_name("zero|measured|FACTOR");
  command
      ->add_option("--trace", words->trace,
                   "Virtual time: write what every PE and its NIC did, for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  command
      ->add_option("--record", words->record,
                   "Virtual time: write what went over the network, for 'orrery sim --replay'")
      ->type_name("FILE");
  command
      ->add_option("--link-report", words->link_report,
                   "Virtual time: write a page of the loads of links and of hot spots, over the topology")
      ->type_name("FILE.html");
  command->add_option("--json", words->json, "Virtual time: write how exact the run was, and why not")
      ->type_name("FILE.json");
  command->add_flag(
      "--optimistic{10000}", words->optimistic,
      "Virtual time: let PEs run ahead of each other by up to that many ns (10000): faster, and "
      "not always exact; conflicts and late events are counted");
  command
      ->add_option(
          "--fault", words->fault,
          "Faults of the emulated network, a list with commas: drop, corrupt, revoke, link =WHEN, "
          "delay=WHEN:TIME, dead=ADDRESS[@N], seed=N, pe=RANK; WHEN is a chance 0..1 or @N, the N-th "
          "operation of each PE")
      ->type_name("SPEC");
  command
      ->add_option("--log", words->log,
                   "Log every call of the interfaces (gni, dmapp, portals4, portals3, cci), with arguments "
                   "and result, to "
                   "stderr or to FILE.PE")
      ->type_name("API[,API][=FILE]");
  command->add_flag("-l,--label", words->label, "Start every line of output with the PE's number")
      ->disable_flag_override();
  command->add_flag("--keep-going", words->keep_going, "Let the others run on when a PE fails")
      ->disable_flag_override();
  command->formatter(std::make_shared<RunHelp>());
  command->prefix_command();
  command->callback([command, words, pes, &exit_code] {
    RunOptions options;
    RecordUses uses;
    std::string problem = read_command(command->remaining(), !words->hosts.empty(), &options);
    if (std::string other = read_words(*words, &options, &uses); !other.empty()) problem = other;
    if (std::string empty = empty_value(*command); !empty.empty()) problem = empty;
    if (pes->count() > 1)
      problem = fmt::format("-n is given {} times: expected one number of PEs", pes->count());
    HostRunOptions on_hosts;
    if (!words->hosts.empty() && problem.empty()) problem = read_hosts(*words, options, &on_hosts);
    for (const auto& [name, value] :
         {std::pair{"--launcher-exec", &words->launcher_exec}, {"--patience", &words->patience}}) {
      if (words->hosts.empty() && !value->empty() && problem.empty())
        problem = fmt::format("{} {} is of no use without --hosts", name, *value);
    }
    ViaOptions via;
    if (!words->via.empty() && problem.empty()) problem = refused_with_via(*words);
    if (!words->via.empty() && problem.empty()) problem = read_launcher(words->via, &via.launcher);
    if (problem.empty()) problem = wrong_variable(options.variables);
    // On several hosts each finds out by itself.
    if (problem.empty() && words->hosts.empty() && !(words->provider.empty() && words->interface.empty()))
      problem = why_no_wire(words->provider, words->interface);
    if (!problem.empty()) {
      exit_code = usage_error(problem);
      return;
    }
    const std::string faults = words->fault.empty() ? config::text("ORRERY_FAULT") : words->fault;
    if (words->hosts.empty()) {
      const std::string absent = dead_and_absent(faults, options.placement);
      if (!absent.empty()) std::fprintf(stderr, "orrery: warn: %s\n", printable(absent).c_str());
    }
    if (!words->provider.empty()) setenv("ORRERY_PROVIDER", words->provider.c_str(), 1);
    if (!words->interface.empty()) setenv("ORRERY_INTERFACE", words->interface.c_str(), 1);
    for (const std::string& line : config::check_environment(environ)) {
      std::fprintf(stderr, "orrery: warn: %s\n", printable(line).c_str());
    }
    if (!words->hosts.empty()) {
      exit_code = HostLauncher(std::move(on_hosts)).run();
      return;
    }
    const std::uint32_t pes = options.pes;
    const std::string records = uses.any() ? uses.prefix(&problem) : "";
    if (!problem.empty()) {
      exit_code = usage_error(problem);
      return;
    }
    if (!records.empty()) options.variables.emplace_back("ORRERY_RECORD", records);
    if (!words->via.empty()) {
      via.pes = pes;
      via.has_virtual_time = words->has_virtual_time;
      via.variables = std::move(options.variables);
      via.command = std::move(options.command);
      exit_code = run_via(via);
    } else {
      exit_code = Launcher(std::move(options)).run();
    }
    if (!records.empty()) use_records(uses, records, pes, &exit_code);
  });
}

}  // namespace orrery::tool
