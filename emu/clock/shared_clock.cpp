// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/shared_clock.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/timed_path.hpp"
#include "emu/base/wait.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::clock {

namespace {

constexpr std::int64_t kOpenNs = 60'000'000'000;
constexpr std::size_t kOwedAt = (sizeof(Board) + 4095) / 4096 * 4096;
constexpr std::size_t links_at(std::uint32_t pes) {
  return (kOwedAt + Owed::bytes(pes) + 4095) / 4096 * 4096;
}

model::LinkState::Kind kind_for(const Choice& choice) {
  return choice.kind == Kind::virtual_time ? model::LinkState::Kind::exact : model::LinkState::Kind::decayed;
}

// The machine's node of a PE: where the launcher's placement put it; without a placement each PE has a node
// of its own.
bool is_placed(const job::Job& job, std::uint32_t pe) {
  return job.launch().directory_fd >= 0 && pe < job.placement().pe_count();
}
std::uint32_t node_of(const job::Job& job, std::uint32_t pe) { return is_placed(job, pe) ? job.nid() : pe; }

}  // namespace

Result<std::unique_ptr<SharedClock>> SharedClock::open(job::Job& job, const Choice& choice,
                                                       job::ProcessRef known_first) {
  std::unique_ptr<SharedClock> shared(new SharedClock);
  const Status built = shared->build(choice);
  if (!built.ok()) return built.code();
  const bool alone = job.launch().kind == job::LaunchKind::singleton;
  if (!alone && (job.size() < 1 || job.rank() < 0)) {
    log::error("clock {}: the launcher does not say how many PEs there are before PMI_Init", choice.words());
    return Errc::unsupported;
  }
  const auto pes = static_cast<std::uint32_t>(alone ? 1 : job.size());
  shared->pe_ = static_cast<std::uint32_t>(alone ? 0 : job.rank());
  shared->node_ = node_of(job, shared->pe_);
  const std::uint32_t nodes = shared->pricing().nodes;
  if (shared->node_ >= nodes || pes > kMaxPes) {
    log::error("PE {} of {} would be on node {}: machine {} has {} nodes, 0..{}", shared->pe_, pes,
               shared->node_, choice.machine, nodes, nodes - 1);
    return Errc::invalid_param;
  }
  for (std::uint32_t pe = 0; pe < pes; ++pe)
    shared->first_of_node_.push_back(is_placed(job, pe) ? job.placement().clique_of(pe).front() : pe);
  if (shared->pe_ == 0) {
    const Status made = shared->make(choice, pes);
    if (!made.ok()) return made.code();
    job.offer(job::DescriptorKind::clock, shared->fd_.get());
    return Result<std::unique_ptr<SharedClock>>(std::move(shared));
  }
  const std::int64_t deadline = monotonic_ns() + kOpenNs;
  FutexWord never{0};
  for (;;) {
    const auto first =
        known_first.valid() ? Result<job::ProcessRef>(known_first) : job.directory().process_of_rank(0);
    if (first.ok()) {
      auto descriptors = job.fetch(first.value(), deadline);
      if (descriptors.ok() && descriptors.value().clock.valid()) {
        const Status attached = shared->attach(std::move(descriptors.value().clock), choice, pes);
        if (!attached.ok()) return attached.code();
        return Result<std::unique_ptr<SharedClock>>(std::move(shared));
      }
    }
    if (monotonic_ns() > deadline) {
      log::error("clock {}: PE 0 has not made the job's clock after 60 s; is ORRERY_CLOCK the same there?",
                 choice.words());
      return Errc::timeout;
    }
    futex_wait(never, 0, monotonic_ns() + 2'000'000);
  }
}

Status SharedClock::build(const Choice& choice) {
  auto built = model::build_machine(choice.machine);
  if (!built.machine) {
    log::error("{}", built.error);
    return Errc::invalid_param;
  }
  machine_ = std::move(built.machine);
  return {};
}

Result<std::unique_ptr<SharedClock>> SharedClock::for_test(const Choice& choice, std::uint32_t pe,
                                                           const std::vector<std::uint32_t>& nodes,
                                                           const SharedClock* first) {
  std::unique_ptr<SharedClock> shared(new SharedClock);
  const auto pes = static_cast<std::uint32_t>(nodes.size());
  Status done = shared->build(choice);
  shared->pe_ = pe;
  shared->node_ = nodes[pe];
  for (const std::uint32_t node : nodes)
    shared->first_of_node_.push_back(
        static_cast<std::uint32_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin()));
  if (done.ok() && first == nullptr) {
    done = shared->make(choice, pes);
  } else if (done.ok()) {
    // At the same addresses: a sanitizer of threads takes two mappings for two memories.
    shared->board_ = first->board_;
    shared->bytes_ = first->bytes_;
    shared->borrowed_ = true;
    done = shared->check(choice, pes);
  }
  if (!done.ok()) return done.code();
  return Result<std::unique_ptr<SharedClock>>(std::move(shared));
}

