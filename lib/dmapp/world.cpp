// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/dmapp/world.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/log.hpp"
#include "emu/base/patient_yield.hpp"
#include "emu/memory/raw_calls.hpp"
#include "lib/dmapp/context.hpp"
#include "lib/dmapp/data_segment.hpp"

#include "include/pmi/pmi.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace orrery::dmapp {

std::atomic<World*> World::g_current{nullptr};
std::atomic<std::uint64_t> g_epoch{0};

namespace {

constexpr std::uint64_t kHuge = 2ull << 20;
// A registration of the NIC has at most 2^28 - 1 pages.
constexpr std::uint64_t kLargestHeap = (1ull << 40) - kHuge;

// Where the heap is tried to be mapped, one after the other: what lies between a program's own heap and its
// mappings, and, for programs that an instrumentation has taken that from, elsewhere. ThreadSanitizer
// leaves a program the lowest 512 GiB of these, valgrind the lowest 16 TiB: a program that is not
// position-independent begins there with its break, within the first 128 MiB.
constexpr std::uint64_t kHeapPlaces[] = {0x2000'0000'0000, 0x3000'0000'0000, 0x1800'0000'0000,
                                         0x6000'0000'0000, 0x7000'0000'0000, 0x5000'0000'0000,
                                         0x0010'0000'0000};

// Instances of DMAPP's endpoints: far from those that clients of the same NIC choose.
constexpr std::uint32_t kInstances = 0xd3000000;

std::mutex g_start_mu;
// Between a thread that takes or leaves its seat and the end of the world. Never held while anything is
// awaited.
std::mutex g_seats_mu;
std::uint64_t g_epochs = 0;  // guarded by g_start_mu
bool g_opened_pmi = false;   // guarded by g_start_mu

// Says goodbye to the launcher, if this library greeted it. At exit, not in dmapp_finalize: the program may
// go on with the same launcher (MPI).
void leave_launcher() {
  PMI_BOOL there = PMI_FALSE;
  if (g_opened_pmi && PMI_Initialized(&there) == PMI_SUCCESS && there == PMI_TRUE) PMI_Finalize();
}

Status open_pmi() {
  PMI_BOOL there = PMI_FALSE;
  if (PMI_Initialized(&there) == PMI_SUCCESS && there == PMI_TRUE) return {};
  int spawned = 0;
  if (PMI_Init(&spawned) != PMI_SUCCESS) return Errc::unsupported;
  if (!g_opened_pmi) {
    g_opened_pmi = true;
    std::atexit(leave_launcher);
  }
  return {};
}

// What every PE says, by rank. Collective.
template <typename T>
Status gather(const T& mine, int pe, int npes, std::vector<T>* all) {
  struct Said {
    std::int64_t pe;
    T value;
  };
  Said said{pe, mine};
  std::vector<Said> heard(static_cast<std::size_t>(npes));
  if (PMI_Allgather(&said, heard.data(), sizeof said) != PMI_SUCCESS) {
    log::error("dmapp_init: PMI_Allgather of {} bytes failed", sizeof said);
    return Errc::system;
  }
  all->resize(static_cast<std::size_t>(npes));
  for (const Said& one : heard) {
    if (one.pe < 0 || one.pe >= npes) return Errc::corrupt;
    (*all)[static_cast<std::size_t>(one.pe)] = one.value;
  }
  return {};
}

}  // namespace

Result<World*> World::start(const Attributes& attributes) {
  const std::lock_guard lock(g_start_mu);
  if (World* const there = current(); there != nullptr) return there;
  set_heap_refused(false);
  if (const Status opened = open_pmi(); !opened.ok()) return opened.code();
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return runtime.code();
  std::unique_ptr<World> world(new World(*runtime.value(), attributes));
  if (const Status ready = world->set_up(); !ready.ok()) return ready.code();
  common::forget_in_time([] {
    g_epoch.store(0, std::memory_order_release);
    g_current.store(nullptr, std::memory_order_release);
  });
  World* const made = world.release();
  // In a child, the visits of the parent's threads.
  for (Visits& visits : g_visits) visits.depth.store(0, std::memory_order_relaxed);
  g_strong_visits.store(!asymmetric_fence::enrolled(), std::memory_order_relaxed);
  const std::lock_guard seats(g_seats_mu);
  g_current.store(made, std::memory_order_release);
  g_epoch.store(++g_epochs, std::memory_order_release);
  return made;
}

void World::stop() {
  const std::lock_guard lock(g_start_mu);
  World* const world = current();
  if (world == nullptr) return;
  {
    const std::lock_guard seats(g_seats_mu);
    // A full barrier: where threads announce with one too, either they see it or their visits are seen.
    g_epoch.exchange(0, std::memory_order_seq_cst);
    g_current.store(nullptr, std::memory_order_release);
  }
  world->wait_for_visits();
  for (std::size_t i = 0; i < world->contexts(); ++i) world->context(i).drain();
  // No PE's memory goes while another one still uses it.
  if (PMI_Barrier() != PMI_SUCCESS) log::warn("dmapp_finalize: PMI_Barrier failed");
  delete world;
}

