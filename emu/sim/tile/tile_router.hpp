// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The Cray routers (SeaStar, Gemini, Aries), packet by packet: virtual cut-through with credits, one
// queue per output link and virtual channel, network interfaces with injection and ejection limits.
//
// A packet that arrives at a router is routed there and then (the loads of that moment decide among
// parallel links) and waits in the queue of its output; until it has left, it holds space in the buffer
// of the link and VC that it came by, and that space is returned upstream as credits when its last phit
// has gone. Of the VCs of one output that have credits, the oldest packet goes first (age-based, as
// Abts, "Cray XT4 and Seastar 3-D Torus Interconnect", describes the family).
//
// What a machine adds is its Fabric: wiring, link speeds, and route(). A Fabric has
//   static constexpr int kVcs;                      per link, all classes
//   std::uint32_t sites() const, ports() const, nics() const;   routers; links of a router; nodes on one
//   std::uint32_t grain() const;                    routers that must share a partition
//   Wire wire(site, port) const;                    where a link leads; unwired: peer == kNowhere
//   Tick serialise(port, flits) const;              time on the wire
//   Tick latency(port) const;                       header out of one router to header out of the next
//   std::uint32_t buffer(port) const;               flits of one VC's buffer at the far end
//   template <View> Hop route(const View&, Random&, Packet&) const;   next output; may write the packet
//   bool has_new_tables() const;                    routes that it has beside the usual ones, for lost links
//   void use_new_tables();
//   NicCost nic() const;
//   LinkErrors errors() const;
//   Tick advertise_every() const;                   loads told to the neighbourhood; 0: none wanted
//   std::uint32_t flits_for(payload), packets_in(payload) const;   of the machine's own packets
//
// Links out of service: at the start, or all at once in the run. What stood before them or comes to them is
// sent again by the interface that sent it. Routers fail likewise, with their nodes, which send and take
// nothing more. What they held or what comes to them is sent again too, if it is between two others. What is
// from or to their nodes is dropped; whose request or response it was has its outstanding slots back, as
// after a time-out (Faanes et al., section V: a discarded packet's initiating NIC times out). Where parallels
// take their place that is all, as the adaptive hardware masks them out. Where a fabric needs new tables it
// is quiesced as the Gemini paper says ("Gemini Fault Tolerance"; Faanes et al., section V, the same of
// Aries): interfaces send no more requests, responses go on until the network is empty, tables are changed,
// and after `Losses::reroute` requests go on.
//
// Threads: as BglRouter. 1. credits = far buffer - what is there - what is on its way. 2. A packet is in
// exactly one queue. 3. A request holds one of its node's outstanding slots until its response is back.
//
// LIMITATIONS: no head-of-line blocking between outputs of one buffer (the tiles' row and column buffers
// make it small); the crossbar is never the bottleneck; slow links are not stalled for by fast ones;
// a router tells its loads when something happens there, not when all is quiet; that the sender repeats what
// a lost link or router held, at once or when the network is released, is an assumption (papers leave it to
// software), and so is that it knows after one hop's time and not after a time-out; what a failed router has
// begun to send arrives whole, that from its own nodes too.
#pragma once

#include "emu/sim/engine/partition.hpp"
#include "emu/sim/failure/losses.hpp"
#include "emu/sim/quadrics/stream_cam.hpp"
#include "emu/sim/quadrics/stream_firmware.hpp"

#include <array>
#include <bit>
#include <string>
#include <vector>

