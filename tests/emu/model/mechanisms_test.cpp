// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Mechanisms that a machine file may give an operation, each against the arithmetic of its own constants.
#include "emu/model/collective.hpp"
#include "emu/model/explain.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/measure.hpp"
#include "emu/model/quote.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace orrery::model {
namespace {

const Machine& aries() {
  static const BuiltMachine built = build_machine("aries");
  return *built.machine;
}

Picos stage(const char* name) { return stage_time(aries().description, std::string("stage.") + name); }

Quote alone(Op op, NodeId dst, std::uint64_t bytes) {
  return quote(aries().pricing, {.op = op, .src = 0, .dst = dst, .bytes = bytes}, nullptr);
}

// A state of a quiet Aries.
struct QuietAries {
  explicit QuietAries(LinkState::Kind kind) {
    const std::size_t bytes = LinkState::bytes_needed(aries().pricing, kind);
    memory.reset(new std::byte[bytes + 64]);
    auto* const base =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.get()) + 63) / 64 * 64);
    state = LinkState::create({base, bytes}, aries().pricing, kind).value();
  }
  std::unique_ptr<std::byte[]> memory;
  LinkState state;
};

TEST(Store, AProcessorIsBusyForEachByteThatItStoresItself) {
  const Picos a_byte = stage("store_byte");
  EXPECT_EQ(alone(Op::fma_put, 4, 0).cpu_busy, stage("issue"));
  EXPECT_EQ(alone(Op::fma_put, 4, 4096).cpu_busy, stage("issue") + a_byte * 4096);
  // A block transfer is a descriptor, whatever its size.
  EXPECT_EQ(alone(Op::bte_put, 4, 1 << 20).cpu_busy, stage("issue"));
  EXPECT_EQ(alone(Op::bte_get, 4, 1 << 20).cpu_busy, stage("issue"));
  // The data goes out as it is stored: once, not stored first and then sent.
  EXPECT_EQ(alone(Op::fma_put, 4, 65536).data_at - alone(Op::fma_put, 4, 4096).data_at,
            a_byte * (65536 - 4096));
}

TEST(Store, AProcessorIsBusyForTheRequestsOfAGet) {
  const Picos a_byte = stage("fetch_byte");
  ASSERT_GT(a_byte, stage("store_byte"));
  EXPECT_EQ(alone(Op::fma_get, 4, 4096).cpu_busy, stage("issue") + a_byte * 4096);
  // Data comes while the last requests go.
  EXPECT_EQ(alone(Op::fma_get, 4, 65536).data_at - alone(Op::fma_get, 4, 4096).data_at,
            a_byte * (65536 - 4096));
  EXPECT_EQ(alone(Op::fma_get, 4, 65536).remote_event_at - alone(Op::fma_get, 4, 4096).remote_event_at,
            a_byte * (65536 - 4096));
}

TEST(Store, SomewhereTheBlockEngineIsTheBetterChoice) {
  const auto fma_sooner = [](std::uint64_t bytes) {
    return alone(Op::fma_put, 4, bytes).data_at < alone(Op::bte_put, 4, bytes).data_at;
  };
  EXPECT_TRUE(fma_sooner(1024));
  EXPECT_FALSE(fma_sooner(16384));
  // Of a stream sooner, for the engine starts the next while the last is under way.
  const auto rate = [](const char* op, int bytes) {
    return *measure(aries(), "bandwidth(" + std::string(op) + ", " + std::to_string(bytes) + ", 1)");
  };
  EXPECT_GT(rate("fma_put", 1024), rate("bte_put", 1024));
  EXPECT_LT(rate("fma_put", 4096), rate("bte_put", 4096));
}

TEST(Store, ManyCoresFillTheInterfaceThatOneDoesNot) {
  EXPECT_NEAR(*measure(aries(), "bandwidth(fma_put, 1048576, 1)"), 3.65, 0.04);
  EXPECT_NEAR(*measure(aries(), "bandwidth(fma_put, 1048576, 8)"), 10, 0.1);
}

// One descriptor after the other: each starts when the data of the last has gone, whichever process posted
// it.
TEST(Serial, DescriptorsOfOneNicFollowEachOther) {
  for (const auto kind : {LinkState::Kind::exact, LinkState::Kind::decayed}) {
    QuietAries network(kind);
    const auto post = [&](NodeId dst) {
      return quote(aries().pricing, {.op = Op::bte_put, .src = 0, .dst = dst, .bytes = 16384},
                   &network.state);
    };
    const Picos transfer = aries().pricing.ops[static_cast<std::size_t>(Op::bte_put)].host_lone(16384);
    EXPECT_EQ(post(4).waited, Picos{});
    // In a decayed state links may add the mean wait of their load.
    const Picos waited = post(8).waited, engine = stage("bte_descriptor") + transfer;
    EXPECT_GE(waited, engine);
    EXPECT_LE(waited, kind == LinkState::Kind::exact ? engine : engine + engine / 50);
    // What a processor stores itself passes the engine by, and waits for the interface alone.
    const Quote put =
        quote(aries().pricing, {.op = Op::fma_put, .src = 0, .dst = 12, .bytes = 8}, &network.state);
    EXPECT_LT(put.waited, stage("bte_descriptor") + transfer * 2 + stage("put_gap") * 3);
    // Another NIC has an engine of its own.
    EXPECT_EQ(quote(aries().pricing, {.op = Op::bte_put, .src = 100, .dst = 104, .bytes = 64}, &network.state)
                  .waited,
              Picos{});
  }
}