// The threads in a call that waits see that the epoch is another one, or are done with what they wait for.
void World::wait_for_visits() const {
  (void)asymmetric_fence::heavy();
  PatientYield yield;
  for (std::size_t i = 0; i < contexts(); ++i) {
    // Acquire: pairs with the visit's end.
    while (g_visits[i].depth.load(std::memory_order_acquire) != 0) {
      nic().progress();
      if (clock::Clock* const clock = nic().clock(); clock != nullptr)
        clock->idle(this);
      else
        yield();
    }
  }
}

World::World(nic::Runtime& runtime, const Attributes& attributes)
    : runtime_(runtime), attributes_(attributes) {}

World::~World() {
  const std::size_t count = contexts();
  for (std::size_t i = count; i-- > 0;) contexts_[i].reset();
  for (const Region& region : mine_.regions) {
    if (region.key.valid()) (void)nic().deregister(region.key);
  }
  const Region& heap = mine_.regions[static_cast<std::size_t>(SegKind::heap)];
  free_pages(reinterpret_cast<void*>(heap.base), heap.bytes);
  free_pages(inside_, sizeof(Inside));
  common::sign_off(signed_on_);
}

void* World::allocate_pages(std::uint64_t bytes) const {
  if (in_file_) {
    const auto born = runtime_.memory().allocate(bytes);
    return born.ok() ? born.value() : nullptr;
  }
  void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void World::free_pages(void* block, std::uint64_t bytes) const {
  if (block == nullptr) return;
  if (in_file_) {
    runtime_.memory().deallocate(block, bytes);
  } else {
    munmap(block, bytes);
  }
}

Status World::set_up() {
  if (PMI_Get_rank(&pe_) != PMI_SUCCESS || PMI_Get_size(&npes_) != PMI_SUCCESS) return Errc::system;
  mine_.pe = pe_;
  const auto domains = runtime_.job().directory().domains();
  const auto domain = domains.empty() ? runtime_.job().declare_domain(1, 1) : Result<job::DomainId>(0u);
  if (!domain.ok()) return domain.code();
  const auto signed_on = common::sign_on(domain.value(), kInstances | static_cast<std::uint32_t>(pe_));
  if (!signed_on.ok()) return signed_on.code();
  signed_on_ = signed_on.value();
  // Memory that may not move into the memory file is not born in it either: everything goes by frame then.
  in_file_ = nic().options().may_adopt && runtime_.memory().file() >= 0;
  if (const Status placed = place_heap(); !placed.ok()) return placed;

  inside_ = static_cast<Inside*>(allocate_pages(sizeof(Inside)));
  if (inside_ == nullptr) return Errc::no_memory;
  const auto enter = [this](SegKind kind, std::uint64_t base, std::uint64_t bytes) {
    const auto region = enter_region(base, bytes);
    if (region.ok()) mine_.regions[static_cast<std::size_t>(kind)] = region.value();
    return region.status();
  };
  if (const Status s = enter(SegKind::inside, reinterpret_cast<std::uint64_t>(inside_), sizeof(Inside));
      !s.ok())
    return s;
  const Region heap = mine_.regions[static_cast<std::size_t>(SegKind::heap)];
  if (const Status s = enter(SegKind::heap, heap.base, heap.bytes); !s.ok()) return s;
  const DataSegment data = data_segment();
  if (data.bytes != 0) {
    if (const Status s = enter(SegKind::data, data.begin, data.bytes); !s.ok()) return s;
  }
  return exchange();
}

Result<Region> World::enter_region(std::uint64_t base, std::uint64_t bytes) {
  const auto key = nic().register_region(*signed_on_.port, base, bytes, 0, nullptr);
  if (!key.ok()) {
    log::error("dmapp_init: {} bytes at {:#x} cannot be registered: {}", bytes, base, errc_name(key.code()));
    return key.code();
  }
  return Region{.base = base, .bytes = bytes, .key = key.value()};
}

bool World::map_heap(std::uint64_t at, std::uint64_t bytes) {
  if (in_file_) return runtime_.memory().allocate_at(at, bytes).ok();
  // ThreadSanitizer's own mmap drops an address that it does not like, and with this flag maps page 0.
  void* const block =
      memory::raw::mmap(memory::raw::pointer(at), bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (block == MAP_FAILED) return false;
  if (block == memory::raw::pointer(at)) return true;
  memory::raw::munmap(block, bytes);
  return false;
}

// The same address in every PE: each tries the next place, and all take the first where it went well
// everywhere.
Status World::place_heap() {
  heap_size_ = dmapp::heap_size();
  const auto size = memory::parse_size(heap_size_.text);
  const std::uint64_t largest = kLargestHeap - heap_size_.added;
  // A PE that gave up here would leave the others waiting: all of them hear of it.
  const std::uint64_t bytes =
      size.ok() && size.value() <= largest
          ? (std::max(size.value() + heap_size_.added, kHuge) + kHuge - 1) / kHuge * kHuge
          : 0;
  std::vector<std::uint64_t> sizes;
  if (const Status told = gather(bytes, pe_, npes_, &sizes); !told.ok()) return told;
  if (const auto bad = std::find(sizes.begin(), sizes.end(), 0u); bad != sizes.end()) {
    if (pe_ == bad - sizes.begin()) {
      log::error(
          "{}={} is not accepted: expected a number of bytes up to {} (just below 1T), "
          "with K, M, G or T behind it perhaps",
          heap_size_.variable, heap_size_.text, largest);
    }
    return refuse_heap(Errc::invalid_param);
  }
  const auto differs =
      std::find_if(sizes.begin(), sizes.end(), [&](std::uint64_t one) { return one != sizes[0]; });
  if (differs != sizes.end()) {
    if (pe_ == differs - sizes.begin()) {
      log::error("{} makes a heap of {} bytes here and of {} in PE 0: expected the same in all",
                 heap_size_.variable, bytes, sizes[0]);
    }
    return refuse_heap(Errc::invalid_param);
  }
  for (const std::uint64_t at : kHeapPlaces) {
    const bool mapped = map_heap(at, bytes);
    std::vector<std::uint8_t> all;
    if (const Status told = gather(static_cast<std::uint8_t>(mapped), pe_, npes_, &all); !told.ok())
      return told;
    const bool everywhere = std::all_of(all.begin(), all.end(), [](std::uint8_t one) { return one != 0; });
    if (everywhere) {
      mine_.regions[static_cast<std::size_t>(SegKind::heap)] = {.base = at, .bytes = bytes, .key = {}};
      heap_ = std::make_unique<memory::SymmetricHeap>(at, bytes);
      return {};
    }
    if (mapped) free_pages(reinterpret_cast<void*>(at), bytes);
  }
  if (pe_ == 0) {
    log::error("no place for a symmetric heap of {} bytes that is free in every PE ({}={})", bytes,
               heap_size_.variable, heap_size_.shown());
  }
  return refuse_heap(Errc::no_memory);
}

// All PEs know that there is no heap, and one has said why: no other one ends the job before that.
Status World::refuse_heap(Errc code) {
  std::vector<std::uint8_t> all;
  if (const Status told = gather(std::uint8_t{0}, pe_, npes_, &all); !told.ok()) return told;
  set_heap_refused(true);
  return code;
}

Status World::exchange() {
  mine_.nic_address = runtime_.job().nic_address();
  mine_.process_slot = runtime_.job().self().index;
  mine_.heap_in_file = in_file_ ? 1 : 0;
  mine_.process_generation = runtime_.job().self().generation;
  return gather(mine_, pe_, npes_, &cards_);
}

bool World::alive(int pe) const {
  if (pe == pe_) return true;
  const Card& other = card(pe);
  return runtime_.alive({static_cast<wire::ProcessSlot>(other.process_slot), other.process_generation});
}

void World::watch(int pe) const {
  if (pe == pe_) return;
  const Card& other = card(pe);
  runtime_.watch({static_cast<wire::ProcessSlot>(other.process_slot), other.process_generation});
}

Context* World::enter_current(std::uint64_t* epoch) {
  const std::lock_guard seats(g_seats_mu);
  World* const world = current();
  *epoch = g_epoch.load(std::memory_order_relaxed);
  return world == nullptr ? nullptr : world->enter();
}

void World::leave_current(Context& context, std::uint64_t epoch) {
  const std::lock_guard seats(g_seats_mu);
  World* const world = current();
  if (world == nullptr || epoch != g_epoch.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(world->mu_);
  world->idle_.push_back(&context);
}

Context* World::enter() {
  const std::lock_guard lock(mu_);
  if (!idle_.empty()) {
    Context* const context = idle_.back();
    idle_.pop_back();
    context->attributes = attributes_;
    context->use_attributes();
    return context;
  }
  const std::size_t number = contexts();
  if (number == kMaxContexts) {
    log::error("DMAPP: {} threads call it already, which is the most", number);
    return nullptr;
  }
  auto context = std::make_unique<Context>(*this, static_cast<std::uint32_t>(number));
  if (const Status opened = context->open(); !opened.ok()) {
    log::error("DMAPP: no port for one more thread: {}", errc_name(opened.code()));
    return nullptr;
  }
  contexts_[number] = std::move(context);
  context_count_.store(number + 1, std::memory_order_release);
  return contexts_[number].get();
}

}  // namespace orrery::dmapp