namespace orrery::sim {

struct Wire {
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  std::uint32_t peer = kNowhere;  // router at the far end
  std::uint8_t back = 0;          // its link that leads back here
};
struct Hop {
  std::uint32_t port = 0;
  std::uint8_t vc = 0;
};
struct NicCost {
  std::uint32_t request_base = 0;  // ticks that a request keeps the injection side busy,
  double request_per_byte = 0;     // ... and for each byte of it
  // ... and where it is an operation by itself, shorter than a packet. Full packets count as parts of long
  // messages, which have one interval among so many that it does not show.
  std::uint32_t put_interval = 0, get_interval = 0;
  std::uint32_t response = 0;    // ticks that sending a response keeps it busy
  std::uint32_t eject_base = 0;  // ticks that a packet keeps the ejection side busy
  double eject_per_byte = 0;
  std::uint32_t latency_in = 0;      // node to router
  std::uint32_t latency_out = 0;     // router to node, after the last phit
  std::uint32_t outstanding = 0;     // requests without response; 0: no limit and no responses
  std::uint32_t inject_flits = 256;  // buffer between interface and router
  std::uint8_t response_flits = 0;   // of the response to one packet; 0: none
  std::uint8_t get_flits = 3;        // of a get's request for one packet of data
  std::uint8_t get_saves = 2;        // flits that a response with data is shorter than a request with it
  std::uint32_t cam_entries = 0;     // messages under way that a receiver tells apart; 0: any number
  std::uint32_t cam_swap = 15000;    // ticks to put another one into a full CAM; no paper prints it: 1.5 us
  std::uint32_t firmware = 0;  // ticks of a receiver's processor for a message; needs a CAM. 0: not simulated
};

// What a link does to bits. Every hop checks a packet's CRC (16 bits on Gemini and SeaStar); a packet that
// fails is sent again by the near end, which keeps it until it is acknowledged: it learns of the failure one
// round trip later, and what would have followed waits (the window goes back). So errors cost time, never
// packets.
struct LinkErrors {
  double bit_error_rate = 0;     // of each bit, 0 to 1e-4; errors are independent
  std::uint32_t flit_bits = 24;  // on the wire
};

inline constexpr std::uint32_t kFullPayload = 64;  // bytes of a full packet, on each of them

template <typename Fabric>
class TileRouter {
 public:
  static constexpr int kHorizonLog2 = 13;
  static constexpr int kVcs = Fabric::kVcs;
  static constexpr std::uint32_t kMaxPorts = 56;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit TileRouter(Fabric fabric, std::uint64_t seed);

  Node sites() const { return fabric_.sites(); }
  Node nodes() const { return fabric_.sites() * fabric_.nics(); }
  Node partition_grain() const { return fabric_.grain(); }
  Tick min_cross_delay() const { return cross_delay_; }

  void start(Partition& part, Node site);
  void apply(Partition& part, const Event& event, Tick now);
  void arbitrate(Partition& part, Node site, Tick now);
  void prefetch(const Partition&, const Event& event) const {
    __builtin_prefetch(&sites_[event.node()]);
    __builtin_prefetch(&outputs_[std::size_t{event.node()} * ports_ + event.slot() % ports_]);
  }

  std::uint64_t links() const { return links_; }
  const Fabric& fabric() const { return fabric_; }
  void keep_link_busy() { link_busy_.assign(std::size_t{sites()} * fabric_.ports(), 0); }
  const std::vector<std::uint32_t>& link_busy() const { return link_busy_; }
  std::size_t bytes() const {
    return sites_.capacity() * sizeof(Site) + outputs_.capacity() * sizeof(Output) +
           nics_.capacity() * sizeof(Nic) + wires_.capacity() * sizeof(Wire) +
           advertised_.capacity() * sizeof(std::uint16_t) + cam_bytes();
  }

  // Adds how many of each VC's credits are out, over all links in service.
  void look(std::vector<VcUse>* vcs) const;

  // What route() may look at: the router it is asked for, and what its neighbourhood advertised.
  class View {
   public:
    View(const TileRouter& router, Node site) : router_(router), site_(site), out_(router.sites_[site].out) {}
    Node site() const { return site_; }
    // Flits waiting for `port`, plus those on their way or in the far buffer.
    std::uint32_t load(std::uint32_t port) const { return router_.load_of(site_, port); }
    // The load of another router's link as it last told its partition.
    std::uint32_t advertised(Node site, std::uint32_t port) const {
      return router_.advertised_[std::size_t{site} * router_.fabric_.ports() + port];
    }
    bool in_service(std::uint32_t port) const { return !(out_ >> port & 1); }
    // Of any router.
    bool in_service(Node site, std::uint32_t port) const { return router_.in_service(site, port); }
    bool all_in_service() const { return !router_.some_lost_; }

