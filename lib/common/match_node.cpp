// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/match_node.hpp"

#include "emu/base/config.hpp"
#include "emu/base/log.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace orrery::common {

namespace match = nic::match;

namespace {

// What a NIC's segment says of its match units.
struct Directory {
  struct Place {
    std::atomic<std::uint64_t> offset;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> space;  // MatchMemory::pack() of the registration of all memory; 0: not yet
  } places[2];
};

Directory::Place& place_of(const nic::NicView& nic, std::uint32_t place) {
  return nic.unit<Directory, nic::kMatchArea>().places[place];
}

// A piece of memory as the interfaces have it.
struct Piece {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace

Status MatchNode::start(const Api& api) {
  if (runtime_ != nullptr) return {};
  const auto runtime = nic::Runtime::of_process();
  if (!runtime.ok()) return runtime.code();
  const auto domain = runtime.value()->job().declare_domain(api.protection_tag, api.cookie);
  if (!domain.ok()) return domain.code();
  nic::Nic& nic = runtime.value()->nic();
  const std::uint64_t bytes = match::bytes_of(api.shape);
  const std::uint64_t offset = nic.arena().take(bytes, nic::Arena::Use::unit);
  std::byte* const base = offset == 0 ? nullptr : nic.view().arena<std::byte>(offset, bytes);
  if (base == nullptr) {
    log::error("the NIC's arena has no room for a match unit of {} bytes", bytes);
    return Errc::no_memory;
  }
  self_.match = match::View::create(base, api.shape);
  rings_.emplace(own().header().rings, own().header().ring_bytes);
  self_.self = true;
  self_.runtime = runtime.value();
  self_.name = runtime.value()->self();
  Directory::Place& place = place_of(nic.view(), api.place);
  place.bytes.store(bytes, std::memory_order_relaxed);
  // Release: a peer that sees the offset sees what lies there.
  place.offset.store(offset, std::memory_order_release);
  api_ = api;
  domain_ = domain.value();
  nid_ = runtime.value()->job().nic_address();
  directory_ = &runtime.value()->job().directory();
  runtime_ = runtime.value();
  return {};
}

Status MatchNode::sign_on(std::uint32_t wanted, std::uint32_t preferred) {
  std::uint32_t candidate = wanted == kAnyPid ? preferred : wanted;
  for (;;) {
    const auto port = common::sign_on(domain_, candidate);
    if (port.ok()) {
      port_ = port.value();
      break;
    }
    if (wanted != kAnyPid) return Errc::invalid_state;
    candidate = candidate < nic::kMaxProcesses ? candidate + nic::kMaxProcesses : candidate + 1;
    if (candidate >= api_.pids) return Errc::no_resource;
  }
  pid_ = candidate;
  signed_on_ = true;
  // All of its memory, for as long as it lives: entries say what of it messages may touch.
  auto& space = place_of(runtime_->nic().view(), api_.place).space;
  if (space.load(std::memory_order_relaxed) == 0) {
    const auto key = runtime_->nic().regions().register_space(*port_.port, 0, nullptr);
    if (!key.ok()) {
      log::error("the memory of this process cannot be registered: {}", errc_name(key.code()));
      sign_off();
      return key.code();
    }
    // Release: peers that see the key find the registration.
    space.store(MatchMemory::pack(key.value()), std::memory_order_release);
  }
  const std::lock_guard lock(peers_mu_);
  by_id_[std::uint64_t{nid_} << 32 | pid_] = &self_;
  return {};
}

void MatchNode::sign_off() {
  if (!signed_on_) return;
  common::sign_off(port_);
  signed_on_ = false;
  const std::lock_guard lock(peers_mu_);
  peers_change_.fetch_add(1, std::memory_order_release);
  by_id_.clear();
}

std::uint32_t MatchNode::open_queue(match::Session& session, std::uint64_t capacity,
                                    std::uint32_t interface) {
  const match::View& view = session.view();
  // As long as the next power of two: positions are masked (View::slot).
  const auto ring = rings_->allocate(std::bit_ceil(capacity) * sizeof(match::EventSlot));
  if (!ring.ok()) return 0;
  const std::uint32_t index =
      match::allocate(session, view.header().queue_pool,
                      [&](std::uint32_t i) -> match::EventQueue& { return view.queue(i); });
  if (index == 0) {
    (void)rings_->free(ring.value());
    return 0;
  }
  match::EventQueue& queue = view.queue(index);
  queue.ring = ring.value();
  queue.capacity = capacity;
  queue.interface = interface;
  queue.untold = 0;
  queue.tail = queue.floor = queue.known_head = queue.head = ++queues_opened_ << 40;
  session.set(queue.used, 1u);
  return index;
}

void MatchNode::close_queue(std::uint32_t index) {
  match::Session session(own());
  const match::View& view = session.view();
  match::EventQueue& queue = view.queue(index);
  const std::uint64_t ring = queue.ring;
  session.set(queue.used, 0u);
  session.set(queue.generation, queue.generation + 1);
  match::give_back(session, view.header().queue_pool, index,
                   [&](std::uint32_t i) -> match::EventQueue& { return view.queue(i); });
  session.close();
  (void)rings_->free(ring);
}

void MatchNode::give_rings_of(const match::Session& session, std::uint32_t interface) {
  const match::View& view = session.view();
  for (std::uint32_t i = 1; i < view.header().queue_pool.fresh; ++i) {
    const match::EventQueue& queue = view.queue(i);
    if (queue.used != 0 && queue.interface == interface) (void)rings_->free(queue.ring);
  }
}

__attribute__((tls_model("initial-exec"))) thread_local constinit MatchNode::Kept MatchNode::t_kept;

MatchPeer* MatchNode::find_and_keep(match::ProcessId id) {
  if (runtime_ == nullptr) return nullptr;
  const std::uint32_t change = peers_change_.load(std::memory_order_acquire);
  MatchPeer* const peer = find_slowly(id);
  if (peer != nullptr) t_kept = {this, peer, change, id};
  return peer;
}

bool MatchNode::has_met(match::ProcessId id) {
  const std::lock_guard lock(peers_mu_);
  return by_id_.contains(std::uint64_t{id.nid} << 32 | id.pid);
}

MatchPeer* MatchNode::find_slowly(match::ProcessId id) {
  const std::lock_guard lock(peers_mu_);
  const std::uint64_t key = std::uint64_t{id.nid} << 32 | id.pid;
  const auto known = by_id_.find(key);
  if (known != by_id_.end() && is_alive(*known->second)) return known->second;
  const auto found = runtime_->job().find({.domain = domain_, .nic_address = id.nid, .instance = id.pid});
  MatchPeer* const peer = found.ok() ? connect({static_cast<wire::ProcessSlot>(found.value().process.index),
                                                found.value().process.generation})
                                     : find_elsewhere(id);
  if (peer != nullptr) by_id_[key] = peer;
  return peer;
}

// Processes of other hosts: those behind the NIC address are asked, the likely one first.
MatchPeer* MatchNode::find_elsewhere(match::ProcessId id) {
  if (!api_.has_pid) return nullptr;
  std::vector<nic::ProcessName> candidates = runtime_->remote_behind(id.nid);
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](const nic::ProcessName& name) { return name.slot + 1u == id.pid; });
  for (const nic::ProcessName& name : candidates) {
    MatchPeer* const peer = connect(name);
    if (peer != nullptr && peer->by_frame && api_.has_pid(name, id.pid)) return peer;
  }
  return nullptr;
}

