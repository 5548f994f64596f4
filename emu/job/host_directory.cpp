// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/host_directory.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/process_stat.hpp"
#include "emu/job/random.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::job {

using layout::ProcessPhase;
using layout::ProcessSlot;

namespace {

constexpr std::uint64_t kPidMask = (1u << 24) - 1;

std::uint64_t process_state(ProcessPhase phase, pid_t pid, std::uint32_t generation) {
  return static_cast<std::uint64_t>(phase) | (static_cast<std::uint64_t>(pid) & kPidMask) << 4 |
         static_cast<std::uint64_t>(generation) << 32;
}
ProcessPhase process_phase_of(std::uint64_t state) { return static_cast<ProcessPhase>(state & 0xf); }
pid_t pid_of(std::uint64_t state) { return static_cast<pid_t>(state >> 4 & kPidMask); }
std::uint32_t generation_of(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 32); }

}  // namespace

std::string_view wait_place_name(WaitPlace place) {
  switch (place) {
    case WaitPlace::nowhere:
      return "nowhere";
    case WaitPlace::pmi_barrier:
      return "a PMI barrier";
    case WaitPlace::pmi_get:
      return "a PMI get";
    case WaitPlace::attach:
      return "waiting for a peer to attach";
    case WaitPlace::cq_wait:
      return "a wait for a completion queue";
    case WaitPlace::bte:
      return "a wait for a block transfer";
    case WaitPlace::smsg:
      return "a wait for a message";
    case WaitPlace::other:
      return "a wait";
  }
  return "an unknown place";
}

