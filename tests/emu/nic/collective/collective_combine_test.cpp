// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/collective/collective_combine.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cstdint>
#include <limits>
#include <random>

namespace orrery::nic {
namespace {

CeValue value(std::uint8_t command, std::uint64_t first, std::uint64_t second, bool two = true) {
  return ce_normal({.operand = {first, second}, .reduction = 9, .command = command, .two_operands = two});
}
std::uint64_t bits(double d) { return std::bit_cast<std::uint64_t>(d); }
std::uint64_t bits(float f) { return std::bit_cast<std::uint32_t>(f); }

struct Row {
  const char* what;
  std::uint8_t command;
  std::uint64_t left[2];
  std::uint64_t right[2];
  std::uint64_t sum[2];
};
constexpr std::uint64_t kMinus1 = ~0ull;

TEST(CeCombine, EveryCommandDoesWhatItsNameSays) {
  const Row rows[] = {
      {"AND", 0x01, {0xf0f0'0000'0000'00ff, 3}, {0xff00'0000'0000'000f, 6}, {0xf000'0000'0000'000f, 2}},
      {"AND_S", 0x00, {0xf'ffff'ffff, 3}, {0xf'0000'00ff, 6}, {0xff, 2}},
      {"OR", 0x03, {1ull << 40, 1}, {1, 2}, {1ull << 40 | 1, 3}},
      {"OR_S", 0x02, {1ull << 40, 1}, {1, 2}, {1, 3}},
      {"XOR", 0x05, {7, 1}, {5, 1}, {2, 0}},
      {"XOR_S", 0x04, {kMinus1, 1}, {1, 2}, {0xffff'fffe, 3}},
      {"IADD", 0x15, {kMinus1, 1ull << 40}, {3, 5}, {2, (1ull << 40) + 5}},
      {"IADD_S", 0x14, {0xffff'ffff, 2}, {3, 5}, {2, 7}},
      {"IMIN_LIDX signed", 0x11, {kMinus1, 4}, {1, 3}, {kMinus1, 4}},
      {"IMIN_LIDX tie", 0x11, {5, 4}, {5, 3}, {5, 3}},
      {"IMIN_GIDX tie", 0x31, {5, 4}, {5, 3}, {5, 4}},
      {"IMAX_LIDX", 0x13, {kMinus1, 4}, {1, 3}, {1, 3}},
      {"IMAX_GIDX tie", 0x33, {5, 3}, {5, 4}, {5, 4}},
      {"IMIN_LIDX_S signed", 0x10, {0xffff'ffff, 4}, {1, 3}, {0xffff'ffff, 4}},
      {"IMAX_LIDX_S signed", 0x12, {0xffff'ffff, 4}, {1, 3}, {1, 3}},
      {"IMIN_GIDX_S tie", 0x30, {8, 1}, {8, 2}, {8, 2}},
      {"IMAX_GIDX_S tie", 0x32, {8, 2}, {8, 1}, {8, 2}},
      {"FPMIN_LIDX", 0x19, {bits(-2.0), 1}, {bits(-3.0), 2}, {bits(-3.0), 2}},
      {"FPMIN_GIDX tie of zeros", 0x39, {bits(0.0), 1}, {bits(-0.0), 2}, {bits(-0.0), 2}},
      {"FPMAX_LIDX", 0x1b, {bits(-2.0), 1}, {bits(-3.0), 2}, {bits(-2.0), 1}},
      {"FPMAX_GIDX tie", 0x3b, {bits(1.5), 1}, {bits(1.5), 2}, {bits(1.5), 2}},
      {"FPMIN_LIDX_S", 0x18, {bits(2.0F), 7}, {bits(1.0F), 8}, {bits(1.0F), 8}},
      {"FPMAX_LIDX_S tie", 0x1a, {bits(2.0F), 7}, {bits(2.0F), 8}, {bits(2.0F), 7}},
      {"FPMIN_GIDX_S tie", 0x38, {bits(2.0F), 7}, {bits(2.0F), 8}, {bits(2.0F), 8}},
      {"FPMAX_GIDX_S", 0x3a, {bits(2.0F), 7}, {bits(3.0F), 6}, {bits(3.0F), 6}},
      {"FPADD", 0x1d, {bits(0.5), bits(1.0)}, {bits(0.25), bits(2.0)}, {bits(0.75), bits(3.0)}},
      {"FPADD_S", 0x1c, {bits(0.5F), bits(1.0F)}, {bits(0.25F), bits(2.0F)}, {bits(0.75F), bits(3.0F)}},
  };
  for (const Row& row : rows) {
    ASSERT_TRUE(ce_command_exists(row.command)) << row.what;
    const CeValue sum = ce_combine(value(row.command, row.left[0], row.left[1]),
                                   value(row.command, row.right[0], row.right[1]), Rounding::nearest);
    EXPECT_EQ(sum.status, CeStatus::ok) << row.what;
    EXPECT_EQ(sum.operand[0], row.sum[0]) << row.what;
    EXPECT_EQ(sum.operand[1], row.sum[1]) << row.what;
    EXPECT_EQ(sum.exceptions, 0) << row.what;
  }
}

TEST(CeCombine, CommandsThatTheEngineLacksAreKnown) {
  int exist = 0;
  for (std::uint32_t command = 0; command < 0x400; ++command) exist += ce_command_exists(command) ? 1 : 0;
  EXPECT_EQ(exist, 26);
  EXPECT_FALSE(ce_command_exists(0x06));
  EXPECT_FALSE(ce_command_exists(0x34));
  EXPECT_FALSE(ce_command_exists(0x101));
}

TEST(CeCombine, WithoutTwoOperandsTheSecondIsDroppedUnlessItIsAnIndex) {
  EXPECT_EQ(value(0x15, 1, 2, false).operand[1], 0u);
  EXPECT_EQ(value(0x11, 1, 2, false).operand[1], 2u);
}

TEST(CeCombine, RoundsAsAskedAndLeavesTheProgramsModeAlone) {
  const double tiny = 0x1p-60;
  const auto add = [&](Rounding rounding, double a, double b) {
    const CeValue sum = ce_combine(value(0x1d, bits(a), 0, false), value(0x1d, bits(b), 0, false), rounding);
    EXPECT_EQ(sum.exceptions, kCeInexact);
    return std::bit_cast<double>(sum.operand[0]);
  };
  const double after_1 = 1.0 + std::numeric_limits<double>::epsilon();
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  std::feclearexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(add(Rounding::nearest, 1.0, tiny), 1.0);
  EXPECT_EQ(add(Rounding::up, 1.0, tiny), after_1);
  EXPECT_EQ(add(Rounding::down, 1.0, tiny), 1.0);
  EXPECT_EQ(add(Rounding::down, -1.0, -tiny), -after_1);
  EXPECT_EQ(add(Rounding::zero, -1.0, -tiny), -1.0);
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  EXPECT_EQ(std::fetestexcept(FE_INEXACT), 0) << "the engine's exceptions are not the program's";
  std::fesetround(FE_TONEAREST);
}

TEST(CeCombine, TellsOfEveryException) {
  const auto of = [](double a, double b) {
    return ce_combine(value(0x1d, bits(a), 0, false), value(0x1d, bits(b), 0, false), Rounding::nearest)
        .exceptions;
  };
  const double huge = std::numeric_limits<double>::max();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(of(huge, huge), kCeOverflow | kCeInexact);
  EXPECT_EQ(of(infinity, -infinity), kCeInvalid);
  EXPECT_EQ(of(1.0, 2.0), 0);
  // A sum of doubles is never tiny and inexact at once, nor is one of floats: there is no underflow to have.
  EXPECT_EQ(of(std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::denorm_min()), 0);
}

TEST(CeCombine, ANumberWinsAgainstANan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CeValue out = ce_combine(value(0x19, bits(nan), 1), value(0x19, bits(7.0), 2), Rounding::nearest);
  EXPECT_EQ(out.operand[1], 2u);
  EXPECT_EQ(out.exceptions, kCeInvalid);
  out = ce_combine(value(0x1b, bits(7.0), 1), value(0x1b, bits(nan), 2), Rounding::nearest);
  EXPECT_EQ(out.operand[1], 1u);
}

// Programs that are built with -ffast-math take denormals for zero; others unmask exceptions. PEs of one job
// may differ in both, and must still come to the same.
TEST(CeCombine, ComparesDenormalsAndNansAlikeInEveryModeOfTheProgram) {
#if defined(__SSE2__)
  const double tiny = std::numeric_limits<double>::denorm_min();
  const float tiny_float = std::numeric_limits<float>::denorm_min();
  const double nan = std::numeric_limits<double>::signaling_NaN();
  const unsigned saved = _mm_getcsr();
  constexpr unsigned kDenormalsAreZero = 0x8040;  // results, too
  for (const unsigned mode : {saved, saved | kDenormalsAreZero, saved & ~_MM_MASK_MASK}) {
    SCOPED_TRACE(mode);
    const auto index = [mode, saved](std::uint8_t command, std::uint64_t left, std::uint64_t right) {
      // The index tells of what was taken: when both are equal the left one of LIDX.
      const CeValue a = value(command, left, 1);
      const CeValue b = value(command, right, 2);
      _mm_setcsr(mode & ~unsigned{_MM_EXCEPT_MASK});
      const CeValue out = ce_combine(a, b, Rounding::nearest);
      const unsigned flags = _mm_getcsr() & _MM_EXCEPT_MASK;
      _mm_setcsr(saved);
      EXPECT_EQ(flags, 0U) << "the program's";
      return out.operand[1];
    };
    EXPECT_EQ(index(0x19, bits(tiny), bits(-tiny)), 2U);
    EXPECT_EQ(index(0x1b, bits(tiny), bits(2 * tiny)), 2U);
    EXPECT_EQ(index(0x1b, bits(-tiny), bits(-2 * tiny)), 1U);
    EXPECT_EQ(index(0x1b, bits(0.0), bits(tiny)), 2U);
    EXPECT_EQ(index(0x18, bits(tiny_float), bits(-tiny_float)), 2U);
    EXPECT_EQ(index(0x1a, bits(0.0F), bits(tiny_float)), 2U);
    EXPECT_EQ(index(0x1b, bits(0.0), bits(-0.0)), 1U) << "zeros are equal";
    EXPECT_EQ(index(0x1a, bits(-0.0F), bits(0.0F)), 1U) << "zeros are equal";
    EXPECT_EQ(index(0x3b, bits(-0.0), bits(0.0)), 2U) << "zeros are equal";
    EXPECT_EQ(index(0x19, bits(nan), bits(7.0)), 2U);
    EXPECT_EQ(index(0x1b, bits(std::numeric_limits<double>::infinity()), bits(nan)), 1U);
  }
#endif
}

TEST(CeCombine, TheUsualCommandsComeToTheSameByTheShortWay) {
  std::mt19937_64 random(7);
  for (const std::uint8_t command : {0x01, 0x03, 0x05, 0x15, 0x1d}) {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t left = i % 4 == 0 ? bits(1.0) : random();
      const std::uint64_t right = i % 5 == 0 ? bits(0x1p-60) : random();
      const CeValue expected =
          ce_combine(value(command, left, 0, false), value(command, right, 0, false), Rounding::nearest);
      std::uint64_t sum = left;
      ASSERT_TRUE(ce_combine_usual(ce_meta(value(command, left, 0, false)), &sum, right));
      ASSERT_EQ(sum, expected.operand[0]) << std::hex << int{command} << ' ' << left << ' ' << right;
    }
  }
}

TEST(CeCombine, TheShortWayLeavesOtherCommandsAndModesAlone) {
  std::uint64_t sum = bits(1.0);
  for (const std::uint64_t meta : {0x14ull, 0x1cull, 0x11ull, 0x115ull, 0x1'0015ull, 0x3300'0015ull})
    EXPECT_FALSE(ce_combine_usual(meta, &sum, 1)) << meta;
  std::fesetround(FE_UPWARD);
  const bool taken = ce_combine_usual(0x1d, &sum, bits(0x1p-60));
  std::fesetround(FE_TONEAREST);
  EXPECT_FALSE(taken);
  EXPECT_EQ(sum, bits(1.0));
  // The program's flags are as they were.
  std::feclearexcept(FE_ALL_EXCEPT);
  EXPECT_TRUE(ce_combine_usual(0x1d, &sum, bits(0x1p-60)));
  EXPECT_EQ(std::fetestexcept(FE_INEXACT), 0);
}

TEST(CeCombine, ChildrenThatWantDifferentThingsGetAnError) {
  CeValue other = value(0x15, 1, 1);
  other.reduction = 10;
  EXPECT_EQ(ce_combine(value(0x15, 1, 1), other, Rounding::nearest).status, CeStatus::id_mismatch);
  EXPECT_EQ(ce_combine(value(0x15, 1, 1), value(0x1d, 1, 1), Rounding::nearest).status,
            CeStatus::inconsistent);
  EXPECT_EQ(ce_combine(value(0x15, 1, 1), value(0x15, 1, 1, false), Rounding::nearest).status,
            CeStatus::inconsistent);
  CeValue bad = value(0x15, 1, 1);
  bad.status = CeStatus::duplicate;
  EXPECT_EQ(ce_combine(value(0x15, 1, 1), bad, Rounding::nearest).status, CeStatus::duplicate);
  CeValue again{};
  set_ce_meta(again, ce_meta(bad));
  EXPECT_EQ(again.status, CeStatus::duplicate);
  EXPECT_EQ(again.command, 0x15);
  EXPECT_TRUE(again.two_operands);
}

}  // namespace
}  // namespace orrery::nic
