// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_wire.hpp"

#include "emu/job/pmi_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::job {
namespace {

// Our server behind socket pairs, in a thread.
class Served {
 public:
  explicit Served(std::uint32_t size) : server_(size, "space", "(vector,(0,1,1))") {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      ours_.emplace_back(ends[0]);
      theirs_.emplace_back(ends[1]);
    }
    thread_ = std::thread([this] { run(); });
  }
  // REQUIRES: every wire is closed.
  ~Served() {
    theirs_.clear();
    thread_.join();
  }
  std::unique_ptr<PmiWire> open(std::uint32_t rank) {
    auto wire = PmiWire::open(std::move(theirs_[rank]));
    EXPECT_TRUE(wire.ok());
    return std::move(wire).value();
  }

 private:
  void run() {
    std::size_t open = ours_.size();
    while (open > 0) {
      std::vector<pollfd> fds;
      for (const UniqueFd& fd : ours_) fds.push_back({fd.get(), POLLIN, 0});
      poll(fds.data(), fds.size(), -1);
      for (std::uint32_t rank = 0; rank < ours_.size(); ++rank) {
        if (fds[rank].revents == 0) continue;
        std::array<char, 100> bytes;  // small, so that lines arrive in pieces
        const auto got = read(ours_[rank].get(), bytes.data(), bytes.size());
        if (got <= 0) {
          ours_[rank].reset();
          --open;
          continue;
        }
        for (const auto& out : server_.receive(rank, {bytes.data(), static_cast<std::size_t>(got)})) {
          EXPECT_EQ(send(ours_[out.rank].get(), out.text.data(), out.text.size(), MSG_NOSIGNAL),
                    static_cast<ssize_t>(out.text.size()));
        }
      }
    }
  }
  PmiServer server_;
  std::vector<UniqueFd> ours_;
  std::vector<UniqueFd> theirs_;
  std::thread thread_;
};

TEST(PmiWire, LearnsLimitsAndNameOfTheSpace) {
  Served served(1);
  const auto wire = served.open(0);
  EXPECT_EQ(wire->kvs_name(), "space");
  // The longest put is a line that Slurm's pmi2 still reads in one piece.
  const std::string key(wire->limits().key, 'k'), value(wire->limits().value, 'v');
  EXPECT_EQ(format_pmi_line({{"cmd", "put"}, {"kvsname", "space"}, {"key", key}, {"value", value}}).size(),
            1024u);
  EXPECT_TRUE(wire->put(key, value).ok());
  EXPECT_EQ(wire->put(key, value + "v"), Status(Errc::size));
  EXPECT_EQ(wire->appnum().value(), 0);
  EXPECT_EQ(wire->universe_size().value(), 1);
  EXPECT_TRUE(wire->finalize().ok());
  EXPECT_EQ(wire->put("a", "b").code(), Errc::invalid_state);
}

TEST(PmiWire, PairsPassBetweenClients) {
  Served served(2);
  const auto one = served.open(0);
  const auto two = served.open(1);
  ASSERT_TRUE(one->put("a", "b=c").ok());
  EXPECT_EQ(two->get("a").value(), "b=c");
  EXPECT_EQ(two->get("b").code(), Errc::no_match);
  EXPECT_EQ(two->put("a", "x").code(), Errc::invalid_state);
}

TEST(PmiWire, RefusesWhatTheGrammarCannotCarry) {
  Served served(1);
  const auto wire = served.open(0);
  EXPECT_EQ(wire->put("a b", "c").code(), Errc::invalid_param);
  EXPECT_EQ(wire->put("a", "b c").code(), Errc::invalid_param);
  EXPECT_EQ(wire->put("a", "").code(), Errc::invalid_param);
  EXPECT_EQ(wire->put("a", "b\nc").code(), Errc::invalid_param);
  EXPECT_EQ(wire->put(std::string(65, 'a'), "b").code(), Errc::size);
  EXPECT_EQ(wire->put("a", std::string(1025, 'b')).code(), Errc::size);
  EXPECT_EQ(wire->get("").code(), Errc::invalid_param);
}

TEST(PmiWire, BytesOfAnyLengthPassInChunks) {
  Served served(2);
  const auto one = served.open(0);
  const auto two = served.open(1);
  for (const std::size_t length : {0u, 1u, 2u, 3u, 764u, 765u, 766u, 767u, 1530u, 1531u, 20'000u}) {
    std::string bytes(length, '\0');
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i * 31);
    const std::string key = "k" + std::to_string(length);
    ASSERT_TRUE(one->put_bytes(key, bytes).ok()) << length;
    const auto got = two->get_bytes(key);
    ASSERT_TRUE(got.ok()) << length;
    EXPECT_EQ(got.value(), bytes) << length;
  }
}