// As a message-passing library answers the offers of long messages while it fetches others.
TEST(Serial, WhatIsPostedBesideQueuedBlockGetsDoesNotWaitForThem) {
  const QuietAries quiet(LinkState::Kind::exact);
  LinkState state = quiet.state;
  const auto from = [&](NodeId src, Op op, std::uint64_t bytes) {
    return quote(aries().pricing, {.op = op, .src = src, .dst = 4 - src, .bytes = bytes}, &state);
  };
  constexpr std::uint64_t kBlock = 1 << 20;
  const Quote first = from(0, Op::bte_get, kBlock), second = from(0, Op::bte_get, kBlock);
  EXPECT_GE(second.waited, first.local_event_at / 2) << "the engine does one at a time";
  EXPECT_LE(from(0, Op::fma_put, 8).waited, first.local_event_at / 100);
  // The node that the data comes from now receives something short: its next block is not slower for that.
  const Picos third = from(0, Op::bte_get, kBlock).local_event_at;
  const Picos fourth = from(0, Op::bte_get, kBlock).local_event_at;
  const Picos each = second.local_event_at - first.local_event_at;
  EXPECT_NEAR(static_cast<double>((third - second.local_event_at).count()), static_cast<double>(each.count()),
              static_cast<double>(each.count()) / 100);
  EXPECT_NEAR(static_cast<double>((fourth - third).count()), static_cast<double>(each.count()),
              static_cast<double>(each.count()) / 100);
}

TEST(Rates, GetsAndAtomicsHaveOneOfTheirOwn) {
  const double most = 1e6 / static_cast<double>(stage("request_gap").count());
  EXPECT_NEAR(*measure(aries(), "rate(fma_get, 8, 28)"), most, 0.01 * most);
  EXPECT_NEAR(*measure(aries(), "rate(amo_miss, 8, 28)"), most, 0.01 * most);
  EXPECT_NEAR(*measure(aries(), "rate(fetch_amo_miss, 8, 28)"), most, 0.01 * most);
  EXPECT_GT(*measure(aries(), "rate(launch_put, 8, 28)"), 2 * most);
}

TEST(GlobalCable, CountsOnceForEachLinkBetweenGroupsThereAndBack) {
  Description without = aries().description;
  without.constants.at("link.global_cable").value = 0;
  const BuiltMachine bare = compile(without);
  const Picos cable = aries().pricing.global_cable;
  ASSERT_GT(cable, Picos{});
  for (const auto kind : {LinkState::Kind::exact, LinkState::Kind::decayed}) {
    for (const NodeId dst : {NodeId{1}, NodeId{383}, NodeId{384}, NodeId{3071}}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (int routing = 0; routing < kRoutings; ++routing) {
          const QuoteRequest r{.op = Op::fma_put,
                               .routing = static_cast<Routing>(routing),
                               .src = 0,
                               .dst = dst,
                               .bytes = 8,
                               .seed = seed};
          const Route route = route_of(aries().pricing, r);
          std::int64_t blue = 0;
          for (const LinkId link : route) blue += aries().pricing.dragonfly.colour(link) == LinkColour::blue;
          QuietAries one(kind), other(kind);
          const Quote with = quote(aries().pricing, r, &one.state),
                      plain = quote(bare.machine->pricing, r, &other.state);
          EXPECT_EQ(with.data_at - plain.data_at, cable * blue) << dst << " " << routing;
          EXPECT_EQ(with.local_event_at - plain.local_event_at, cable * (2 * blue));
          EXPECT_EQ(quote(aries().pricing, r, nullptr).data_at, with.data_at);
        }
      }
    }
  }
}

// Two messages that meet past a cable: the second waits there by what the first holds then.
TEST(GlobalCable, LinksBehindItAreTakenThatMuchLater) {
  QuietAries network(LinkState::Kind::exact);
  const auto put = [&](NodeId src, std::int64_t at) {
    return quote(aries().pricing,
                 {.op = Op::fma_put,
                  .routing = Routing::in_order,
                  .src = src,
                  .dst = 384,
                  .bytes = 1 << 16,
                  .now = Picos{at}},
                 &network.state);
  };
  const Quote first = put(0, 0), second = put(0, 1);
  EXPECT_EQ(first.waited, Picos{});
  EXPECT_GT(second.waited, Picos{});
}

