// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Packets of Verb::match as a hostile initiator could send them, given to the server of this very process.
#include "lib/portals4/frame_server.hpp"
#include "tests/lib/portals4/client.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include <unistd.h>

namespace client {
namespace {

using orrery::Errc;
using orrery::portals4::FrameServer;
namespace match = orrery::nic::match;
using match::Step;

class Frames : public PortalsTest {
 protected:
  Frames() {
    PtlGetPhysId(ni, &self);
    append(entry(memory.data(), kBytes, 1, PTL_ME_EVENT_LINK_DISABLE), PTL_PRIORITY_LIST);
    header.verb = orrery::wire::Verb::match;
    offer.interface = kInterface;
    offer.pid = self.phys.pid;
    offer.portal = portal;
    offer.match_bits = 1;
    offer.length = kBytes;
    offer.initiator = {self.phys.nid, self.phys.pid};
    offer.kind = static_cast<std::uint8_t>(match::OpKind::put);
  }
  Errc send(Step step, std::uint64_t token, std::uint64_t offset, std::uint64_t bytes,
            std::uint8_t fail = 0) {
    std::vector<std::byte> payload(sizeof(match::StepHead));
    const match::StepHead head{token, offset, static_cast<std::uint8_t>(step), fail, {}};
    std::memcpy(payload.data(), &head, sizeof head);
    if (step == Step::open) {
      payload.resize(payload.size() + sizeof offer);
      std::memcpy(payload.data() + sizeof head, &offer, sizeof offer);
    }
    payload.resize(payload.size() + bytes, std::byte{7});
    return send_raw(payload);
  }
  Errc send_raw(const std::vector<std::byte>& payload) {
    std::fill(answer.begin(), answer.end(), std::byte{0});
    const Errc status = FrameServer::get().serve(header, payload, answer);
    std::memcpy(&said, answer.data(), std::min(sizeof said, answer.size()));
    return status;
  }
  // Whether a whole message still gets through.
  void still_serves() {
    offer = match::Offer{};
    offer.interface = kInterface;
    offer.pid = self.phys.pid;
    offer.portal = portal;
    offer.match_bits = 1;
    offer.length = 64;
    offer.kind = static_cast<std::uint8_t>(match::OpKind::put);
    ASSERT_EQ(send(Step::open, 0, 0, 64), Errc::ok);
    EXPECT_EQ(said.fail, match::kDelivered);
    EXPECT_EQ(said.token, 0u);
    EXPECT_EQ(memory[63], 7);
    EXPECT_EQ(memory[kBytes], 0);
    expect(PTL_EVENT_PUT);
  }