MatchPeer* MatchNode::connect(nic::ProcessName name) {
  if (name == self_.name) return &self_;
  for (const auto& known : storage_) {
    if (known->name == name) return known.get();
  }
  auto link = runtime_->connect(name);
  if (!link.ok()) return nullptr;
  if (link.value().by_wire) {
    storage_.push_back(std::make_unique<MatchPeer>(
        MatchPeer{.runtime = runtime_, .name = name, .by_frame = true, .by_wire = true}));
    return storage_.back().get();
  }
  const nic::NicView& nic = link.value().nic;
  const Directory::Place& place = place_of(nic, api_.place);
  const std::uint64_t offset = place.offset.load(std::memory_order_acquire);
  const std::uint64_t bytes = place.bytes.load(std::memory_order_relaxed);
  std::byte* const base = offset == 0 ? nullptr : nic.arena<std::byte>(offset, bytes);
  if (base == nullptr) return nullptr;
  const auto view = match::View::open(base, bytes);
  if (!view.ok()) return nullptr;
  auto peer = std::make_unique<MatchPeer>();
  peer->runtime = runtime_;
  peer->name = name;
  peer->match = view.value();
  const std::atomic<std::uint64_t>& space = place.space;
  const nic::NicHeader& header = nic.header();
  const auto attach = memory::CrossAttach::probe(static_cast<pid_t>(header.pid), header.attach_word_address,
                                                 header.attach_word);
  if (attach.ok() && config::text("ORRERY_ATTACH") == "on") {
    const memory::CrossAttach by_kernel = attach.value();
    peer->memory = std::make_unique<MatchMemory>(*runtime_, std::move(link.value()), &by_kernel, space);
  } else {
    log::debug("the memory of process {} cannot be attached to: messages to it travel as frames", name.slot);
    peer->by_frame = true;
  }
  storage_.push_back(std::move(peer));
  return storage_.back().get();
}

