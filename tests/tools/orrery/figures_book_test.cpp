// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/figures/figures_book.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace orrery::tool::test {
namespace {

// What has left the process by stdout, which goes to a file meanwhile: what lies in its buffer is not there.
class Printed {
 public:
  Printed() : file_(std::tmpfile()), before_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    dup2(fileno(file_), STDOUT_FILENO);
    std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16);  // as through a pipe
  }
  ~Printed() {
    std::fflush(stdout);
    dup2(before_, STDOUT_FILENO);
    close(before_);
    std::fclose(file_);
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  std::string text() const {
    std::string text(4096, '\0');
    const ssize_t got = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

TEST(FiguresBook, WhichFigureBeginsAndHowMuchOfItIsDoneAreThereAtOnce) {
  std::string begun, half, whole, row;
  {
    const Printed printed;
    Book book(FigureOptions{});
    book.begin("light", 3, 5, 1000);
    begun = printed.text();
    book.spent(99'000'000);
    book.spent(350'000'000);
    book.spent(1'000'000);
    half = printed.text();
    book.spent(900'000'000);  // more than was thought
    whole = printed.text();
    book.begin("heavy", 4, 5, 30);
    book.spent(19'000'000);
    book.spent(2'000'000);
    book.order("what", "paper", "ours", true);
    row = printed.text();
  }
  EXPECT_EQ(begun, "light, 3 of 5: 1000 million packet-hops\n");
  EXPECT_EQ(half, begun + "     449 of 1000 million packet-hops\n");
  EXPECT_EQ(whole, half);
  ASSERT_EQ(row.substr(0, whole.size()), whole);
  EXPECT_EQ(row.find("heavy, 4 of 5: 30 million packet-hops\n     21 of 30 million packet-hops\nok   what"),
            whole.size())
      << row;
}

TEST(FiguresBook, ASimulationTellsHowFarItIsTheSameForAnyNumberOfThreads) {
  std::string texts[2];
  for (const unsigned threads : {1u, 2u}) {
    const Printed printed;
    FigureOptions options;
    options.threads = threads;
    Book book(options);
    book.begin("one", 1, 1, 60);
    book.spent(19'500'000);  // a simulation that takes a second passes the first step in its middle
    sim::RunSpec spec;
    spec.nodes = "8x8x8";
    spec.workload = "alltoall";
    spec.bytes = 240;
    book.run(spec);
    texts[threads - 1] = printed.text();
    texts[threads - 1] += fmt::format("{} packet-hops", book.hops());
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("     20 of 60 million packet-hops\n"), std::string::npos) << texts[0];
}

TEST(FiguresBook, ALoadThatTheNetworkDoesNotCarryHasNoResponseTime) {
  Book book(FigureOptions{});
  sim::RunSpec spec;
  spec.nodes = "8x8x8";
  spec.workload = "uniform";
  spec.preset = "fig2-deterministic";
  spec.warmup_us = 40;
  spec.measure_us = 20;
  spec.until_us = 500;
  spec.load = 0.3;
  const double light = book.latency_us(spec);
  EXPECT_GT(light, 1);
  EXPECT_LT(light, 3);
  spec.load = 0.9;
  const sim::SimResult full = book.run(spec);
  ASSERT_TRUE(full.saturated());
  ASSERT_GT(full.outcome.latency.count(), 0u);  // there are latencies, of how long the run was
  EXPECT_TRUE(std::isnan(book.latency_us(spec)));
}

// What Figure 13's row rests on: while 1,024 outstanding packets a node fill the network, links carry more
// than arrives.
TEST(FiguresBook, ARunThatOnlyFillsTheNetworkIsNotCalledSteady) {
  Book book(FigureOptions{});
  sim::RunSpec spec;
  spec.machine = "aries";
  spec.nodes = "2";
  spec.bytes = 4096;
  spec.order = "shift";
  spec.grain = 8;
  spec.repeat = 1000;
  spec.sample_us = 0.5;
  spec.warmup_us = 0.5;
  spec.until_us = 2;
  EXPECT_FALSE(book.run(spec).outcome.steady);
  spec.warmup_us = 5;
  spec.until_us = 20;
  EXPECT_TRUE(book.run(spec).outcome.steady);
}

}  // namespace
}  // namespace orrery::tool::test