  static constexpr std::uint8_t kInterface = 2;  // matching, physical
  static constexpr std::size_t kBytes = 1024;
  std::array<unsigned char, kBytes + 64> memory{};  // behind the entry: must stay 0
  ptl_process_t self{};
  orrery::wire::PacketHeader header;
  match::Offer offer;
  match::StepAnswer said;
  std::vector<std::byte> answer = std::vector<std::byte>(512);
};

TEST_F(Frames, RefusesOffersThatCannotBe) {
  const struct {
    const char* what;
    std::function<void(match::Offer&)> change;
    std::uint64_t bytes;
    Errc code;
  } cases[] = {
      {"kind", [](auto& o) { o.kind = 5; }, 8, Errc::corrupt},
      {"interface", [](auto& o) { o.interface = 4; }, 8, Errc::corrupt},
      {"portal", [](auto& o) { o.portal = 512; }, 8, Errc::corrupt},
      {"length", [](auto& o) { o.length = ~std::uint64_t{0}; }, 8, Errc::corrupt},
      {"more bytes than the length", [](auto& o) { o.length = 4; }, 8, Errc::corrupt},
      {"a get with bytes", [](auto& o) { o.kind = 1; }, 8, Errc::corrupt},
      {"an operation that is none", [](auto& o) { o.kind = 2, o.operation = 99; }, 8, Errc::corrupt},
      {"a type that is none", [](auto& o) { o.kind = 2, o.datatype = 99; }, 8, Errc::corrupt},
      {"a long atomic", [](auto& o) { o.kind = 2, o.operation = PTL_SUM, o.length = 8192; }, 8,
       Errc::corrupt},
      {"half an item",
       [](auto& o) { o.kind = 2, o.operation = PTL_SUM, o.datatype = PTL_INT64_T, o.length = 4; }, 4,
       Errc::corrupt},
      {"another pid", [](auto& o) { ++o.pid; }, 8, Errc::no_match},
  };
  for (const auto& one : cases) {
    const match::Offer good = offer;
    one.change(offer);
    EXPECT_EQ(send(Step::open, 0, 0, one.bytes), one.code) << one.what;
    offer = good;
  }
  for (const std::size_t bytes : {0u, 8u, 23u})
    EXPECT_EQ(send_raw(std::vector<std::byte>(bytes)), Errc::corrupt);
  EXPECT_EQ(send(static_cast<Step>(77), 0, 0, 0), Errc::invalid_handle);
  answer.resize(8);
  EXPECT_EQ(send(Step::who, self.phys.pid, 0, 0), Errc::corrupt);
  answer.resize(512);
  EXPECT_EQ(send(Step::who, self.phys.pid, 0, 0), Errc::ok);
  EXPECT_EQ(send(Step::who, self.phys.pid + 1, 0, 0), Errc::no_match);
  still_serves();
}

TEST_F(Frames, RefusesPartsOutsideTheirMessage) {
  ASSERT_EQ(send(Step::open, 0, 0, 8), Errc::ok);
  const std::uint64_t token = said.token;
  ASSERT_NE(token, 0u);
  EXPECT_EQ(send(Step::put_part, token + 1, 8, 8), Errc::invalid_handle);
  EXPECT_EQ(send(Step::put_part, token, kBytes - 4, 8), Errc::corrupt);
  EXPECT_EQ(send(Step::put_part, token, ~std::uint64_t{0} - 3, 8), Errc::corrupt);
  EXPECT_EQ(send(Step::get_part, token, 0, 0), Errc::corrupt);
  EXPECT_EQ(send(Step::apply, token, 0, 0), Errc::corrupt);
  header.source = 3;  // another process may not go on with it
  EXPECT_EQ(send(Step::put_part, token, 8, 8), Errc::invalid_handle);
  header.source = 0;
  EXPECT_EQ(send(Step::put_part, token, 8, 8), Errc::ok);
  EXPECT_EQ(send(Step::finish, token, 0, 0, 200), Errc::ok);  // no such failure: taken for one
  expect(PTL_EVENT_PUT, PTL_NI_SEGV);
  EXPECT_EQ(send(Step::finish, token, 0, 0), Errc::invalid_handle);
  still_serves();
}

// PtlPTDisable in a thread of its own.
class Disabling {
 public:
  Disabling(ptl_handle_ni_t ni, ptl_pt_index_t portal)
      : enabled_(orrery::portals4::Process::get().own().portal(2, portal).enabled),
        thread_([this, ni, portal] {
          const std::int64_t begun = orrery::monotonic_ns();
          code_ = PtlPTDisable(ni, portal);
          took_ns_ = orrery::monotonic_ns() - begun;
          returned_ = true;
        }) {}
  ~Disabling() { thread_.join(); }
  Disabling(const Disabling&) = delete;
  Disabling& operator=(const Disabling&) = delete;

  void has_begun() {
    while (std::atomic_ref(enabled_).load() != 0) std::this_thread::yield();
  }
  bool has_returned() const { return returned_; }
  std::int64_t took_ns() const { return took_ns_; }
  int code() {
    while (!returned_) std::this_thread::yield();
    return code_;
  }

