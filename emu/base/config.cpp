// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"

#include "emu/base/check.hpp"
#include "emu/base/fault_spec.hpp"
#include "emu/base/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <functional>

#include <sys/auxv.h>

namespace orrery::config {

namespace {

constexpr std::string_view kPrefix = "ORRERY_";
// Variables of the tests and their scripts (docs/testing.md); a program that a test starts has them too.
constexpr std::string_view kOfTests[] = {"ORRERY_TESTS_REQUIRE", "ORRERY_TEST_SEED", "ORRERY_LONG_TESTS",
                                         "ORRERY_CI_LONG", "ORRERY_FUZZ_SECONDS"};

// Sorted by name.
constexpr auto kKnobs = std::to_array<Knob>({
    {"ORRERY_ADOPT", Kind::choice, "hot", "eager|hot|never",
     "when registered memory is moved into the memory file: at registration, when it is used often, never"},
    {"ORRERY_ADOPT_AFTER", Kind::number, "16", "1..1000000 operations",
     "with ORRERY_ADOPT=hot: operations by frame or attach on a registration before it is moved", 1,
     1'000'000},
    {"ORRERY_AMO_CACHE", Kind::choice, "coherent", "coherent|lazy",
     "when memory learns what cached AMOs of peers did: at once, or when a word leaves the NIC's cache"},
    {"ORRERY_AMO_CACHE_ENTRIES", Kind::number, "64", "1..1024 words", "how much the NIC's AMO cache holds", 1,
     1024},
    {"ORRERY_ATTACH", Kind::choice, "on", "on|off",
     "whether the kernel may copy to and from memory of peers that is not in their memory file"},
    {"ORRERY_BTE_CROSSOVER", Kind::number, "4194304", "4096..4294967295 bytes",
     "block transfers of at least this size are moved by the engine's thread", 4096, 4'294'967'295},
    {"ORRERY_CLOCK", Kind::text, "", "raw|paced|virtual",
     "how time passes: raw as on this host; paced or virtual as on ORRERY_MACHINE; unset: virtual when there "
     "is a "
     "machine"},
    {"ORRERY_COMPUTE", Kind::text, "zero", "zero|measured|a factor 0..1000000",
     "virtual time: what the program's own work between calls counts, of its processor time"},
    {"ORRERY_DEADLOCK", Kind::number, "30", "1..86400 s",
     "virtual time: how long, in real time, all PEs look in vain before it is a deadlock", 1, 86400},
    {"ORRERY_DEVICE", Kind::choice, "aries", "aries|gemini",
     "the device that uGNI programs find: what is aligned, which AMOs there are, how wide event data is"},
    {"ORRERY_ENCRYPT", Kind::choice, "off", "off|on",
     "whether the wire between hosts encrypts what it carries; the same for all processes of a job"},
    {"ORRERY_FAULT", Kind::faults, "", kFaultWords,
     "faults of the emulated network, as `orrery run --fault` takes them"},
    {"ORRERY_GNI_OF", Kind::text, "", "a job",
     "set by `orrery run` and libpmi: whose PMI_GNI_PTAG and its neighbours are, so that another job inside "
     "this one "
     "has its own"},
    {"ORRERY_INTERFACE", Kind::text, "",
     "an interface (eth0), an address of it, or its network (10.0.0.0/24)",
     "where the wire between hosts leaves this one; unset: the first interface that leads to other hosts"},
    {"ORRERY_JOB", Kind::text, "default", "a name",
     "without `orrery run`: processes of one user on one host with the same name find each other; "
     "unset, those of one mpirun do"},
    {"ORRERY_JOB_AT", Kind::text, "", "a socket's name",
     "set by `orrery run`: where a process finds the job whose inherited descriptors were closed on the way "
     "to it"},
    {"ORRERY_JOB_FD", Kind::number, "", "a descriptor 0..65535",
     "set by `orrery run`: the job's host directory", 0, 65535},
    {"ORRERY_LIMITS", Kind::text, "", "a list of mdd=N, cq=N, fma=N, ce=N, bte=N",
     "how many registrations, queues, FMA descriptors, collective engines and block transfers a domain of a "
     "process may have; unset: what the device has"},
    {"ORRERY_LOG", Kind::choice, "warn", "off|error|warn|info|debug|trace", "what is written to stderr"},
    {"ORRERY_LOG_CALLS", Kind::text, "", "a path",
     "the log of a client's calls (`orrery run --log gni`) goes to this path with the PE's number behind; "
     "unset: "
     "to stderr"},
    {"ORRERY_MACHINE", Kind::text, "", "a machine of `orrery machines`, or a machine file",
     "the machine whose time the clock gives"},
    {"ORRERY_OPTIMISTIC", Kind::number, "", "1..1000000000 ns",
     "virtual time: a PE may run that far ahead of the others, which is not always exact; unset: it does not",
     1, 1'000'000'000},
    {"ORRERY_PMI_AT", Kind::text, "", "a socket's name",
     "set by `orrery run --hosts`: where a process finds PMI whose inherited descriptor was closed on the "
     "way "
     "to it"},
    {"ORRERY_PROVIDER", Kind::text, "auto", "auto, or a provider of libfabric with FI_EP_RDM and FI_MSG",
     "what carries the wire between hosts; auto: net, else tcp, else tcp;ofi_rxm"},
    {"ORRERY_RECORD", Kind::text, "", "a path",
     "virtual time: each PE writes what it asked of the machine, and the answers, to this path with its "
     "number behind"},
    {"ORRERY_SOCKETS", Kind::text, "", "abstract, or a folder of this user with mode 0700",
     "where the Unix sockets are by which processes of a host meet; unset: a folder in XDG_RUNTIME_DIR, "
     "/run/user or /tmp"},
    {"ORRERY_SPINS", Kind::number, "", "0..1000000 polls",
     "how often a wait polls before it yields; unset: few when PEs share cores", 0, 1'000'000},
    {"ORRERY_WIRE", Kind::choice, "auto", "auto|ofi",
     "auto: the wire between hosts carries what goes to other hosts; ofi: to every other process, for tests"},
    {"ORRERY_WIRE_FAULTS", Kind::text, "", "drop=P,corrupt=P,duplicate=P,reorder=P,delay=P,seed=N",
     "a bad link between hosts, for tests: chance of each fault for each frame"},
    {"ORRERY_WIRE_TIMEOUT", Kind::number, "10000", "100..3600000 ms",
     "a process of another host that does not answer for so long counts as dead", 100, 3'600'000},
    {"ORRERY_YIELDS", Kind::number, "", "0..1000000 yields",
     "how often a wait yields its core before it sleeps; unset: few when PEs share cores", 0, 1'000'000},
});

const Knob* find(std::string_view name) {
  const auto* it = std::find_if(kKnobs.begin(), kKnobs.end(), [&](const Knob& k) { return k.name == name; });
  return it == kKnobs.end() ? nullptr : it;
}

// What each knob was last complained of, so that it is said once.
std::array<std::atomic<std::size_t>, kKnobs.size()> g_told;

void complain(const Knob& knob, std::string_view value, std::string_view problem) {
  const auto place = static_cast<std::size_t>(&knob - kKnobs.data());
  const std::size_t now = std::hash<std::string_view>{}(value) | 1;  // 0: of nothing
  // Relaxed: it guards nothing but the line.
  if (g_told[place].exchange(now, std::memory_order_relaxed) == now) return;
  if (knob.default_value.empty())
    log::error("{}; going on as if it were unset", problem);
  else
    log::error("{}; using {}", problem, knob.default_value);
}

bool parse(std::string_view value, std::uint64_t* out) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
  return error == std::errc{} && end == value.data() + value.size();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// What to say to a name that there is not: the knob that was meant, where one is near.
std::string advice(std::string_view name) {
  constexpr std::size_t kNear = 4;  // letters to change, of a name twice as long
  const auto* const nearest =
      std::min_element(kKnobs.begin(), kKnobs.end(), [&](const Knob& a, const Knob& b) {
        return edit_distance(a.name, name) < edit_distance(b.name, name);
      });
  const std::size_t distance = edit_distance(nearest->name, name);
  if (distance < kNear && 2 * distance < name.size() - kPrefix.size())
    return fmt::format("did you mean {}?", nearest->name);
  return "'orrery info' lists what there is";
}

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

std::optional<std::string> problem_with(const Knob& knob, std::string_view value) {
  switch (knob.kind) {
    case Kind::text:
      return std::nullopt;
    case Kind::number: {
      std::uint64_t number = 0;
      if (parse(value, &number) && number >= knob.low && number <= knob.high) return std::nullopt;
      break;
    }
    case Kind::faults: {
      std::string why;
      if (parse_faults(value, &why)) return std::nullopt;
      return fmt::format("{}={}: {}", knob.name, value, why);
    }
    case Kind::choice: {
      std::string_view rest = knob.accepts;
      while (!rest.empty()) {
        const auto bar = rest.find('|');
        if (rest.substr(0, bar) == value) return std::nullopt;
        rest = bar == std::string_view::npos ? std::string_view{} : rest.substr(bar + 1);
      }
      break;
    }
  }
  return fmt::format("{}={} is not accepted: expected {}", knob.name, value, knob.accepts);
}

std::string text(std::string_view name) {
  const Knob* knob = find(name);
  ORRERY_CHECK(knob != nullptr, "no knob is called {}", name);
  const char* value = ::secure_getenv(knob->name.data());
  if (value == nullptr) return std::string(knob->default_value);
  if (const auto problem = problem_with(*knob, value)) {
    complain(*knob, value, *problem);
    return std::string(knob->default_value);
  }
  return value;
}

std::uint64_t number(std::string_view name) {
  std::uint64_t result = 0;
  const auto value = text(name);
  ORRERY_CHECK(parse(value, &result), "knob {} is not a number: {}", name, value);
  return result;
}

namespace {

// Calls with the knob, its value and what is wrong; without a knob where the name is unknown.
template <typename Found>
void for_each_problem(const char* const* environment, Found found) {
  if (getauxval(AT_SECURE) != 0) return;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with(kPrefix)) continue;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = entry.substr(0, equals);
    if (std::find(std::begin(kOfTests), std::end(kOfTests), name) != std::end(kOfTests)) continue;
    if (const Knob* knob = find(name)) {
      const std::string_view value = entry.substr(equals + 1);
      if (const auto problem = problem_with(*knob, value)) found(knob, value, *problem);
    } else {
      found(nullptr, {}, fmt::format("unknown variable {}: {}", name, advice(name)));
    }
  }
}

}  // namespace

std::vector<std::string> check_environment(const char* const* environment) {
  std::vector<std::string> problems;
  for_each_problem(environment, [&](const Knob*, std::string_view, const std::string& problem) {
    problems.push_back(problem);
  });
  return problems;
}

void tell_of_environment(const char* const* environment) {
  for_each_problem(environment, [](const Knob* knob, std::string_view value, const std::string& problem) {
    if (knob == nullptr)
      log::warn("{}", problem);
    else
      complain(*knob, value, problem);
  });
}

}  // namespace orrery::config