TEST(PmiWire, MissingOrDamagedChunksAreCorrupt) {
  Served served(1);
  const auto wire = served.open(0);
  ASSERT_TRUE(wire->put("cut", "0002AAAA").ok());
  EXPECT_EQ(wire->get_bytes("cut").code(), Errc::corrupt);
  ASSERT_TRUE(wire->put("none", "0000AAAA").ok());
  EXPECT_EQ(wire->get_bytes("none").code(), Errc::corrupt);
  ASSERT_TRUE(wire->put("word", "hello").ok());
  EXPECT_EQ(wire->get_bytes("word").code(), Errc::corrupt);
  ASSERT_TRUE(wire->put("short", "00").ok());
  EXPECT_EQ(wire->get_bytes("short").code(), Errc::corrupt);
  EXPECT_EQ(wire->get_bytes("absent").code(), Errc::no_match);
}

TEST(PmiWire, BarrierHoldsUntilEverybodyIsThere) {
  Served served(3);
  std::atomic<int> before{0};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank, wire = served.open(rank)] {
      for (int round = 1; round <= 20; ++round) {
        ++before;
        EXPECT_TRUE(rank == 0 ? wire->barrier().ok()
                              : wire->barrier_enter().ok() && wire->barrier_leave().ok());
        EXPECT_GE(before, 3 * round);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// A launcher that says `answers`, one for each request, and then closes.
class Scripted {
 public:
  explicit Scripted(std::vector<std::string> answers) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    theirs_.reset(ends[1]);
    thread_ = std::thread([fd = ends[0], answers = std::move(answers)] {
      const UniqueFd ours(fd);
      for (const std::string& answer : answers) {
        std::array<char, 4096> request;
        if (read(ours.get(), request.data(), request.size()) <= 0) return;
        if (send(ours.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
      }
    });
  }
  ~Scripted() { thread_.join(); }
  Result<std::unique_ptr<PmiWire>> open() { return PmiWire::open(std::move(theirs_)); }

 private:
  UniqueFd theirs_;
  std::thread thread_;
};

const std::string kInit = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
const std::string kMaxes = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
const std::string kName = "cmd=my_kvsname kvsname=space\n";

TEST(PmiWire, LauncherThatSpeaksSomethingElseIsRefused) {
  const std::vector<std::vector<std::string>> scripts = {
      {},
      {"hello\n"},
      {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"},
      {std::string(10'000, 'x')},
      {kInit, "cmd=appnum appnum=0\n"},
      {kInit, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1\n"},
      {kInit, "cmd=maxes kvsname_max=-1 keylen_max=64 vallen_max=1024\n"},
      {kInit, "cmd=maxes\n"},
      {kInit, kMaxes, "cmd=my_kvsname\n"},
      {kInit, kMaxes, "cmd=my_kvsname kvsname=" + std::string(300, 'x') + "\n"},
  };
  for (const auto& script : scripts) {
    Scripted launcher(script);
    EXPECT_FALSE(launcher.open().ok()) << (script.empty() ? "closed" : script.back());
  }
}

TEST(PmiWire, LauncherThatGoesAwayIsAnErrorOfTheCall) {
  Scripted launcher({kInit, kMaxes, kName});
  auto wire = launcher.open();
  ASSERT_TRUE(wire.ok());
  EXPECT_EQ(wire.value()->get("a").code(), Errc::unreachable);
  EXPECT_EQ(wire.value()->barrier().code(), Errc::unreachable);
}

TEST(PmiWire, StrangeAnswersAreErrorsOfTheCall) {
  Scripted launcher({kInit, kMaxes, kName, "cmd=get_result rc=0\n", "cmd=get_result rc=x value=1\n",
                     "cmd=universe_size size=many\n"});
  auto wire = launcher.open();
  ASSERT_TRUE(wire.ok());
  EXPECT_EQ(wire.value()->get("a").code(), Errc::no_match);
  EXPECT_EQ(wire.value()->get("a").code(), Errc::no_match);
  EXPECT_EQ(wire.value()->universe_size().code(), Errc::corrupt);
}

TEST(PmiWire, AnswersOutOfStepAreTakenForNobodysQuestion) {
  Scripted launcher({kInit, kMaxes, kName, "cmd=put_result rc=0\n", "cmd=get_result rc=0 value=of_a\n"});
  auto wire = launcher.open();
  ASSERT_TRUE(wire.ok());
  EXPECT_EQ(wire.value()->get("a").code(), Errc::corrupt);
  EXPECT_EQ(wire.value()->get("b").code(), Errc::invalid_state);
  Scripted other({kInit, kMaxes, kName, "cmd=barrier_in\n"});
  auto second = other.open();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value()->barrier().code(), Errc::corrupt);
  EXPECT_EQ(second.value()->barrier().code(), Errc::invalid_state);
}

}  // namespace
}  // namespace orrery::job