TEST(HostUse, BothWaysIsTheRateOfABusyInterface) {
  const BuiltMachine gemini = build_machine("gemini");
  const OpPrice& get = gemini.machine->pricing.ops[static_cast<std::size_t>(Op::bte_get)];
  const OpPrice& put = gemini.machine->pricing.ops[static_cast<std::size_t>(Op::bte_put)];
  EXPECT_EQ(get.host_lone, get.host_shared);
  EXPECT_EQ(get.host_shared, put.host_shared);
  EXPECT_GT(get.host_lone, put.host_lone);
}

TEST(Collective, OneThatWaitsForAnotherTakesItsTimeToo) {
  const BuiltMachine q = build_machine("asci-q");
  Description d = q.machine->description;
  d.collectives[static_cast<std::size_t>(Collective::broadcast)].after.reset();
  const BuiltMachine without = compile(d);
  for (const std::uint32_t nodes : {2U, 16U, 64U, 1024U}) {
    const auto time = [&](const Machine& m, Collective c) { return quote_collective(m, c, nodes, 8).time; };
    EXPECT_EQ(time(*q.machine, Collective::broadcast),
              time(*without.machine, Collective::broadcast) + time(*q.machine, Collective::hardware_barrier));
  }
  // Two that wait for each other would never begin.
  d.collectives[static_cast<std::size_t>(Collective::broadcast)].after = Collective::hardware_barrier;
  d.collectives[static_cast<std::size_t>(Collective::hardware_barrier)].after = Collective::broadcast;
  EXPECT_NE(compile(d).error.find("waits for none itself"), std::string::npos);
}

TEST(ErrorBars, ExplainNamesThatOfEachStage) {
  const Explanation e = explain(aries(), {.op = Op::fma_put, .src = 0, .dst = 1000, .bytes = 4096});
  bool issue = false, stores = false;
  for (const ExplainedCost& cost : e.to_data) {
    if (cost.what.starts_with("stage.issue")) issue = cost.source.starts_with("(+-5 %)");
    stores = stores || cost.what.find("the processor's stores") != std::string::npos;
  }
  EXPECT_TRUE(issue);
  EXPECT_TRUE(stores);
  // Every duration of the five machines says how far off it may be.
  for (const ShippedFile& shipped : shipped_machines()) {
    if (shipped.name == "ideal") continue;
    const MachineFile file = load_machine(std::string(shipped.name));
    int known = 0, all = 0;
    for (const auto& [name, c] : file.description->constants) {
      if (!name.starts_with("stage.")) continue;
      ++all;
      known += c.error >= 0;
    }
    EXPECT_GE(known * 10, all * 9) << shipped.name;
  }
}

// Of rates too: what a stream is bounded by is a constant with an error of its own.
TEST(ErrorBars, ExplainNamesThatOfEachRate) {
  for (const ShippedFile& shipped : shipped_machines()) {
    if (shipped.name == "ideal") continue;
    const BuiltMachine built = build_machine(std::string(shipped.name));
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{64}, std::uint64_t{1} << 20}) {
      for (int op = 0; op < kOps; ++op) {
        const Explanation e = explain(
            *built.machine,
            {.op = static_cast<Op>(op), .src = 0, .dst = built.machine->pricing.nodes - 1, .bytes = bytes});
        for (const auto* costs : {&e.to_data, &e.at_target, &e.to_local}) {
          for (const ExplainedCost& cost : *costs) {
            EXPECT_EQ(cost.source.find("error not known"), std::string::npos)
                << shipped.name << ' ' << op << ' ' << bytes << ": " << cost.what;
            EXPECT_TRUE(cost.source.find(" %) ") != std::string::npos || cost.source == "as above")
                << cost.source;
          }
        }
      }
    }
  }
}

// What a machine's requests take is no less on the NIC that came before Aries.
TEST(RequestGap, GetsAndAtomicsOfGeminiHaveTheRateOfTheirOwnToo) {
  const BuiltMachine gemini = build_machine("gemini");
  const auto rate = [&](const char* what) { return *measure(*gemini.machine, what); };
  EXPECT_LT(rate("rate(fma_get, 8, 28)"), 0.7 * rate("rate(fma_put, 8, 28)"));
  EXPECT_LT(rate("rate(amo, 8, 28)"), 0.7 * rate("rate(fma_put, 8, 28)"));
}

// Blue Gene/L's barrier goes by wires of its own: no longer over more nodes, and no message's time.
TEST(Collective, ThoseOfBlueGeneLAreNotTheToruss) {
  const BuiltMachine bgl = build_machine("bluegene-l");
  const auto time = [&](Collective c, std::uint32_t nodes) {
    return quote_collective(*bgl.machine, c, nodes, 8).time;
  };
  EXPECT_EQ(time(Collective::hardware_barrier, 2), time(Collective::hardware_barrier, 65536));
  EXPECT_LT(time(Collective::hardware_barrier, 512), time(Collective::software_barrier, 512));
  EXPECT_EQ(time(Collective::allreduce, 65536), Picos{10'000'000});
}

}  // namespace
}  // namespace orrery::model