   private:
    const TileRouter& router_;
    Node site_;
    std::uint64_t out_;
  };
  // Before the run. REQUIRES: wired links; without them the fabric has routes, with its new tables if it has
  // some.
  void plan(Losses losses);
  // For the engine: what happens to the network as a whole at one tick, when all earlier events are done.
  // Tick of the first such interlude, kNever for none.
  Tick first_interlude() const { return losses_.links.empty() || losses_.at == 0 ? kNever : losses_.at; }
  // What is due at `now`; returns the tick of the next one. `in_flight`: packets of all partitions.
  Tick interlude(Tick now, const std::vector<std::unique_ptr<Partition>>& parts, std::uint64_t in_flight);
  bool holds_requests(Tick now) const { return now < hold_until_; }
  const Quiesce& quiesce() const { return quiesce_; }
  // After a deadlock: outputs that wait for each other's buffers, in a ring.
  std::vector<std::string> find_cycle(const std::vector<std::unique_ptr<Partition>>& parts) const;

 private:
  enum Kind : std::uint8_t { kArrive, kDone, kCredit, kWake, kNicCredit, kEjected, kReturned, kLook };
  static constexpr std::uint64_t kFailed = std::uint64_t{1} << 63;  // of Site::out: the router itself
  static constexpr Tick kDrainCheck = 1000;  // between looks whether the network is empty

  struct Site {
    std::uint64_t idle = 0;     // outputs not sending
    std::uint64_t waiting = 0;  // outputs with a packet queued
    std::uint64_t out = 0;      // links out of service, or never there
    std::uint32_t arrived = kNone;
    std::uint32_t refill = 0;  // interfaces to serve
    Random random;
    Tick stamp = kNever;
    Tick told = 0;  // when its loads were advertised last
  };
  struct Output {
    std::uint32_t head[kVcs];
    std::uint32_t tail[kVcs];
    std::uint16_t credits[kVcs];
    std::uint16_t capacity;
    std::uint16_t queued = 0;   // flits
    std::uint8_t busy_vcs = 0;  // VCs with a packet queued
  };
  struct Nic {
    std::uint32_t responses = kNone, responses_tail = kNone;
    std::uint32_t before = kNone;  // the last response due before those of the tick `answered`
    Tick answered = kNever;
    std::uint32_t pending = kNone;   // a request that waits for buffer space or an outstanding slot
    std::uint32_t returned = kNone;  // packets that a lost link held, to be sent again
    std::uint32_t space = 0;         // flits free in the injection buffer
    std::uint32_t outstanding = 0;
    Tick free_at = 0;
    bool asleep = false;  // a wake event for free_at is under way
  };