 private:
  std::uint32_t& enabled_;
  std::atomic<bool> returned_{false};
  std::int64_t took_ns_ = 0;
  int code_ = -1;
  std::thread thread_;
};

TEST_F(Frames, DisablesAPortalWhenTheMessagesUnderWayAreThere) {
  ASSERT_EQ(send(Step::open, 0, 0, 8), Errc::ok);
  const std::uint64_t token = said.token;
  ASSERT_NE(token, 0u);
  Disabling disabling(ni, portal);
  disabling.has_begun();
  // A call that does not wait returns in this time; one that does only after its patience.
  for (int i = 0; i < 100 && !disabling.has_returned(); ++i) usleep(1000);
  if (disabling.has_returned()) {
    EXPECT_GE(disabling.took_ns(), 5'000'000'000);
  }
  EXPECT_EQ(send(Step::open, 0, 0, 8), Errc::ok);
  EXPECT_EQ(said.fail, match::kPortalDisabled);
  EXPECT_EQ(send(Step::put_part, token, 8, kBytes - 8), Errc::ok);
  EXPECT_EQ(send(Step::finish, token, 0, 0), Errc::ok);
  EXPECT_EQ(disabling.code(), PTL_OK);
  ptl_event_t event{};
  ASSERT_EQ(PtlEQGet(queue, &event), PTL_OK);
  EXPECT_EQ(event.type, PTL_EVENT_PUT);
  ASSERT_EQ(PtlPTEnable(ni, portal), PTL_OK);
  still_serves();
}

TEST_F(Frames, DisablesAPortalThoughAMessageNeverEnds) {
  ASSERT_EQ(send(Step::open, 0, 0, 8), Errc::ok);
  const std::uint64_t token = said.token;
  EXPECT_EQ(PtlPTDisable(ni, portal), PTL_OK);  // gives up
  EXPECT_EQ(send(Step::finish, token, 0, 0), Errc::ok);
  expect(PTL_EVENT_PUT);
}

TEST_F(Frames, CarriesOutAnAtomicOnce) {
  offer.kind = static_cast<std::uint8_t>(match::OpKind::fetch_atomic);
  offer.operation = PTL_SUM;
  offer.datatype = PTL_UINT8_T;
  ASSERT_EQ(send(Step::open, 0, 0, 8), Errc::ok);
  const std::uint64_t token = said.token;
  ASSERT_NE(token, 0u);
  EXPECT_EQ(send(Step::get_part, token, 0, 0), Errc::corrupt);  // before it is carried out
  EXPECT_EQ(send(Step::put_part, token, 8, kBytes - 8), Errc::ok);
  EXPECT_EQ(send(Step::apply, token, 0, 0), Errc::ok);
  EXPECT_EQ(send(Step::apply, token, 0, 0), Errc::corrupt);
  EXPECT_EQ(send(Step::put_part, token, 0, 8), Errc::corrupt);
  EXPECT_EQ(send(Step::get_part, token, kBytes + 1, 0), Errc::corrupt);
  EXPECT_EQ(send(Step::get_part, token, kBytes - 4, 0), Errc::ok);
  EXPECT_EQ(said.bytes, 4u);
  EXPECT_EQ(send(Step::finish, token, 0, 0), Errc::ok);
  EXPECT_EQ(memory[kBytes - 1], 7);
  EXPECT_EQ(expect(PTL_EVENT_FETCH_ATOMIC).mlength, kBytes);
}

TEST_F(Frames, KeepsNoMoreOpenMessagesThanItSays) {
  std::vector<std::uint64_t> tokens;
  Errc last = Errc::ok;
  for (int i = 0; i < 1000 && last == Errc::ok; ++i) {
    last = send(Step::open, 0, 0, 8);
    if (last == Errc::ok) tokens.push_back(said.token);
  }
  EXPECT_EQ(last, Errc::no_resource);
  EXPECT_EQ(tokens.size(), 256u);
  for (const std::uint64_t token : tokens) ASSERT_EQ(send(Step::finish, token, 0, 0), Errc::ok);
  for (std::size_t i = 0; i < tokens.size(); ++i) expect(PTL_EVENT_PUT);
  still_serves();
}

}  // namespace
}  // namespace client
