// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_library.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>

namespace orrery::wire {
namespace {

// The library is loaded once in a process: so this is the program's only test.
TEST(OfiLibrary, LeavesTheProgramsSignalsAsTheyAre) {
  constexpr std::array kSignals{SIGINT, SIGILL, SIGABRT, SIGBUS, SIGTERM, SIGUSR1};
  std::array<struct sigaction, kSignals.size()> before{};
  for (std::size_t i = 0; i < kSignals.size(); ++i) ASSERT_EQ(sigaction(kSignals[i], nullptr, &before[i]), 0);
  OfiLibrary library;
  ASSERT_TRUE(library.open());
  int error = 0;
  if (fi_info* const found = ask(library, "tcp", "", &error)) library.freeinfo(found);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ASSERT_EQ(sigaction(kSignals[i], nullptr, &now), 0);
    EXPECT_EQ(now.sa_sigaction, before[i].sa_sigaction) << "signal " << kSignals[i];
  }
}

}  // namespace
}  // namespace orrery::wire
