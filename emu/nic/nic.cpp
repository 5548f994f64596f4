// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/nic.hpp"

#include "emu/base/log.hpp"
#include "emu/clock/look_source.hpp"
#include "emu/nic/target/amo_cache.hpp"

namespace orrery::nic {

Nic::Nic(HostServices& services, NicView view, wire::ProcessSlot self, const Options& options)
    : pending_(view, services.clock() != nullptr || options.faults.any(), services.wait_budget().spins == 0),
      services_(services),
      self_(self),
      options_(options),
      clock_(services.clock()),
      faults_(options.faults.any() && clock_ == nullptr
                  ? std::make_unique<FaultUnit>(options.faults, options.fault_pe, error_state(view).faults)
                  : nullptr),
      errors_(clock_),
      arena_(view),
      ports_(errors_),
      queues_(view, arena_),
      peers_(services, self),
      hot_(services, options.adopt_after),
      counters_(view),
      record_queues_(view, {[this](std::uint32_t depth) { return create_queue(depth, 0); },
                            [this](CompletionQueue* queue) { return destroy_queue(queue); },
                            [this](std::uint64_t n) { return arena_.take(n, Arena::Use::records); },
                            [this](std::uint64_t at, std::uint64_t n) {
                              arena_.give_back(at, n, Arena::Use::records);
                            }}),
      attendant_(services, pending_, peers_, transport_),
      regions_(services, view, self, arena_,
               {.drain_limit_ns = options.drain_limit_ns,
                .may_adopt = options.may_adopt,
                .eager_adoption = options.eager_adoption},
               {.await_frames = [this] { transport_.await_application(); },
                .take_frames = [this] { (void)transport_.poll_requests(true); },
                .flush_amo_cache = [this](std::uint64_t begin,
                                          std::uint64_t end) { transport_.flush_amo_cache(begin, end); },
                .removed = [this] { collective_.settle(); }}),
      transport_(services, pending_, self, peers_, ports_, regions_, hot_,
                 clock_ == nullptr && faults_ == nullptr,
                 {.to_engine = [this](const wire::PacketHeader& header) { return collective_.take(header); },
                  .note_datagram_from =
                      [this](const wire::PacketHeader& header) { datagrams_.note_source(header); }}),
      router_(services, pending_, self, transport_, regions_, hot_, attendant_,
              {.bte_crossover = options.bte_crossover, .grants = clock_ == nullptr && faults_ == nullptr}),
      timed_(clock_ != nullptr ? std::make_unique<TimedOps>(*clock_, self, router_, regions_, attendant_)
                               : nullptr),
      delays_(services, view, transport_, router_),
      deferrals_(timed_.get(), faults_.get(), errors_, delays_),
      initiator_(services, view, pending_, peers_, transport_, hot_, router_, deferrals_,
                 clock_ != nullptr || faults_ != nullptr, attendant_),
      triggered_(services, pending_, self, peers_, router_, initiator_,
                 clock_ == nullptr && faults_ == nullptr),
      suspension_(services, view, peers_, ports_, regions_.table(),
                  {pending_, transport_, router_.bte(), deferrals_}, options.drain_limit_ns, attendant_),
      waits_(services, view, counters_, attendant_),
      datagrams_(
          services, view,
          {.connect = [this](ProcessName process) { return peers_.connect(process); },
           .send = [this](
                       Peer& peer, const wire::PacketHeader& header, std::span<const std::byte> data,
                       const Completion& told) { return transport_.send_packet(peer, header, data, told); },
           .is_cut = [this](std::uint32_t from,
                            std::uint32_t to) { return faults_ != nullptr && faults_->is_cut(from, to); },
           .progress = [this] { (void)attendant_.progress(clock::free_source(&pending_)); }}),
      channels_(services, view),
      messages_(regions_, initiator_, attendant_),
      collective_({services, pending_, self, peers_, ports_, transport_, regions_, attendant_, faults_.get(),
                   options.collective_by_packets}) {
  look_after_units();
  if (clock_ != nullptr) {
    clock_->set_look([](void* engine) { static_cast<CollectiveEngine*>(engine)->progress_in_turn(); },
                     &collective_);
  }
  if (options.faults.any() && clock_ != nullptr)
    log::error("ORRERY_FAULT: faults happen in raw time only; under a machine's clock there are none");
  AmoCache(view).set_up(options_.amo_cache_entries, options_.amo_cache_mode);
  // Accesses of our own threads to our own memory are announced like those of peers.
  view.service().sources[self_ / 64].fetch_or(1ull << self_ % 64, std::memory_order_seq_cst);
}

// The units but for the frames: a new one is a row.
void Nic::look_after_units() {
  using Share = Attendant::Share;
  using Look = TriggerUnit::Look;
  TriggerUnit& triggers = triggered_.unit();
  attendant_.look_after({.peer_died = [this](ProcessName) { channels_.take_back_from_the_dead(); }});
  attendant_.look_after({.peer_died = [this](ProcessName) {
    record_queues_.repair([this](std::uint16_t slot, std::uint32_t generation) {
      return services_.alive({slot, generation});
    });
  }});
  attendant_.look_after(
      {.poll = [&triggers] { return triggers.run(Look::at_signals); },
       .serve = [&triggers] { return triggers.run(Look::at_counts) ? Share::busy : Share::idle; },
       .last_look = [&triggers] { return triggers.run(Look::at_counts); },
       .peer_died = [&triggers](ProcessName) { triggers.run(Look::at_counts); }});
  attendant_.look_after({.poll =
                             [this] {
                               if (!collective_.active()) return false;
                               collective_.progress();
                               return true;
                             },
                         .in_turn = [this] { collective_.progress_in_turn(); },
                         .serve = [this] { return collective_.serve() ? Share::owed : Share::idle; },
                         .last_look = [this] { return collective_.serve(); },
                         .peer_died = [this](ProcessName process) { collective_.peer_died(process); }});
  attendant_.look_after({.poll = [this] { return delays_.any() && delays_.run(); },
                         .serve = [this] { return delays_.run() ? Share::owed : Share::idle; }});
  attendant_.look_after({.serve = [this] { return suspension_.attend() ? Share::owed : Share::idle; }});
  attendant_.look_after({.serve = [this] {
    regions_.adopt_wanted();
    return Share::idle;
  }});
}

Nic::~Nic() { close(); }

void Nic::end() {
  router_.bte().end();
  // Under a clock an end has its place in the order of time.
  if (clock_ == nullptr) transport_.send_the_rest();
  close();
}

void Nic::close() {
  router_.bte().end();
  pending_.view.header().stage.store(Stage::closed, std::memory_order_release);
}

void Nic::close_port(Port* port) {
  collective_.forget(*port);
  ports_.close(port);
}

Status Nic::destroy_queue(CompletionQueue* queue) {
  // A peer that is stalled in the middle of an access may raise one more event: then the queue's ring stays.
  return queues_.destroy(queue, [this](std::uint32_t index) { return regions_.forget_queue(index); });
}

}  // namespace orrery::nic
