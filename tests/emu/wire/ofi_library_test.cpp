// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/ofi_library.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace orrery::wire {
namespace {

// The library is loaded once in a process: so this is the program's only test.
TEST(OfiLibrary, LeavesTheProgramsSignalsAsTheyAre) {
  OfiLibrary library;
  ASSERT_TRUE(library.open());
  int error = 0;
  if (fi_info* const found = ask(library, "tcp", "", &error)) library.freeinfo(found);
  for (const int signal : {SIGINT, SIGILL, SIGABRT, SIGBUS, SIGTERM, SIGUSR1}) {
    struct sigaction now {};
    ASSERT_EQ(sigaction(signal, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << "signal " << signal;
  }
}

}  // namespace
}  // namespace orrery::wire
