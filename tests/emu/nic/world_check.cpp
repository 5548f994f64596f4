// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What has to hold: the checking half of the simulation.
#include "tests/emu/nic/world_model.hpp"

#include <algorithm>

namespace orrery::nic::box {

namespace {

template <typename Visit>
void for_each_byte(const Operation& operation, Visit visit) {
  std::size_t i = 0;
  for (const Piece& piece : operation.bytes) {
    for (std::uint64_t k = 0; k < piece.length; ++k) visit(piece.offset + k, i++);
  }
}

bool tells_target(const Operation& operation) {
  return operation.op == Op::cq_write || (operation.flags & kRemoteEvent) != 0;
}

int events_due(const Operation& operation) {
  return ((operation.flags & kLocalEvent) != 0 ? 1 : 0) + ((operation.flags & kGlobalEvent) != 0 ? 1 : 0) -
         operation.local_events - operation.global_events;
}

}  // namespace

void Simulation::fail(const std::string& what) {
  if (failure_.empty()) failure_ = fmt::format("step {}: {}", step_, what);
}

Life* Simulation::living() {
  Life* life = at_[random_.below(at_.size())];
  return life->alive && !moving_[static_cast<std::size_t>(life->slot)] ? life : nullptr;
}

Line* Simulation::choose_line() {
  Line& line = lines_[random_.below(lines_.size())];
  return line.from->alive && !moving_[static_cast<std::size_t>(line.from->slot)] ? &line : nullptr;
}

Region* Simulation::choose_region(const Life& owner) {
  std::vector<Region*> live;
  std::vector<Region*> all;
  for (Region& region : regions_) {
    if (region.owner != &owner) continue;
    all.push_back(&region);
    if (region.live) live.push_back(&region);
  }
  const auto& from = live.empty() || random_.chance(10) ? all : live;
  return from.empty() ? nullptr : from[random_.below(from.size())];
}

Outcomes Simulation::outcomes_of(const Operation& operation, Errc base) const {
  const Life& target = *operation.target;
  if (target.alive) return {base};
  if (target.told_dead[static_cast<std::size_t>(operation.line->from->slot)]) return {Errc::unreachable};
  return {base, Errc::unreachable};
}

// A source queue that overflows loses events, which is its owner's doing and not tried here.
bool Simulation::room_for_events(const Operation& operation) const {
  const Queue* queue = operation.line->queue;
  if (queue == nullptr) return true;
  // One more for an error that was not asked for.
  int due = std::max(events_due(operation), 1);
  for (const Operation* other : open_) {
    if (other->line->queue == queue) due += std::max(events_due(*other), 1);
  }
  const bool full = queue->queue->posts_open() == queue->queue->depth();
  return full || static_cast<std::uint64_t>(due) <= queue->queue->view().capacity;
}

std::vector<Piece> Simulation::pieces_of(const Region& region, std::uint64_t from, std::uint64_t length) {
  std::vector<Piece> pieces;
  for (const Piece& piece : region.pieces) {
    if (length == 0) break;
    if (from >= piece.length) {
      from -= piece.length;
      continue;
    }
    const std::uint64_t bytes = std::min(length, piece.length - from);
    pieces.push_back({piece.offset + from, bytes});
    length -= bytes;
    from = 0;
  }
  return pieces;
}

bool Simulation::available(const Life& life, const std::vector<Piece>& bytes, bool writes) {
  for (const Piece& piece : bytes) {
    for (std::uint64_t i = 0; i < piece.length; ++i) {
      const int busy = life.busy[piece.offset + i];
      if (busy < 0 || (writes && busy > 0)) return false;
    }
  }
  return true;
}

void Simulation::occupy(Operation& operation, int change) {
  const int step = changes_memory(operation.op) ? -change : change;
  for_each_byte(operation, [&](std::uint64_t at, std::size_t) {
    operation.target->busy[at] = static_cast<std::int16_t>(operation.target->busy[at] + step);
  });
}

bool Simulation::in_place(const Operation& operation) const {
  bool all = true;
  for_each_byte(operation, [&](std::uint64_t at, std::size_t i) {
    all = all && operation.target->real[at] == operation.wanted[i];
  });
  return all;
}

// Its initiator hears of `operation`.
void Simulation::heard(Operation& operation, const Event& event) {
  int& count = event.global() ? operation.global_events : operation.local_events;
  ++count;
  const bool asked = (operation.flags & (event.global() ? kGlobalEvent : kLocalEvent)) != 0;
  const bool unasked_error = (operation.flags & kReports) == 0 && event.status != Errc::ok && !event.global();
  if (count > 1 || (!asked && !unasked_error)) {
    return fail(fmt::format("operation {} raised an event that was not asked for", operation.id));
  }
  if (event.user_value() != operation.line->endpoint->local_event_data)
    return fail("an event has a foreign user value");
  if (!operation.may.has(event.status)) {
    return fail(fmt::format("operation {} ended in {}", operation.id, errc_name(event.status)));
  }
  if ((operation.flags & kReports) == 0) {
    if (operation.over && operation.status == Errc::ok) fail("a silent operation succeeded and failed");
    if (!operation.over && operation.ear == nullptr) finish(operation, event.status);
    return;
  }
  if (operation.status != Errc::not_done && operation.status != event.status) {
    return fail(fmt::format("operation {} says two things", operation.id));
  }
  operation.status = event.status;
  if (events_due(operation) == 0) finish(operation, event.status);
}

// Its target hears of an operation.
void Simulation::heard_at_target(Queue& queue, const Event& event) {
  if (event.data == 0 || event.data > operations_.size()) return fail("an event names no operation");
  Operation& operation = operations_[event.data - 1];
  const EventKind kind = operation.op == Op::cq_write ? EventKind::cq_write : EventKind::remote;
  if (event.kind != kind || !tells_target(operation) || operation.region->queue != &queue) {
    return fail(
        fmt::format("operation {} raised an event at a target that it should not raise", operation.id));
  }
  if (++operation.remote_events > 1)
    return fail(fmt::format("operation {} told its target twice", operation.id));
  if (!operation.may.has(Errc::ok) ||
      (operation.over && operation.status != Errc::ok && operation.status != Errc::not_done &&
       operation.status != Errc::unreachable)) {
    return fail(fmt::format("operation {} failed and told its target all the same", operation.id));
  }
  if (operation.over || !changes_memory(operation.op)) return;
  if (!in_place(operation))
    fail(fmt::format("operation {} told its target before its data was there", operation.id));
  if ((operation.flags & kInOrder) == 0) return;
  for (const Operation* earlier : open_) {
    if (earlier->line == operation.line && earlier->id < operation.id && changes_memory(earlier->op) &&
        earlier->may.only(Errc::ok) && !in_place(*earlier)) {
      fail(fmt::format("operation {} overtook {}", operation.id, earlier->id));
    }
  }
}

// How many events of `queue` may be on their way or in it.
void Simulation::count_events(Queue& queue) {
  std::uint64_t not_taken = 0;
  for (const Operation& operation : operations_) {
    if (tells_target(operation) && operation.region->queue == &queue && operation.remote_events == 0 &&
        operation.may.has(Errc::ok)) {
      ++not_taken;
    }
  }
  queue.most = std::max(queue.most, not_taken);
}

void Simulation::check_overrun(Queue& queue) {
  if (queue.source) return fail("a source queue lost events");
  if (queue.most <= queue.queue->view().capacity) fail("a queue that had room lost an event");
  queue.overrun = true;
}

// `status` not_done: it is over, and its outcome is not told.
void Simulation::finish(Operation& operation, Errc status) {
  operation.over = true;
  operation.status = status;
  std::erase(open_, &operation);
  occupy(operation, -1);
  if (changes_memory(operation.op)) {
    bool right = true;
    Life& target = *operation.target;
    for_each_byte(operation, [&](std::uint64_t at, std::size_t i) {
      const std::uint8_t now = target.real[at];
      right = right && (now == operation.wanted[i] || (status != Errc::ok && now == target.model[at]));
      target.model[at] = now;
    });
    if (!right) fail(fmt::format("operation {} left wrong data", operation.id));
  }
  if (status == Errc::ok &&
      !std::equal(operation.old.begin(), operation.old.end(), operation.buffer.begin())) {
    fail(fmt::format("operation {} found wrong values", operation.id));
  }
  if (operation.op == Op::get && status == Errc::ok) {
    bool right = true;
    for_each_byte(operation, [&](std::uint64_t at, std::size_t i) {
      right = right && operation.buffer[i] == operation.target->model[at];
    });
    if (!right) fail(fmt::format("operation {} brought wrong data", operation.id));
  }
}

void Simulation::settle_silent() {
  const std::vector<Operation*> open = open_;
  for (Operation* operation : open) {
    if ((operation->flags & kReports) != 0 || operation->ear != nullptr ||
        !operation->line->endpoint->is_idle())
      continue;
    finish(*operation, operation->may.only(Errc::ok) ? Errc::ok : Errc::not_done);
  }
}

// What listeners were told since the last look. An operation that has one ends with it.
void Simulation::hear_listeners() {
  const std::vector<Operation*> open = open_;
  for (Operation* operation : open) {
    if (operation->ear == nullptr || operation->ear->times == 0) continue;
    if (!operation->may.has(operation->ear->status))
      fail(
          fmt::format("operation {} told its listener {}", operation->id, errc_name(operation->ear->status)));
    finish(*operation, operation->ear->status);
  }
}

// Every one that lives hears of every death.
void Simulation::tell_all() {
  for (const auto& life : lives_) {
    if (life->alive) continue;
    for (const Life* listener : at_) {
      const auto slot = static_cast<std::size_t>(listener->slot);
      if (!listener->alive || life->told_dead[slot] || listener->slot == life->slot) continue;
      life->told_dead[slot] = true;
      world_[listener->slot].nic().attendant().peer_died(
          {static_cast<wire::ProcessSlot>(life->slot), life->generation});
    }
  }
}

void Simulation::let_all_end() {
  // Each round moves every lane by several frames; operations of 20,000 bytes have six.
  for (int round = 0; round < 2'000 && failure_.empty(); ++round) {
    const bool done = open_.empty();
    // Again in each: while a PE that is served moves its pages, others take steps, and may die.
    tell_all();
    world_.serve_all();
    for (Queue& queue : queues_) {
      while (queue.queue != nullptr && failure_.empty() && poll(queue)) {
      }
    }
    hear_listeners();
    settle_silent();
    if (done && open_.empty()) return;  // such steps post, too
  }
  if (failure_.empty()) fail(fmt::format("operation {} never ended", open_.front()->id));
}

void Simulation::check_all() {
  for (const auto& life : lives_) {
    for (std::uint64_t at = 0; at < kWorldBytes; ++at) {
      if (life->busy[at] == 0 && life->real[at] != life->model[at]) {
        return fail(fmt::format("byte {} of process {} changed on its own", at, life->slot));
      }
    }
  }
  for (const Operation& operation : operations_) {
    if (operation.ear != nullptr && operation.ear->times > 1)
      return fail(fmt::format("operation {} told its listener {} times", operation.id, operation.ear->times));
    const Queue* queue = operation.region->queue;
    const bool heard_all =
        queue == nullptr || queue->queue == nullptr || queue->overrun || !operation.target->alive;
    if (operation.over && operation.status == Errc::ok && tells_target(operation) && !heard_all &&
        operation.remote_events == 0) {
      return fail(fmt::format("operation {} never told its target", operation.id));
    }
  }
  for (const Line& line : lines_) {
    if (!line.from->alive) continue;
    if (!line.endpoint->is_idle()) return fail("an endpoint still counts operations");
    if (line.queue != nullptr && line.queue->queue->posts_open() != 0) {
      return fail("a queue still counts transactions");
    }
  }
}

}  // namespace orrery::nic::box