  void mark(Partition& part, Site& site, Node id, Tick now) {
    if (site.stamp == now) return;
    site.stamp = now;
    part.mark(id);
  }
  std::uint32_t load_of(Node site, std::uint32_t port) const {
    const Output& out = outputs_[std::size_t{site} * ports_ + port];
    std::uint32_t load = out.queued;
    if (port < fabric_.ports())
      for (int v = 0; v < kVcs; ++v) load += out.capacity - out.credits[v];
    return load;
  }
  std::size_t cam_bytes() const {
    std::size_t sum = cams_.capacity() * sizeof(StreamCam) + firmwares_.capacity() * sizeof(StreamFirmware);
    for (const StreamCam& cam : cams_) sum += cam.bytes();
    for (const StreamFirmware& firmware : firmwares_) sum += firmware.bytes();
    return sum;
  }
  bool in_service(Node site, std::uint32_t port) const { return !(sites_[site].out >> port & 1); }
  bool failed(Node site) const { return sites_[site].out & kFailed; }
  bool node_failed(Node node) const { return failed((node & Fabric::kNodeMask) / fabric_.nics()); }
  void take_out();
  // Requests to failed nodes that have not left their interface.
  void give_up_pending(const std::vector<std::unique_ptr<Partition>>& parts);
  // Packets that interfaces hold back.
  std::uint64_t held(const std::vector<std::unique_ptr<Partition>>& parts) const;
  void advertise(Site& site, Node id, Tick now);
  // How much longer a transfer takes for being repeated.
  Tick repeats(Partition& part, Site& site, std::uint32_t port, std::uint32_t flits, Tick ticks);
  // How long the receive side of a packet's node stands still before it takes the packet.
  // `ticks`: how long it takes it then.
  Tick receive_stall(Partition& part, const Packet& packet, Tick ticks, Tick now);
  // The same for its firmware. `swap`: the CAM asks for it.
  Tick firmware_stall(const Packet& packet, bool swap, Tick ticks, Tick now);
  void route_arrivals(Partition& part, Node site);
  void serve_nic(Partition& part, Node site, std::uint32_t nic, Tick now);
  void send(Partition& part, Node site, std::uint32_t port, Tick now);
  // Gives back the space that a packet holds at a router, from `at` on.
  void free_space(Partition& part, Node site, const Packet& packet, Tick at);
  // What waits for lost links goes back to its senders.
  void return_lost(Partition& part, Node site, Tick now);
  void return_queue(Partition& part, Node site, std::uint32_t port, Tick now);
  // A packet that went with a link or a router: back to its sender; if one of its ends has failed it is
  // dropped, by the interface that waits for it if there is one.
  void lose(Partition& part, std::uint32_t index, Tick now);
  // All that a failed router holds.
  void bury(Partition& part, Node site, Tick now);
  void take_back(Partition& part, Nic& nic, std::uint32_t index);
  void eject(Partition& part, Node site, std::uint32_t index, Tick now);
  // A put's data goes with its request, a get's with its response.
  static bool carries_data(const Packet& packet) {
    return ((packet.flags & kGet) != 0) == ((packet.flags & kResponse) != 0);
  }
  // Of the machine's own packets; a put's response has no payload to tell.
  std::uint32_t packets_of(const Packet& packet) const {
    return (packet.flags & kResponse) && !(packet.flags & kGet)
               ? std::uint32_t{packet.flits} / cost_.response_flits
               : fabric_.packets_in(packet.payload);
  }
  std::uint8_t flits_of(const Packet& packet) const {
    const std::uint32_t packets = fabric_.packets_in(packet.payload);
    return static_cast<std::uint8_t>(!carries_data(packet) ? cost_.get_flits * packets
                                     : !(packet.flags & kResponse)
                                         ? fabric_.flits_for(packet.payload)
                                         : fabric_.flits_for(packet.payload) - cost_.get_saves * packets);
  }
  // Ticks that a packet keeps the injection side of an interface busy.
  Tick injection_ticks(const Packet& packet) const {
    const std::uint32_t packets = packets_of(packet);
    return carries_data(packet)
               ? cost_.request_base * packets + static_cast<Tick>(cost_.request_per_byte * packet.payload)
               : Tick{cost_.response} * packets;
  }
  // The same of one that the workload hands over.
  Tick request_ticks(const Packet& packet) const {
    const bool by_itself = packet.payload < kFullPayload && !(packet.flags & kFollows);
    const std::uint32_t interval = packet.flags & kGet ? cost_.get_interval : cost_.put_interval;
    return injection_ticks(packet) + (by_itself ? interval : 0);
  }
  void queue_response(Partition& part, Nic& nic, std::uint32_t index, Tick now);

  Fabric fabric_;
  NicCost cost_;
  std::uint32_t ports_;  // links and ejection ports of a router
  Tick cross_delay_ = kNever;
  Tick advertise_every_ = 0;
  std::uint64_t links_ = 0;
  std::vector<Site> sites_;
  std::vector<Output> outputs_;
  std::vector<Nic> nics_;
  std::vector<StreamCam> cams_;            // by node; empty where receivers have none
  std::vector<StreamFirmware> firmwares_;  // by node; empty where they are not simulated
  std::vector<Wire> wires_;
  std::vector<std::uint16_t> advertised_;
  std::vector<std::uint32_t> link_busy_;
  // Links out of service. Written between the engine's windows only.
  Losses losses_;
  Quiesce quiesce_;
  bool some_lost_ = false;
  Tick hold_until_ = 0;
  // That a packet of so many flits fails its CRC; empty without errors.
  std::vector<std::uint32_t> error_chance_;
};

}  // namespace orrery::sim