Status SharedClock::make(const Choice& choice, std::uint32_t pes) {
  const std::size_t links = model::LinkState::bytes_needed(pricing(), kind_for(choice));
  const std::size_t links_offset = links_at(pes);
  bytes_ = (links_offset + links + 4095) / 4096 * 4096;
  fd_ = UniqueFd(own_descriptor(memfd_create("orrery-clock", MFD_CLOEXEC)));
  if (!fd_.valid() || ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) {
    log::error("no shared memory of {} bytes for the clock: {}", bytes_, std::strerror(errno));
    return Errc::no_memory;
  }
  void* const base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  board_ = new (base) Board{};
  owed().clear();
  auto made = model::LinkState::create({static_cast<std::byte*>(base) + links_offset, bytes_ - links_offset},
                                       pricing(), kind_for(choice));
  if (!made.ok()) return made.status();
  links_ = made.value();
  BoardHeader& h = board_->header;
  h.magic = kBoardMagic;
  h.version = kBoardVersion;
  h.pes = pes;
  h.links_offset = links_offset;
  h.links_bytes = links;
  h.epoch_ns = monotonic_ns();
  h.core = sched_getcpu();
  std::strncpy(h.choice, choice.words().c_str(), sizeof h.choice - 1);
  // PE 0 has the first turn; those that have not joined are at time 0, those that there are none of nowhere.
  for (std::uint32_t pe = pes; pe < kMaxPes; ++pe) board_->keys[pe].store(kNever, std::memory_order_relaxed);
  board_->pes[0].grant.store(1, std::memory_order_relaxed);
  h.ready.store(1, std::memory_order_release);
  return {};
}

Status SharedClock::attach(UniqueFd fd, const Choice& choice, std::uint32_t pes) {
  fd_ = std::move(fd);
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0 || info.st_size < static_cast<off_t>(kOwedAt)) return Errc::corrupt;
  bytes_ = static_cast<std::size_t>(info.st_size);
  void* const base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) return Errc::no_memory;
  board_ = static_cast<Board*>(base);
  return check(choice, pes);
}

// What PE 0 made is what this PE expects.
Status SharedClock::check(const Choice& choice, std::uint32_t pes) {
  const BoardHeader& h = board_->header;
  if (h.ready.load(std::memory_order_acquire) != 1 || h.magic != kBoardMagic || h.version != kBoardVersion ||
      h.links_offset != links_at(h.pes)) {
    log::error("the job's clock is not one of this version");
    return Errc::corrupt;
  }
  const std::string words = choice.words();
  const std::string_view theirs(h.choice, strnlen(h.choice, sizeof h.choice));
  if (words.substr(0, sizeof h.choice - 1) != theirs || h.pes != pes) {
    log::error("PE {} has the clock '{}' for {} PEs, but PE 0 has '{}' for {}: expected the same in all", pe_,
               words, pes, theirs, h.pes);
    return Errc::invalid_param;
  }
  if (bytes_ < h.links_offset) return Errc::corrupt;
  auto found = model::LinkState::attach(
      {reinterpret_cast<std::byte*>(board_) + h.links_offset, bytes_ - h.links_offset}, pricing());
  if (!found.ok()) {
    log::error("PE {}: the machine '{}' is not the one that PE 0 has", pe_, choice.machine);
    return found.status();
  }
  links_ = found.value();
  return {};
}

static_assert(job::HostDirectory::kMaxProcesses <= kMaxPes, "the board is asked by process slot");

ORRERY_TIMED_PATH Priced SharedClock::price(const Operation& operation, Picos begun, std::uint64_t number) {
  const std::uint32_t pe = board_->pe_of_process[operation.target].load(std::memory_order_acquire);
  const std::uint32_t node =
      pe == 0 || pe > pes() ? node_ : board_->pes[pe - 1].node.load(std::memory_order_relaxed);
  const model::Pricing& costs = pricing();
  const model::QuoteRequest request{.op = operation.op,
                                    .routing = operation.routing,
                                    .src = node_,
                                    .dst = node < costs.nodes ? node : 0,
                                    .bytes = operation.bytes,
                                    .now = begun,
                                    .seed = std::uint64_t{pe_} << 40 | number};
  const model::Quote q = model::quote(costs, request, operation.uncontended ? nullptr : &links_);
  const Picos turn = q.remote_event_at - costs.ops[static_cast<std::size_t>(operation.op)].remote_event;
  return {request, q, {turn, q.data_at, q.remote_event_at, q.local_event_at}};
}

Picos SharedClock::least_latency() const {
  // What a NIC posts (TimedOps::operation_of).
  constexpr model::Op kPosted[] = {
      model::Op::fma_put,  model::Op::fma_get,   model::Op::launch_put,     model::Op::bte_put,
      model::Op::bte_get,  model::Op::send,      model::Op::message,        model::Op::amo,
      model::Op::amo_miss, model::Op::fetch_amo, model::Op::fetch_amo_miss, model::Op::cq_write};
  std::int64_t least = kNever;
  for (const model::Op op : kPosted) {
    // From a node to itself: no way, nothing to carry, no contention.
    const model::QuoteRequest request{.op = op, .src = node_, .dst = node_};
    const model::Quote q = model::quote(pricing(), request, nullptr);
    const Picos turn = q.remote_event_at - pricing().ops[static_cast<std::size_t>(op)].remote_event;
    least = std::min({least, turn.count(), q.data_at.count(), q.remote_event_at.count()});
  }
  return Picos{std::max<std::int64_t>(least, 0)};
}

Owed SharedClock::owed() const { return {reinterpret_cast<std::byte*>(board_) + kOwedAt, first_of_node_}; }

Picos SharedClock::look_time() const { return model::stage_time(machine().description, "stage.look"); }

Picos SharedClock::collective_time(model::Collective collective, std::uint64_t bytes) const {
  return model::quote_collective(machine(), collective, pes(), bytes).time;
}

SharedClock::~SharedClock() {
  if (board_ != nullptr && !borrowed_) munmap(board_, bytes_);
}

}  // namespace orrery::clock