Result<std::unique_ptr<HostDirectory>> HostDirectory::create(const DirectorySpec& spec) {
  if (spec.pes.size() > kMaxPes) {
    log::error("{} PEs are too many: expected 1..{}", spec.pes.size(), kMaxPes);
    return Errc::size;
  }
  // ftruncate above RLIMIT_FSIZE would raise SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < layout::kBytes) {
    log::error("the file size limit is {} bytes, the host directory needs {}: raise ulimit -f",
               limit.rlim_cur, layout::kBytes);
    return Errc::no_memory;
  }
  UniqueFd fd(own_descriptor(memfd_create("orrery-directory", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(layout::kBytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    log::error("no host directory: {}", std::strerror(errno));
    return Errc::system;
  }
  void* base = mmap(nullptr, layout::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    log::error("the host directory cannot be mapped: {}", std::strerror(errno));
    return Errc::no_memory;
  }
  std::unique_ptr<HostDirectory> directory(new HostDirectory(std::move(fd), base));
  auto& header = *new (base) layout::Header{};
  header.magic = layout::kMagic;
  header.version = layout::kVersion;
  header.header_bytes = sizeof(layout::Header);
  header.total_bytes = layout::kBytes;
  header.process_bytes = sizeof(ProcessSlot);
  header.endpoint_bytes = sizeof(layout::EndpointSlot);
  header.domain_bytes = sizeof(layout::DomainSlot);
  header.pe_bytes = sizeof(layout::PeSlot);
  header.boot_id = boot_id();
  header.job_id = random_nonzero();
  header.secret = random_nonzero();
  for (auto& word : directory->wire_header().secret) word.store(random_nonzero(), std::memory_order_relaxed);
  header.pe_count = static_cast<std::uint32_t>(spec.pes.size());
  header.allowed_cores = spec.allowed_cores;
  for (std::size_t i = 0; i < spec.pes.size(); ++i) {
    const PePlace& place = spec.pes[i];
    directory->pes()[i] = {place.nid, place.nic_address, place.node_index, 0};
    header.node_count = std::max(header.node_count, place.node_index + 1);
  }
  header.ready.store(1, std::memory_order_release);
  return directory;
}

std::uint64_t HostDirectory::job_id_of(int fd) {
  std::array<std::byte, offsetof(layout::Header, job_id) + sizeof(std::uint64_t)> bytes;
  // Not of a pipe or a device, where a read would take something away: a memfd has seals.
  if (fcntl(fd, F_GET_SEALS) < 0 ||
      pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return 0;
  std::uint64_t magic = 0;
  std::uint64_t job_id = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  std::memcpy(&job_id, bytes.data() + offsetof(layout::Header, job_id), sizeof job_id);
  return magic == layout::kMagic ? job_id : 0;
}

Result<std::unique_ptr<HostDirectory>> HostDirectory::open(UniqueFd fd) {
  struct stat info {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  // Without the seal a process could shrink the file under our feet, and a load would be a SIGBUS.
  if (fstat(fd.get(), &info) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      info.st_size != static_cast<off_t>(layout::kBytes)) {
    log::error("descriptor {} is not a host directory of this version", fd.get());
    return Errc::corrupt;
  }
  void* base = mmap(nullptr, layout::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    log::error("the host directory cannot be mapped: {}", std::strerror(errno));
    return Errc::system;
  }
  std::unique_ptr<HostDirectory> directory(new HostDirectory(std::move(fd), base));
  const auto& header = directory->header();
  const bool ready = header.ready.load(std::memory_order_acquire) == 1;
  if (!ready || header.magic != layout::kMagic || header.version != layout::kVersion ||
      header.header_bytes != sizeof(layout::Header) || header.total_bytes != layout::kBytes ||
      header.process_bytes != sizeof(ProcessSlot) || header.endpoint_bytes != sizeof(layout::EndpointSlot) ||
      header.domain_bytes != sizeof(layout::DomainSlot) || header.pe_bytes != sizeof(layout::PeSlot) ||
      header.pe_count > kMaxPes || header.job_id == 0) {
    log::error("the host directory is incomplete or of another version than {}", layout::kVersion);
    return Errc::corrupt;
  }
  if (header.boot_id != boot_id()) {
    log::error("the host directory was made under another kernel");
    return Errc::no_match;
  }
  return directory;
}

HostDirectory::~HostDirectory() { munmap(base_, layout::kBytes); }

std::uint32_t HostDirectory::pe_count() const { return std::min(header().pe_count, kMaxPes); }
std::uint32_t HostDirectory::node_count() const { return header().node_count; }
std::uint32_t HostDirectory::allowed_cores() const { return header().allowed_cores; }

Result<PePlace> HostDirectory::place_of(std::uint32_t pe) const {
  if (pe >= pe_count()) return Errc::no_match;
  const auto& slot = pes()[pe];
  return PePlace{slot.nid, slot.nic_address, slot.node_index};
}

Result<ProcessRef> HostDirectory::join(const Joining& who) {
  if (who.socket_name.size() > layout::kSocketNameBytes) return Errc::size;
  const std::uint32_t pes = std::min(who.pes, kMaxPes);
  if (who.rank >= 0 && static_cast<std::uint32_t>(who.rank) < pes) {
    const auto rank = static_cast<std::uint32_t>(who.rank);
    auto joined = join_range(who, rank, rank + 1);
    if (joined.ok()) return joined;
  }
  auto joined = join_range(who, pes, kMaxProcesses);
  if (!joined.ok()) {
    log::error(
        "the host directory is full: {} processes of this user are in it; name another one with ORRERY_JOB",
        kMaxProcesses - pes);
  }
  return joined;
}

// Takes the best slot of [first, end).
Result<ProcessRef> HostDirectory::join_range(const Joining& who, std::uint32_t first, std::uint32_t end) {
  const pid_t pid = getpid();
  // Unused slots first, so that references to the dead stay telling for long; then those of the dead; then
  // those of processes whose death was not seen.
  enum class Pass { unused, dead, gone };
  for (const Pass pass : {Pass::unused, Pass::dead, Pass::gone}) {
    for (std::uint32_t index = first; index < end; ++index) {
      ProcessSlot& slot = processes()[index];
      std::uint64_t state = slot.state.load(std::memory_order_acquire);
      const bool fits = pass == Pass::unused ? process_phase_of(state) == ProcessPhase::free
                        : pass == Pass::dead ? process_phase_of(state) == ProcessPhase::dead
                                             : is_gone(state, index);
      const std::uint32_t generation = generation_of(state) + 1;
      if (!fits ||
          !slot.state.compare_exchange_strong(state, process_state(ProcessPhase::claimed, pid, generation),
                                              std::memory_order_acq_rel)) {
        continue;
      }
      slot.start_time.store(process_stat(pid).start_time, std::memory_order_relaxed);
      slot.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
      slot.request_nonce.store(random_nonzero(), std::memory_order_relaxed);
      slot.reply_nonce.store(random_nonzero(), std::memory_order_relaxed);
      slot.rank.store(who.rank, std::memory_order_relaxed);
      slot.waiting_in.store(0, std::memory_order_relaxed);
      for (auto& word : board()[1 + index].word) {
        const std::uint64_t left = word.load(std::memory_order_relaxed);
        if (left % 2 != 0) word.store(left + 1, std::memory_order_relaxed);
      }
      std::uint64_t words[layout::kSocketNameBytes / 8] = {};
      std::memcpy(words, who.socket_name.data(), who.socket_name.size());
      for (std::size_t i = 0; i < std::size(words); ++i) {
        slot.socket_name[i].store(words[i], std::memory_order_relaxed);
      }
      // Release: a process that sees `live` of this generation sees the fields above.
      slot.state.store(process_state(ProcessPhase::live, pid, generation), std::memory_order_release);
      announce_change();
      return ProcessRef{index, generation};
    }
  }
  return Errc::no_resource;
}

bool HostDirectory::is_gone(std::uint64_t state, std::uint32_t index) const {
  const ProcessPhase phase = process_phase_of(state);
  if (phase != ProcessPhase::claimed && phase != ProcessPhase::live) return false;
  const ProcessStat stat = process_stat(pid_of(state));
  if (phase == ProcessPhase::claimed) return !stat.exists;  // its other fields are not there yet
  const ProcessSlot& slot = processes()[index];
  const std::uint64_t space = slot.pid_namespace.load(std::memory_order_relaxed);
  if (space == 0 || space != pid_namespace()) return false;
  return !stat.is_from(slot.start_time.load(std::memory_order_relaxed));
}

void HostDirectory::leave(ProcessRef self) { mark_dead(self); }

bool HostDirectory::mark_dead(ProcessRef process) {
  if (!is_live(process)) return false;
  auto& word = processes()[process.index].state;
  std::uint64_t state = word.load(std::memory_order_acquire);
  if (process_phase_of(state) != ProcessPhase::live || generation_of(state) != process.generation)
    return false;
  const bool changed = word.compare_exchange_strong(
      state, process_state(ProcessPhase::dead, pid_of(state), process.generation), std::memory_order_acq_rel);
  if (changed) announce_change();
  return changed;
}

Result<ProcessInfo> HostDirectory::info_of(ProcessRef process) const {
  if (!is_live(process)) return Errc::unreachable;
  const ProcessSlot& slot = processes()[process.index];
  ProcessInfo info;
  info.pid = pid_of(slot.state.load(std::memory_order_acquire));
  info.start_time = slot.start_time.load(std::memory_order_relaxed);
  info.pid_namespace = slot.pid_namespace.load(std::memory_order_relaxed);
  info.rank = slot.rank.load(std::memory_order_relaxed);
  info.waiting_in = static_cast<WaitPlace>(slot.waiting_in.load(std::memory_order_relaxed));
  info.request_nonce = slot.request_nonce.load(std::memory_order_relaxed);
  info.reply_nonce = slot.reply_nonce.load(std::memory_order_relaxed);
  std::uint64_t words[layout::kSocketNameBytes / 8];
  for (std::size_t i = 0; i < std::size(words); ++i) {
    // Acquire: is_live() below must not be answered before these are read.
    words[i] = slot.socket_name[i].load(std::memory_order_acquire);
  }
  if (!is_live(process)) return Errc::unreachable;  // the fields may be the next one's
  const auto* name = reinterpret_cast<const char*>(words);
  info.socket_name.assign(name, strnlen(name, sizeof words));
  return info;
}

std::vector<ProcessRef> HostDirectory::live_processes() const {
  std::vector<ProcessRef> live;
  for (std::uint32_t index = 0; index < kMaxProcesses; ++index) {
    const std::uint64_t state = processes()[index].state.load(std::memory_order_acquire);
    if (process_phase_of(state) == ProcessPhase::live) live.push_back({index, generation_of(state)});
  }
  return live;
}

Result<ProcessRef> HostDirectory::process_of_rank(std::int32_t rank) const {
  for (const ProcessRef process : live_processes()) {
    const auto info = info_of(process);
    if (info.ok() && info.value().rank == rank) return process;
  }
  return Errc::no_match;
}

void HostDirectory::note_wait(ProcessRef self, WaitPlace place) {
  if (self.index >= kMaxProcesses) return;
  processes()[self.index].waiting_in.store(static_cast<std::uint32_t>(place), std::memory_order_relaxed);
}

namespace {
constexpr std::uint64_t kDomainUsed = 1ull << 63;
std::uint64_t domain_word(std::uint8_t ptag, std::uint32_t cookie) {
  return kDomainUsed | static_cast<std::uint64_t>(ptag) << 32 | cookie;
}
}  // namespace

Result<DomainId> HostDirectory::declare_domain(std::uint8_t ptag, std::uint32_t cookie) {
  const std::uint64_t wanted = domain_word(ptag, cookie);
  for (DomainId id = 0; id < layout::kMaxDomains; ++id) {
    std::uint64_t key = domain_slots()[id].key.load(std::memory_order_acquire);
    if (key == 0 && domain_slots()[id].key.compare_exchange_strong(key, wanted, std::memory_order_acq_rel)) {
      return id;
    }
    if (key == wanted) return id;  // compare_exchange has reloaded it when another process was first
  }
  log::error("no place for domain {}:{}: a job has at most {}", ptag, cookie, layout::kMaxDomains);
  return Errc::no_resource;
}

Result<DomainId> HostDirectory::find_domain(std::uint8_t ptag, std::uint32_t cookie) const {
  const std::uint64_t wanted = domain_word(ptag, cookie);
  for (DomainId id = 0; id < layout::kMaxDomains; ++id) {
    const std::uint64_t key = domain_slots()[id].key.load(std::memory_order_acquire);
    if (key == wanted) return id;
    if (key == 0) break;
  }
  return Errc::permission;
}

std::vector<HostDirectory::Domain> HostDirectory::domains() const {
  std::vector<Domain> all;
  for (DomainId id = 0; id < layout::kMaxDomains; ++id) {
    const std::uint64_t key = domain_slots()[id].key.load(std::memory_order_acquire);
    if (key == 0) break;
    all.push_back({static_cast<std::uint8_t>(key >> 32), static_cast<std::uint32_t>(key)});
  }
  return all;
}

Result<std::uint8_t> HostDirectory::find_ptag(std::uint32_t cookie) const {
  for (const Domain& domain : domains()) {
    if (domain.cookie == cookie) return domain.ptag;
  }
  return Errc::no_match;
}

Errc HostDirectory::claim_domain(DomainId domain, std::uint64_t job_id) {
  if (domain >= layout::kMaxDomains || domain_slots()[domain].key.load(std::memory_order_acquire) == 0)
    return Errc::no_match;
  std::uint64_t held = 0;
  if (domain_slots()[domain].job_id.compare_exchange_strong(held, job_id + 1, std::memory_order_acq_rel))
    return Errc::ok;
  return held == job_id + 1 ? Errc::ok : Errc::invalid_state;
}

std::optional<std::uint64_t> HostDirectory::claimed_by(DomainId domain) const {
  if (domain >= layout::kMaxDomains) return std::nullopt;
  const std::uint64_t plus_1 = domain_slots()[domain].job_id.load(std::memory_order_acquire);
  return plus_1 == 0 ? std::nullopt : std::optional(plus_1 - 1);
}

std::optional<std::uint32_t> HostDirectory::limit_of(DomainId domain, Resource resource) const {
  if (domain >= layout::kMaxDomains) return std::nullopt;
  const std::uint32_t plus_1 =
      domain_slots()[domain].limits[static_cast<std::size_t>(resource)].load(std::memory_order_relaxed);
  return plus_1 == 0 ? std::nullopt : std::optional(plus_1 - 1);
}

void HostDirectory::set_limit(DomainId domain, Resource resource, std::optional<std::uint32_t> most) {
  if (domain >= layout::kMaxDomains) return;
  domain_slots()[domain].limits[static_cast<std::size_t>(resource)].store(most ? *most + 1 : 0,
                                                                          std::memory_order_relaxed);
}

Errc HostDirectory::set_translation_size(DomainId domain, std::uint32_t size) {
  if (domain >= layout::kMaxDomains || domain_slots()[domain].key.load(std::memory_order_acquire) == 0)
    return Errc::no_match;
  std::uint32_t had = 0;
  if (domain_slots()[domain].translation_size.compare_exchange_strong(had, size, std::memory_order_acq_rel))
    return Errc::ok;
  return had == size ? Errc::ok : Errc::illegal_op;
}

static_assert(layout::kDomainLimits == kResources);

void HostDirectory::announce_change() {
  header().change_count.fetch_add(1, std::memory_order_release);
  futex_wake(header().change_count, INT_MAX);
}

}  // namespace orrery::job
