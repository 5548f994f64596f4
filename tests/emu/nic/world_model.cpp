// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/emu/nic/world_model.hpp"

#include <algorithm>

namespace orrery::nic::box {

namespace {

constexpr int kSlots = 4;

Nic::Options options_of_the_world(bool lazy) {
  Nic::Options options;
  options.amo_cache_entries = 8;
  if (lazy) options.amo_cache_mode = AmoCacheMode::lazy;
  options.adopt_after = 4;
  options.bte_crossover = UINT64_MAX;  // the engine's thread is no part of a world that replays
  return options;
}

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

bool writes(const Operation& operation) { return changes_memory(operation.op); }

}  // namespace

Simulation::Simulation(std::uint64_t seed, Path path)
    : random_(seed),
      lazy_(random_.chance(20)),
      world_(kSlots, path, options_of_the_world(lazy_)),
      moving_(kSlots),
      at_(kSlots) {
  world_.attach = path == Path::adopt && random_.chance(50);
  world_.adoption_fails = path == Path::adopt && random_.chance(20);
  world_.during_switch = [this](int slot) {
    const auto at = static_cast<std::size_t>(slot);
    moving_[at] = true;
    for (std::uint64_t i = random_.below(8); i != 0 && failure_.empty(); --i) step();
    moving_[at] = false;
  };
  for (int slot = 0; slot < kSlots; ++slot) {
    lives_.push_back(std::make_unique<Life>(slot, 0));
    at_[static_cast<std::size_t>(slot)] = lives_.back().get();
    lives_.back()->told_dead.resize(kSlots);
  }
  for (Life* life : at_) {
    for (int i = 0; i < 3; ++i) make_region(*life);
    for (int i = 0; i < 3; ++i) make_line(*life);
  }
}

Simulation::~Simulation() = default;

std::string Simulation::run(int steps) {
  for (step_ = 0; step_ < steps && failure_.empty(); ++step_) {
    step();
    hear_listeners();
    settle_silent();
    if (!world_.violation.empty()) fail(world_.violation);
  }
  if (failure_.empty()) let_all_end();
  if (failure_.empty()) check_all();
  return failure_;
}

void Simulation::step() {
  const std::uint64_t choice = random_.below(200);
  if (choice < 70) return post();
  if (choice < 130) {
    Queue& queue = queues_[random_.below(queues_.size())];
    if (queue.queue != nullptr) poll(queue);
    return;
  }
  if (choice < 165) {
    if (const Life* life = living()) world_[life->slot].nic().serve();
    return;
  }
  if (choice < 173) {
    if (Life* life = living()) make_region(*life);
    return;
  }
  if (choice < 180) return drop_region();
  if (choice < 186) return make_or_drop_queue();
  if (choice < 192) return rebind();
  if (choice < 193) return die();
  if (choice < 197) return tell();
  return revive();
}

// ---- steps ----

void Simulation::make_region(Life& life) {
  Region region;
  region.owner = &life;
  const bool segmented = random_.chance(20);
  const std::uint64_t count = segmented ? 2 + random_.below(3) : 1;
  std::vector<Segment> segments;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = random_.below(kWorldBytes - 1);
    const std::uint64_t length = 1 + random_.below(std::min<std::uint64_t>(kWorldBytes - offset, 24'000));
    const std::uint64_t begin = segmented ? offset : offset / kPageBytes * kPageBytes;
    const std::uint64_t end =
        segmented ? offset + length : (offset + length + kPageBytes - 1) / kPageBytes * kPageBytes;
    segments.push_back({address_of(life.real) + offset, length});
    // Segments that overlap would give one byte two places in one operation.
    for (const Piece& piece : region.pieces) {
      if (begin < piece.offset + piece.length && piece.offset < end) return;
    }
    region.pieces.push_back({begin, end - begin});
  }
  const std::uint8_t flags = random_.chance(15) ? kReadOnly : 0;
  if (random_.chance(70)) region.queue = make_queue(life, random_.chance(30) ? 2 : 256);
  if (region.queue == nullptr && random_.chance(50)) {
    for (Queue& queue : queues_) {
      if (queue.owner == &life && queue.queue != nullptr && !queue.source) region.queue = &queue;
    }
  }
  CompletionQueue* const queue = region.queue == nullptr ? nullptr : region.queue->queue;
  Node& node = world_[life.slot];
  const auto key = segmented ? node.nic().regions().register_segments(node.port(), segments, flags, queue)
                             : node.nic().register_region(node.port(), segments[0].address,
                                                          segments[0].length, flags, queue);
  if (!key.ok()) return fail("a registration was refused");
  region.key = key.value();
  regions_.push_back(region);
}

void Simulation::drop_region() {
  const Life* life = living();
  Region* region = life == nullptr ? nullptr : choose_region(*life);
  if (region == nullptr) return;
  Nic& nic = world_[life->slot].nic();
  const Errc expected = region->live ? Errc::ok : Errc::invalid_handle;
  if (nic.deregister(region->key).code() != expected)
    return fail("deregistration did not see its key's state");
  region->live = false;
  for (Operation* operation : open_) {
    if (operation->region == region) operation->may.add(Errc::invalid_handle);
  }
}

Queue* Simulation::make_queue(Life& life, std::uint32_t depth) {
  const auto made = world_[life.slot].nic().create_queue(depth, 0);
  if (!made.ok()) return nullptr;
  queues_.push_back({.queue = made.value(), .owner = &life});
  return &queues_.back();
}

void Simulation::make_or_drop_queue() {
  Queue& queue = queues_[random_.below(queues_.size())];
  if (queue.queue == nullptr || queue.source || !queue.owner->alive ||
      moving_[static_cast<std::size_t>(queue.owner->slot)])
    return;
  const bool named = std::any_of(regions_.begin(), regions_.end(),
                                 [&](const Region& r) { return r.live && r.queue == &queue; });
  // The events of registrations that lose their queue are not foretold here; completion_queue_test has them.
  if (named) return;
  if (!world_[queue.owner->slot].nic().destroy_queue(queue.queue).ok())
    return fail("destroy_queue miscounts references");
  queue.queue = nullptr;
}

void Simulation::make_line(Life& from) {
  Line line;
  line.from = &from;
  line.to = static_cast<int>(random_.below(kSlots));
  line.stranger = random_.chance(5);
  if (!random_.chance(10)) {
    line.queue = make_queue(from, 1 + static_cast<std::uint32_t>(random_.below(40)));
    line.queue->source = true;
  }
  line.endpoint = world_.endpoint(from.slot, line.to, line.queue == nullptr ? nullptr : line.queue->queue);
  if (line.stranger) line.endpoint->port = world_[from.slot].nic().open_port(8, 0, 100);
  lines_.push_back(std::move(line));
}

void Simulation::rebind() {
  Line* line = choose_line();
  if (line == nullptr || !line->endpoint->is_idle()) return;
  for (const Operation* operation : open_) {
    if (operation->line == line) return;
  }
  line->to = static_cast<int>(random_.below(kSlots));
  line->peer = nullptr;
  line->endpoint->forget_peer();
  line->endpoint->remote_nic_address = static_cast<std::uint32_t>(line->to);
}

void Simulation::die() {
  Life* life = living();
  if (life == nullptr || std::count_if(at_.begin(), at_.end(), [](const Life* l) { return l->alive; }) < 3)
    return;
  life->alive = false;
  world_[life->slot].alive_here = false;
  for (Operation* operation : open_) {
    if (operation->target == life) operation->may.add(Errc::unreachable);
    if (operation->line->from != life) continue;
    // Its end is not reported. What it wrote, or will have written when its frames are served, is not known.
    if (!writes(*operation)) occupy(*operation, -1);
    operation->over = true;
  }
  std::erase_if(open_, [](const Operation* operation) { return operation->over; });
}

void Simulation::tell() {
  const Life* listener = living();
  if (listener == nullptr) return;
  for (const auto& life : lives_) {
    const auto slot = static_cast<std::size_t>(listener->slot);
    if (life->alive || life->told_dead[slot] || life->slot == listener->slot) continue;
    life->told_dead[slot] = true;
    world_[listener->slot].nic().attendant().peer_died(
        {static_cast<wire::ProcessSlot>(life->slot), life->generation});
    return;
  }
}

void Simulation::revive() {
  Life*& place = at_[random_.below(kSlots)];
  if (place->alive) return;
  const int slot = place->slot;
  world_.revive(slot);
  lives_.push_back(std::make_unique<Life>(slot, place->generation + 1));
  place = lives_.back().get();
  place->told_dead.resize(kSlots);
  for (int i = 0; i < 2; ++i) make_region(*place);
  for (int i = 0; i < 2; ++i) make_line(*place);
}

bool Simulation::choose_target(Operation& operation, Request& request) {
  const Region& region = *operation.region;
  const std::uint64_t size = region.length();
  constexpr std::uint64_t kLengths[] = {0, 1, 2, 4, 8, 13, 64, 500, 4096, 20'000};
  std::uint64_t length = std::min(kLengths[random_.below(std::size(kLengths))], size);
  if (operation.op == Op::amo) {
    choose_command(operation, request);
    if (request.length > size) return false;
    length = request.length;
  }
  std::uint64_t from = random_.below(size - length + 1);
  if (operation.op == Op::amo && random_.chance(90)) from &= ~std::uint64_t{7};
  const std::uint64_t base =
      region.pieces.size() > 1 ? 0 : address_of(region.owner->real) + region.pieces[0].offset;
  request.remote_address = base + from;
  request.length = length;
  request.remote = region.key;
  Errc wrong = region.live ? Errc::ok : Errc::invalid_handle;
  const auto or_else = [&](bool holds, Errc code) {
    if (wrong == Errc::ok && holds) wrong = code;
  };
  if (random_.chance(3)) {
    request.remote.generation = static_cast<std::uint16_t>(request.remote.generation % kMaxGeneration + 1);
    wrong = Errc::invalid_handle;
  } else if (random_.chance(2)) {
    request.remote.index = random_.chance(50) ? 4000 : 60'000;
    wrong = Errc::invalid_handle;
  }
  or_else(operation.line->stranger, Errc::protection);
  or_else(writes(operation) && (region.key.flags & kReadOnly) != 0, Errc::permission);
  if (operation.op != Op::cq_write && random_.chance(3)) {
    request.remote_address =
        random_.chance(50) ? base + size - length + 1 : ~std::uint64_t{0} - random_.below(9);
    or_else(true, Errc::bounds);
  }
  if (operation.op == Op::put && random_.chance(15)) {
    const std::uint64_t at = random_.below(size) & ~std::uint64_t{7};
    if (at + 8 <= from || at >= from + length) {
      operation.flags |= kSyncFlag;
      request.sync_address = base + at;
      request.sync_value = random_.below(UINT64_MAX);
      or_else(at + 8 > size, Errc::bounds);
      if (wrong == Errc::ok) operation.bytes = pieces_of(region, at, 8);
    }
  }
  if (operation.op == Op::amo && wrong == Errc::ok) wrong = choose_words(operation, request, from);
  operation.was_ok = wrong == Errc::ok;
  operation.may = outcomes_of(operation, wrong);
  if (!operation.was_ok) operation.bytes.clear();
  if (operation.was_ok && operation.op != Op::cq_write && operation.op != Op::amo) {
    auto data = pieces_of(region, from, length);
    operation.bytes.insert(operation.bytes.begin(), data.begin(), data.end());
  }
  return available(*operation.target, operation.bytes, writes(operation));
}

void Simulation::choose_command(Operation& operation, Request& request) {
  constexpr AmoOp kOps[] = {AmoOp::bit_and,      AmoOp::bit_or, AmoOp::bit_xor,   AmoOp::swap,
                            AmoOp::and_xor,      AmoOp::add,    AmoOp::min,       AmoOp::max,
                            AmoOp::compare_swap, AmoOp::add,    AmoOp::float_add, AmoOp::float_min};
  unsigned flags = (random_.chance(50) ? kAmoFetch : 0u) | (random_.chance(40) ? kAmoNarrow : 0u);
  // What a lazy cache keeps to itself, memory does not show.
  if (random_.chance(30) && (!lazy_ || (flags & kAmoFetch) != 0)) flags |= kAmoCached;
  operation.command = amo::command(kOps[random_.below(std::size(kOps))], flags);
  request.command = operation.command;
  request.operand[0] = random_.below(UINT64_MAX);
  request.operand[1] = random_.below(UINT64_MAX);
  const std::uint64_t words = random_.chance(80) ? 1 : 2 + random_.below(100);
  request.length = words * amo::stride(operation.command);
}

// The words of an AMO that is allowed, what they are and what they become. Errors: alignment.
Errc Simulation::choose_words(Operation& operation, const Request& request, std::uint64_t from) {
  const std::uint8_t command = operation.command;
  const std::uint64_t width = amo::width(command);
  if (request.remote_address % width != 0) return Errc::alignment;
  for (std::uint64_t i = 0; i < amo::words(command, request.length); ++i) {
    const auto word = pieces_of(*operation.region, from + i * amo::stride(command), width);
    if (word.size() != 1 || word[0].offset % width != 0) return Errc::alignment;
    operation.bytes.push_back(word[0]);
    std::uint64_t old = 0;
    std::memcpy(&old, &operation.target->model[word[0].offset], width);
    const std::uint64_t now =
        width == 8
            ? amo::combined<std::uint64_t>(amo::op(command), old, request.operand[0], request.operand[1])
            : amo::combined<std::uint32_t>(amo::op(command), static_cast<std::uint32_t>(old),
                                           static_cast<std::uint32_t>(request.operand[0]),
                                           static_cast<std::uint32_t>(request.operand[1]));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&now);
    operation.wanted.insert(operation.wanted.end(), bytes, bytes + width);
    bytes = reinterpret_cast<const std::uint8_t*>(&old);
    if (amo::fetches(command)) operation.old.insert(operation.old.end(), bytes, bytes + width);
  }
  return Errc::ok;
}

void Simulation::post() {
  Line* const line = choose_line();
  if (line == nullptr) return;
  Life* const target = line->peer != nullptr ? line->peer : at_[static_cast<std::size_t>(line->to)];
  Region* const region = choose_region(*target);
  if (region == nullptr) return;

  Operation& operation = operations_.emplace_back();
  operation.id = static_cast<std::uint32_t>(operations_.size());
  operation.line = line;
  operation.target = target;
  operation.region = region;
  operation.op = random_.chance(20)   ? Op::cq_write
                 : random_.chance(25) ? Op::amo
                 : random_.chance(65) ? Op::put
                                      : Op::get;
  if (random_.chance(60)) operation.flags |= kLocalEvent;
  if (random_.chance(25)) operation.flags |= kGlobalEvent;
  if (random_.chance(40) && operation.op != Op::cq_write) operation.flags |= kRemoteEvent;
  if (random_.chance(25)) operation.flags |= kInOrder;
  if (random_.chance(10) && operation.op != Op::amo) operation.flags |= kBlockTransfer;
  Request request;
  request.op = operation.op;
  if (!choose_target(operation, request) || !room_for_events(operation)) {
    operations_.pop_back();
    return;
  }
  operation.buffer.resize(operation.op == Op::cq_write ? 0 : request.length);
  for (auto& byte : operation.buffer) byte = static_cast<std::uint8_t>(random_.below(256));
  if (operation.op == Op::put) {
    operation.wanted = operation.buffer;
    if ((operation.flags & kSyncFlag) != 0) {
      const auto* value = reinterpret_cast<const std::uint8_t*>(&request.sync_value);
      operation.wanted.insert(operation.wanted.end(), value, value + 8);
    }
  }
  request.flags = operation.flags;
  request.local_address = address_of(operation.buffer.data());
  request.cq_data = operation.id;
  request.context = &operation;
  if ((operation.flags & kReports) == 0 && random_.chance(40)) operation.ear = std::make_unique<Ear>();
  request.completion.listener = operation.ear.get();
  if (region->queue != nullptr) count_events(*region->queue);
  line->endpoint->remote_event_data = operation.id;

  Errc expected = Errc::ok;
  if ((operation.flags & kReports) != 0) {
    if (line->queue == nullptr)
      expected = Errc::invalid_param;
    else if (line->queue->queue->posts_open() == line->queue->queue->depth())
      expected = Errc::no_resource;
  }
  const Errc accepted = world_[line->from->slot].nic().post(*line->endpoint, request);
  // No process was found where the last one had died: the next post looks again.
  if (target->alive) line->peer = target;
  if (accepted != expected) {
    return fail(
        fmt::format("post {} returned {}, not {}", operation.id, errc_name(accepted), errc_name(expected)));
  }
  if (accepted != Errc::ok) {
    if (operation.ear != nullptr && operation.ear->times != 0) fail("a refused operation told its listener");
    operations_.pop_back();
    return;
  }
  occupy(operation, 1);
  open_.push_back(&operation);
}

bool Simulation::poll(Queue& queue) {
  if (!queue.owner->alive || moving_[static_cast<std::size_t>(queue.owner->slot)]) return false;
  Event event;
  const Errc found = world_[queue.owner->slot].nic().poll(*queue.queue, &event);
  if (found == Errc::not_done) return false;
  if (found == Errc::overrun) {
    check_overrun(queue);
  } else if (event.kind != EventKind::post) {
    heard_at_target(queue, event);
  } else {
    const auto completion = queue.queue->completed(event.transaction(), event.status);
    if (completion.ok())
      heard(*static_cast<Operation*>(completion.value().context), event);
    else
      fail("an event names a transaction that is not open");
  }
  return true;
}

}  // namespace orrery::nic::box
