// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/pmi/session.hpp"

#include "emu/base/log.hpp"
#include "emu/job/domain_list.hpp"
#include "emu/job/pmi_wire.hpp"
#include "emu/job/random.hpp"
#include "emu/nic/host/runtime.hpp"
#include "lib/pmi/gni_variables.hpp"
#include "lib/pmi/pmix_client.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include <time.h>
#include <unistd.h>

namespace orrery::pmi {

namespace {

// The process's session. PMI is a library of one thread; a forked child finds its parent's pid.
struct OfProcess {
  Session* session = nullptr;
  pid_t owner = 0;         // that opened it
  bool wire_used = false;  // PMI_FD has been spoken on, by this process or by its parent
};
constinit OfProcess g_of_process;

// A permutation without the identity, the same in every process of the job and for every gather: clients
// learn it from a first gather of ranks and apply it to later ones.
std::vector<int> shuffled_order(int size, std::string_view seed) {
  std::vector<int> order(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
  std::uint64_t state = 14695981039346656037ull;
  for (const char c : seed) state = (state ^ static_cast<std::uint8_t>(c)) * 1099511628211ull;
  for (std::size_t i = order.size(); i > 1; --i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(order[i - 1], order[(state >> 33) % i]);
  }
  if (size > 1 && std::is_sorted(order.begin(), order.end()))
    std::rotate(order.begin(), order.begin() + 1, order.end());
  return order;
}

std::string hex(std::uint64_t number) {
  char text[17];
  char* const end = std::to_chars(text, text + sizeof text, number, 16).ptr;
  return std::string(text, end);
}

std::string domains_text(const std::vector<job::HostDirectory::Domain>& domains) {
  const auto variables = job::domain_variables(domains, 0);
  return variables.ptag + "," + variables.cookie;
}

}  // namespace

Session* Session::current() { return g_of_process.owner == getpid() ? g_of_process.session : nullptr; }

Result<Session*> Session::open() {
  if (Session* session = current()) return session;
  const auto launch =
      job::Launch::detect([](const char* name) -> const char* { return ::secure_getenv(name); });
  if (!launch.ok()) return launch.code();
  if (const auto problem = launch.value().pmi_problem()) {
    log::error("{}", *problem);
    return Errc::unsupported;
  }
  settle_gni_variables(launch.value());
  std::unique_ptr<Session> session(new Session);
  session->rank_ = launch.value().rank;
  session->size_ = launch.value().size;
  if (launch.value().kind != job::LaunchKind::singleton) {
    if (g_of_process.wire_used) {
      log::error(
          "PMI_Init after PMI_Finalize, or in a child of a process that has called it: the launcher knows "
          "one process per rank");
      return Errc::invalid_state;
    }
    g_of_process.wire_used = true;
    const Status opened = session->open_client(launch.value());
    if (!opened.ok()) return opened.code();
    session->kvs_name_ = session->wire_->kvs_name();
  } else {
    session->kvs_name_ = "singleton_" + std::to_string(getpid());
  }
  // Alone it meets all processes with the same ORRERY_JOB; in a job it meets that job.
  const auto job =
      session->wire_ ? job::Job::of_process(session->kvs_name_, session->size_) : job::Job::of_process();
  if (!job.ok()) return job.code();
  session->job_ = job.value();
  if (const Status alone = session->check_alone_as_rank(); !alone.ok()) return alone.code();
  const Status ready = session->set_up();
  if (!ready.ok()) return ready.code();
  // After the first exchange between the processes, before the program's own: from here on they take turns.
  const auto first = session->find_first();
  if (!first.ok()) return first.code();
  const auto clock = nic::Runtime::clock_of_process(first.value());
  if (!clock.ok()) return clock.code();
  session->clock_ = clock.value();
  g_of_process.session = session.release();
  g_of_process.owner = getpid();
  return g_of_process.session;
}

Status Session::open_client(const job::Launch& launch) {
  if (launch.kind == job::LaunchKind::pmix) {
    auto client = PmixClient::open();
    if (!client.ok()) return client.code();
    rank_ = client.value()->rank();
    size_ = client.value()->size();
    wire_ = std::move(client).value();
    return {};
  }
  if (size_ < 1 || rank_ < 0 || rank_ >= size_) {
    log::error("PMI_RANK={} and PMI_SIZE={} are not accepted: expected 0 <= rank < size", rank_, size_);
    return Errc::invalid_param;
  }
  auto end = job::pmi_of_launch(launch);
  if (!end.ok()) return end.code();
  auto wire = job::PmiWire::open(std::move(end).value());
  if (!wire.ok()) return wire.code();
  wire_ = std::move(wire).value();
  return {};
}

Status Session::set_up() {
  gather_order_ = shuffled_order(size_, kvs_name_);
  std::vector<job::HostDirectory::Domain> domains = job_->directory().domains();
  // `orrery run` has written down where the PEs live, the domains, and whether there are other hosts;
  // elsewhere the processes tell each other.
  const bool placed =
      job_->launch().directory_fd >= 0 && job_->placement().pe_count() == static_cast<std::uint32_t>(size_);
  job::WireJob wire_job;
  if (placed) {
    wire_job = job_->directory().wire_job().value_or(job::WireJob{});
  } else {
    if (wire_ != nullptr) {
      // From now on all processes of this host are in the directory.
      const Status met = barrier();
      if (!met.ok()) return met;
    }
    const Status agreed = agree(&domains, &wire_job);
    if (!agreed.ok()) return agreed;
    const auto here = static_cast<int>(ranks_here().size());
    wire_job.hosts = here == size_ ? 1 : 2;
    if (wire_job.hosts == 1) {
      job_->place(job::Placement(
          std::vector<job::PePlace>(static_cast<std::size_t>(size_), {job_->nid(), job_->nic_address(), 0})));
    }
  }
  if (wire_job.hosts > 1) {
    const Status joined = join_hosts(wire_job, placed);
    if (!joined.ok()) {
      log::error("PE {} cannot reach the job's other hosts: {}", rank_, errc_name(joined.code()));
      return joined;
    }
  }
  placement_ = job_->placement();
  domains.resize(std::min<std::size_t>(domains.size(), 2));
  for (const job::PePlace& pe : placement_.pes()) nids_.push_back(static_cast<int>(pe.nid));
  const auto variables = job::domain_variables(domains, job_->nic_address());
  if (::secure_getenv("PMI_GNI_PTAG") == nullptr)
    setenv("ORRERY_GNI_OF", kvs_name_.c_str(), 1);  // ours from now on, whatever is set below
  set_gni_variables(variables);
  return {};
}

// The process that is rank 0. Where processes of several jobs may share a directory it tells the others.
Result<job::ProcessRef> Session::find_first() {
  if (!wire_ || job_->launch().directory_fd >= 0) return job::ProcessRef{};
  const job::ProcessRef self = job_->self();
  const auto told = broadcast(std::to_string(self.index) + "." + std::to_string(self.generation));
  if (!told.ok()) return told.code();
  job::ProcessRef first;
  const char* const end = told.value().data() + told.value().size();
  const auto index = std::from_chars(told.value().data(), end, first.index);
  if (index.ec != std::errc{} || index.ptr == end ||
      std::from_chars(index.ptr + 1, end, first.generation).ec != std::errc{}) {
    log::error("rank 0's place in the directory is malformed: '{}'", told.value());
    return Errc::corrupt;
  }
  return first;
}

// What rank 0 chose for all: the domains, and the job's number and secret between hosts. Collective.
Status Session::agree(std::vector<job::HostDirectory::Domain>* domains, job::WireJob* job) {
  auto mine = job::parse_domain_list(::secure_getenv("PMI_GNI_PTAG"), ::secure_getenv("PMI_GNI_COOKIE"));
  if (mine.empty()) mine = job::make_domains();
  job->job = job::random_nonzero();
  job->secret[0] = job::random_nonzero();
  job->secret[1] = job::random_nonzero();
  const auto text = broadcast(domains_text(mine) + "," + hex(job->job) + "," + hex(job->secret[0]) + "," +
                              hex(job->secret[1]));
  if (!text.ok()) return text.code();
  std::vector<std::string> words;
  for (std::string_view rest = text.value(); !rest.empty();) {
    words.emplace_back(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(words.back().size() + 1, rest.size()));
  }
  bool good = words.size() == 5;
  std::uint64_t* const numbers[] = {&job->job, &job->secret[0], &job->secret[1]};
  for (std::size_t i = 2; i < words.size() && good; ++i) {
    const std::string& word = words[i];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *numbers[i - 2], 16);
    good = error == std::errc{} && end == word.data() + word.size();
  }
  if (good) *domains = job::parse_domain_list(words[0].c_str(), words[1].c_str());
  if (!good || domains->empty()) {
    log::error("what rank 0 says about the job is malformed");
    return Errc::corrupt;
  }
  return job::declare_domains(job_->directory(), *domains);
}

Status Session::close() {
  Session* session = current();
  if (session == nullptr) return Errc::invalid_state;
  const Status said = session->wire_ ? session->asked([&] { return session->wire_->finalize(); }) : Status{};
  delete session;
  g_of_process.session = nullptr;
  g_of_process.owner = 0;
  return said;
}

job::PmiClient::Limits Session::limits() const {
  return wire_ ? wire_->limits()
               : job::PmiClient::Limits{job::kPmiKvsNameMax - 1, job::kPmiKeyMax - 1, job::kPmiValueMax - 1};
}

Result<int> Session::appnum() {
  return wire_ ? asked([&] { return wire_->appnum(); }) : Result<int>(0);
}
Result<int> Session::universe_size() {
  return wire_ ? asked([&] { return wire_->universe_size(); }) : Result<int>(1);
}

void Session::abort(int code, const char* message) {
  if (message == nullptr)
    log::error("PMI_Abort({})", code);
  else if (*message != '\0')
    log::error("PMI_Abort({}): {}", code, message);
  std::fflush(nullptr);
  if (wire_) (void)wire_->abort(code);  // a launcher that is gone cannot end the others
  // Of a status 8 bits are left: 256 must not look like an end that went well.
  _exit(code != 0 && (code & 0xff) == 0 ? 1 : code);
}

// ---- key-value space ----

namespace {
template <typename Number>
std::string numbered(const std::string& name, Number number) {
  return name + std::to_string(number);
}

// Values that are no PMI tokens stand encoded under this key.
std::string encoded_key(std::string_view key) { return std::string(key) + "~"; }
}  // namespace

Status Session::put(std::string_view key, std::string_view value) {
  if (!wire_) {
    return own_space_.emplace(key, value).second ? Status{} : Status{Errc::invalid_state};
  }
  // The launcher does not tell a plain value's key from that of an encoded one.
  if (own_keys_.contains(key)) return Errc::invalid_state;
  const bool plain = job::is_pmi_token(value) && value.size() <= wire_->limits().value;
  const Status stored =
      plain ? asked([&] { return wire_->put(key, value); }) : put_bytes(encoded_key(key), value);
  if (stored.ok()) own_keys_.emplace(key);
  return stored;
}

Result<std::string> Session::get(std::string_view key) {
  if (!wire_) {
    const auto found = own_space_.find(key);
    if (found == own_space_.end()) return Errc::no_match;
    return found->second;
  }
  auto value = asked([&] { return wire_->get(key); });
  if (value.code() != Errc::no_match) return value;
  return get_bytes(encoded_key(key), job::PmiClient::kAnybody);
}

Status Session::put_bytes(const std::string& key, std::string_view bytes) {
  return asked([&] { return wire_->put_bytes(key, bytes); });
}
Result<std::string> Session::get_bytes(const std::string& key, int from) {
  return asked([&] { return wire_->get_bytes(key, from); });
}

// Our own server shows a pair to all clients as soon as it is put; others wait for the next barrier.
bool Session::visible_at_once() const { return job_->launch().directory_fd >= 0; }

Result<std::string> Session::poll_bytes(const std::string& key, int from) {
  job_->directory().note_wait(job_->self(), job::WaitPlace::pmi_get);
  Result<std::string> bytes = get_bytes(key, from);
  // corrupt: the first of several values is there, the others are on their way.
  while (bytes.code() == Errc::no_match || bytes.code() == Errc::corrupt) {
    const timespec pause{0, 500'000};
    if (clock_ != nullptr) clock_->idle(this);
    if (clock_ == nullptr || !clock_->is_virtual()) nanosleep(&pause, nullptr);
    bytes = get_bytes(key, from);
  }
  job_->directory().note_wait(job_->self(), job::WaitPlace::nowhere);
  return bytes;
}

// As put_bytes(), of what each rank gives once.
Status Session::give(const std::string& key, std::string_view bytes) {
  const Status given = put_bytes(key, bytes);
  if (given.code() == Errc::invalid_state)
    log::error("the launcher has heard from another rank {} already: a rank is one process's", rank_);
  else if (!given.ok())
    log::error("the launcher does not take what rank {} says: {}", rank_, errc_name(given.code()));
  return given;
}

// Whether the launcher gave this process's rank to another one of this host too.
Status Session::check_alone_as_rank() const {
  const job::ProcessRef self = job_->self();
  const bool slots_are_ranks =
      job_->pes_with_slots() != 0 && rank_ < static_cast<int>(job_->pes_with_slots());
  if (!slots_are_ranks || self.index == static_cast<std::uint32_t>(rank_)) return {};
  const auto holder = job_->directory().process_of_rank(rank_);
  const auto info =
      holder.ok() ? job_->directory().info_of(holder.value()) : Result<job::ProcessInfo>(Errc::no_match);
  // One that opened the NIC before it started us is of our rank, too.
  if (!info.ok() || holder.value() == self || info.value().pid == getppid()) return {};
  log::error("rank {} is process {} already: the launcher must give every process a rank of its own", rank_,
             info.value().pid);
  return Errc::invalid_state;
}

// ---- collectives ----

Status Session::barrier_enter() {
  if (in_barrier_) return Errc::invalid_state;
  in_barrier_ = true;
  const Status entered = wire_ ? asked([&] { return wire_->barrier_enter(); }) : Status{};
  if (clock_ != nullptr && entered.ok()) clock_->barrier_arrive();
  return entered;
}

Status Session::barrier_leave(Picos takes) {
  if (!in_barrier_) return Errc::invalid_state;
  job_->directory().note_wait(job_->self(), job::WaitPlace::pmi_barrier);
  // Under a clock first in its time: then every PE has entered, and the launcher lets us go at once.
  if (clock_ != nullptr) clock_->barrier_wait(takes);
  const Status left = wire_ ? asked([&] { return wire_->barrier_leave(); }) : Status{};
  job_->directory().note_wait(job_->self(), job::WaitPlace::nowhere);
  in_barrier_ = false;
  return left;
}

Status Session::barrier(Picos takes) {
  const Status entered = barrier_enter();
  return entered.ok() ? barrier_leave(takes) : entered;
}

Picos Session::machine_time(model::Collective collective, std::uint64_t bytes) const {
  return clock_ != nullptr ? clock_->collective_time(collective, bytes) : Picos{};
}

Result<std::vector<std::string>> Session::gather(std::string_view bytes, const std::vector<int>& members) {
  if (!wire_) return std::vector<std::string>{std::string(bytes)};
  const bool polled = !members.empty() && visible_at_once();
  const std::string name =
      members.empty() ? numbered("orrery_g", gathers_++) : numbered("orrery_n", node_gathers_++);
  const Status given = give(numbered(name + "_", rank_), bytes);
  if (!given.ok()) return given.code();
  if (!polled) {
    const Status met = barrier();
    if (!met.ok()) return met.code();
  }
  std::vector<std::string> all;
  const int count = members.empty() ? size_ : static_cast<int>(members.size());
  for (int i = 0; i < count; ++i) {
    const int from = members.empty() ? i : members[static_cast<std::size_t>(i)];
    if (from == rank_) {
      all.emplace_back(bytes);
      continue;
    }
    const std::string key = numbered(name + "_", from);
    auto piece = polled ? poll_bytes(key, from) : get_bytes(key, from);
    if (!piece.ok()) {
      log::error("the launcher does not hand out what rank {} gave to a gather: {}", from,
                 errc_name(piece.code()));
      return piece.code();
    }
    all.push_back(std::move(piece).value());
  }
  return all;
}

Result<std::string> Session::broadcast(std::string_view bytes, Picos takes) {
  if (!wire_) return std::string(bytes);
  const std::string key = numbered("orrery_b", gathers_++);
  if (rank_ == 0) {
    const Status given = give(key, bytes);
    if (!given.ok()) return given.code();
  }
  const Status met = barrier(takes);
  if (!met.ok()) return met.code();
  if (rank_ == 0) return std::string(bytes);
  auto told = get_bytes(key, 0);
  if (!told.ok()) {
    log::error("the launcher does not hand out what rank 0 said to all: {}", errc_name(told.code()));
  }
  return told;
}

}  // namespace orrery::pmi