bool ranges_of(MatchPeer& owner, std::uint64_t start, std::uint32_t pieces, std::uint64_t offset,
               std::uint64_t length, std::vector<MatchRange>* ranges) {
  ranges->clear();
  if (length == 0) return true;
  if (pieces == 0) {
    ranges->push_back({start + offset, length});
    return true;
  }
  std::vector<Piece> parts(pieces);
  const MatchRange list{start, pieces * sizeof(Piece)};
  if (read(owner, {list}, reinterpret_cast<std::byte*>(parts.data())) != Errc::ok) return false;
  for (const Piece& part : parts) {
    if (length == 0) break;
    if (offset >= part.bytes) {
      offset -= part.bytes;
      continue;
    }
    const std::uint64_t here = length < part.bytes - offset ? length : part.bytes - offset;
    ranges->push_back({part.address + offset, here});
    length -= here;
    offset = 0;
  }
  return length == 0;
}

namespace {

Errc read_one(MatchPeer& owner, std::uint64_t from, std::byte* to, std::uint64_t bytes) {
  if (owner.self)
    return nic::run_guarded(static_cast<nic::HostServices&>(*owner.runtime), [&] {
      std::memmove(to, reinterpret_cast<const void*>(from), bytes);
      return Errc::ok;
    });
  return owner.memory == nullptr ? Errc::unreachable : owner.memory->get(from, to, bytes);
}

Errc write_one(MatchPeer& owner, std::uint64_t to, const std::byte* from, std::uint64_t bytes) {
  if (owner.self)
    return nic::run_guarded(static_cast<nic::HostServices&>(*owner.runtime), [&] {
      std::memmove(reinterpret_cast<void*>(to), from, bytes);
      return Errc::ok;
    });
  return owner.memory == nullptr ? Errc::unreachable : owner.memory->put(to, from, bytes);
}

}  // namespace

Errc read(MatchPeer& owner, const std::vector<MatchRange>& from, std::byte* to) {
  for (const MatchRange& range : from) {
    const Errc status = read_one(owner, range.address, to, range.bytes);
    if (status != Errc::ok) return status;
    to += range.bytes;
  }
  return Errc::ok;
}

Errc write(MatchPeer& owner, const std::vector<MatchRange>& to, const std::byte* from) {
  for (const MatchRange& range : to) {
    const Errc status = write_one(owner, range.address, from, range.bytes);
    if (status != Errc::ok) return status;
    from += range.bytes;
  }
  return Errc::ok;
}

Errc copy(MatchPeer& from_owner, const std::vector<MatchRange>& from, MatchPeer& to_owner,
          const std::vector<MatchRange>& to) {
  // Stretches that both sides have whole, one after the other.
  constexpr std::uint64_t kBounce = 64 * 1024;
  std::size_t i = 0;
  std::size_t j = 0;
  std::uint64_t from_done = 0;
  std::uint64_t to_done = 0;
  std::vector<std::byte> bounce;
  while (i < from.size() && j < to.size()) {
    const std::uint64_t source = from[i].address + from_done;
    const std::uint64_t target = to[j].address + to_done;
    std::uint64_t bytes = from[i].bytes - from_done;
    if (to[j].bytes - to_done < bytes) bytes = to[j].bytes - to_done;
    Errc status = Errc::ok;
    if (from_owner.self) {
      status = write_one(to_owner, target, reinterpret_cast<const std::byte*>(source), bytes);
    } else if (to_owner.self) {
      status = read_one(from_owner, source, reinterpret_cast<std::byte*>(target), bytes);
    } else {
      if (bytes > kBounce) bytes = kBounce;
      bounce.resize(bytes);
      status = read_one(from_owner, source, bounce.data(), bytes);
      if (status == Errc::ok) status = write_one(to_owner, target, bounce.data(), bytes);
    }
    if (status != Errc::ok) return status;
    from_done += bytes;
    to_done += bytes;
    if (from_done == from[i].bytes) {
      ++i;
      from_done = 0;
    }
    if (to_done == to[j].bytes) {
      ++j;
      to_done = 0;
    }
  }
  return Errc::ok;
}

}  // namespace orrery::common
