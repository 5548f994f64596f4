// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/atomic_unit.hpp"
#include "emu/nic/target/amo_unit.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

template <typename T>
constexpr AtomicType type_of();
#define ORRERY_TYPE(T, name)          \
  template <>                         \
  constexpr AtomicType type_of<T>() { \
    return AtomicType::name;          \
  }
ORRERY_TYPE(std::int8_t, int8)
ORRERY_TYPE(std::uint8_t, uint8)
ORRERY_TYPE(std::int16_t, int16)
ORRERY_TYPE(std::uint16_t, uint16)
ORRERY_TYPE(std::int32_t, int32)
ORRERY_TYPE(std::uint32_t, uint32)
ORRERY_TYPE(float, float32)
ORRERY_TYPE(std::int64_t, int64)
ORRERY_TYPE(std::uint64_t, uint64)
ORRERY_TYPE(double, float64)
ORRERY_TYPE(std::complex<float>, complex32)
ORRERY_TYPE(std::complex<double>, complex64)
ORRERY_TYPE(long double, long_double)
ORRERY_TYPE(std::complex<long double>, long_complex)
#undef ORRERY_TYPE

class AtomicUnit : public ::testing::Test {
 protected:
  AtomicAgent agent(std::uint16_t slot = 0) {
    return {
        .slot = slot,
        .generation = world_[slot].name().generation,
        .alive =
            [this](std::uint16_t s, std::uint32_t g) {
              return world_[0].alive({s, g});
            },
        .map = [](std::uint64_t address, std::uint64_t) { return reinterpret_cast<std::byte*>(address); }};
  }
  Errc apply(AtomicOp op, AtomicType type, void* target, std::span<const std::byte> data,
             const void* compare = nullptr, std::span<std::byte> old = {}) {
    return apply_atomic(world_[1].nic().view(), agent(),
                        {op, type, data, static_cast<const std::byte*>(compare), old},
                        static_cast<std::byte*>(target), reinterpret_cast<std::uint64_t>(target));
  }
  template <typename T>
  T one(AtomicOp op, T target, T data, T compare = {}) {
    alignas(32) T room[2] = {target, target};
    T old{};
    const Errc done = apply(op, type_of<T>(), room, std::as_bytes(std::span(&data, 1)), &compare,
                            std::as_writable_bytes(std::span(&old, 1)));
    EXPECT_EQ(done, Errc::ok);
    EXPECT_EQ(old, target);
    EXPECT_EQ(room[1], target) << "the neighbour changed";
    return room[0];
  }
  AtomicLock& lock_of(const void* target) {
    const auto address = reinterpret_cast<std::uint64_t>(target);
    return world_[1].nic().view().unit<AtomicLocks, kAtomicLockArea>().locks[(address >> 3 ^ address >> 13) %
                                                                             1024];
  }

  template <typename T>
  void check_numbers() {
    EXPECT_EQ(one<T>(AtomicOp::sum, T(5), T(7)), T(12));
    EXPECT_EQ(one<T>(AtomicOp::prod, T(5), T(7)), T(35));
    EXPECT_EQ(one<T>(AtomicOp::swap, T(5), T(7)), T(7));
    EXPECT_EQ(one<T>(AtomicOp::compare_swap, T(5), T(7), T(5)), T(7));
    EXPECT_EQ(one<T>(AtomicOp::compare_swap, T(5), T(7), T(6)), T(5));
    EXPECT_EQ(one<T>(AtomicOp::compare_swap_ne, T(5), T(7), T(5)), T(5));
    EXPECT_EQ(one<T>(AtomicOp::compare_swap_ne, T(5), T(7), T(6)), T(7));
  }
  template <typename T>
  void check_order() {
    check_numbers<T>();
    EXPECT_EQ(one<T>(AtomicOp::min, T(5), T(7)), T(5));
    EXPECT_EQ(one<T>(AtomicOp::min, T(7), T(5)), T(5));
    EXPECT_EQ(one<T>(AtomicOp::max, T(5), T(7)), T(7));
    EXPECT_EQ(one<T>(AtomicOp::max, T(7), T(5)), T(7));
    // The data are stored if `compare` stands so to what is there.
    for (int compare = 4; compare <= 6; ++compare) {
      const T c = T(compare);
      EXPECT_EQ(one<T>(AtomicOp::compare_swap_le, T(5), T(7), c), compare <= 5 ? T(7) : T(5));
      EXPECT_EQ(one<T>(AtomicOp::compare_swap_lt, T(5), T(7), c), compare < 5 ? T(7) : T(5));
      EXPECT_EQ(one<T>(AtomicOp::compare_swap_ge, T(5), T(7), c), compare >= 5 ? T(7) : T(5));
      EXPECT_EQ(one<T>(AtomicOp::compare_swap_gt, T(5), T(7), c), compare > 5 ? T(7) : T(5));
    }
    if (std::is_signed_v<T>) {
      EXPECT_EQ(one<T>(AtomicOp::min, T(5), T(-7)), T(-7));
      EXPECT_EQ(one<T>(AtomicOp::max, T(-5), T(-7)), T(-5));
    }
  }
  template <typename T>
  void check_integer() {
    check_order<T>();
    constexpr T kMax = std::numeric_limits<T>::max();
    EXPECT_EQ(one<T>(AtomicOp::sum, kMax, T(1)), std::numeric_limits<T>::min()) << "wraps";
    EXPECT_EQ(one<T>(AtomicOp::prod, kMax, kMax), T(1)) << "wraps";
    EXPECT_EQ(one<T>(AtomicOp::bit_or, T(5), T(3)), T(7));
    EXPECT_EQ(one<T>(AtomicOp::bit_and, T(5), T(3)), T(1));
    EXPECT_EQ(one<T>(AtomicOp::bit_xor, T(5), T(3)), T(6));
    EXPECT_EQ(one<T>(AtomicOp::masked_swap, T(0x55), T(0x22), T(0x0f)), T(0x52));
    for (const int a : {0, 5}) {
      for (const int b : {0, 3}) {
        EXPECT_EQ(one<T>(AtomicOp::logical_or, T(a), T(b)), T(a != 0 || b != 0));
        EXPECT_EQ(one<T>(AtomicOp::logical_and, T(a), T(b)), T(a != 0 && b != 0));
        EXPECT_EQ(one<T>(AtomicOp::logical_xor, T(a), T(b)), T((a != 0) != (b != 0)));
      }
    }
  }

  // Sums of many threads come out whole; `address` picks the alignment.
  template <typename T>
  void check_sum_of_threads(void* address) {
    const T zero{};
    std::memcpy(address, &zero, sizeof zero);
    constexpr int kEach = 3000;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        const T by(1);
        for (int i = 0; i < kEach; ++i)
          ASSERT_EQ(apply(AtomicOp::sum, type_of<T>(), address, std::as_bytes(std::span(&by, 1))), Errc::ok);
      });
    }
    for (auto& thread : threads) thread.join();
    T sum;
    std::memcpy(&sum, address, sizeof sum);
    EXPECT_EQ(sum, T(3 * kEach));
  }

  box::World world_{3, box::Path::direct};
};

TEST_F(AtomicUnit, IntegersOfEverySize) {
  check_integer<std::int8_t>();
  check_integer<std::uint8_t>();
  check_integer<std::int16_t>();
  check_integer<std::uint16_t>();
  check_integer<std::int32_t>();
  check_integer<std::uint32_t>();
  check_integer<std::int64_t>();
  check_integer<std::uint64_t>();
}

TEST_F(AtomicUnit, RealNumbers) {
  check_order<float>();
  check_order<double>();
  check_order<long double>();
  EXPECT_EQ(one<long double>(AtomicOp::sum, 1.0L, 0x1p-60L), 1.0L + 0x1p-60L) << "of full precision";
}

TEST_F(AtomicUnit, ComplexNumbers) {
  check_numbers<std::complex<float>>();
  check_numbers<std::complex<double>>();
  check_numbers<std::complex<long double>>();
  using C = std::complex<double>;
  EXPECT_EQ(one<C>(AtomicOp::prod, C(1, 2), C(3, 4)), C(-5, 10));
  EXPECT_EQ(one<C>(AtomicOp::compare_swap, C(1, 2), C(3, 4), C(1, 3)), C(1, 2));
}

TEST_F(AtomicUnit, OnlyTheOperationsThatThereAre) {
  int valid = 0;
  for (std::uint32_t op = 0; op < 40; ++op) {
    for (std::uint32_t type = 0; type < 40; ++type)
      valid += atomic_unit::is_valid(static_cast<AtomicOp>(op), static_cast<AtomicType>(type)) ? 1 : 0;
  }
  // 8 integers have 18, 3 real types the 11 without bits, 3 complex ones sum, prod, swap, and two
  // comparisons.
  EXPECT_EQ(valid, 8 * 18 + 3 * 11 + 3 * 5);
  alignas(32) std::byte target[64] = {};
  EXPECT_EQ(apply(AtomicOp::min, AtomicType::complex32, target, std::span(target, 8)), Errc::illegal_op);
  EXPECT_EQ(apply(AtomicOp::bit_or, AtomicType::float64, target, std::span(target, 8)), Errc::illegal_op);
  EXPECT_EQ(apply(static_cast<AtomicOp>(18), AtomicType::int8, target, std::span(target, 8)),
            Errc::illegal_op);
  EXPECT_EQ(apply(AtomicOp::sum, static_cast<AtomicType>(14), target, std::span(target, 8)),
            Errc::illegal_op);
}

TEST_F(AtomicUnit, ArraysElementByElement) {
  std::vector<std::int32_t> target = {1, 2, 3, 4};
  const std::vector<std::int32_t> data = {10, 20, 30};
  std::vector<std::int32_t> old(3);
  ASSERT_EQ(apply(AtomicOp::sum, AtomicType::int32, target.data(), std::as_bytes(std::span(data)), nullptr,
                  std::as_writable_bytes(std::span(old))),
            Errc::ok);
  EXPECT_EQ(target, (std::vector<std::int32_t>{11, 22, 33, 4}));
  EXPECT_EQ(old, (std::vector<std::int32_t>{1, 2, 3}));
}

TEST_F(AtomicUnit, ForeignLengthsAndAddressesAreRefusedAndChangeNothing) {
  alignas(32) std::byte target[64] = {};
  alignas(32) const std::byte data[64] = {std::byte{1}};
  std::byte old[8];
  EXPECT_EQ(apply(AtomicOp::swap, AtomicType::int32, target, std::span(data, 6)), Errc::size);
  EXPECT_EQ(apply(AtomicOp::swap, AtomicType::int32, target, std::span(data, 4), nullptr, old), Errc::size);
  EXPECT_EQ(apply(AtomicOp::swap, AtomicType::int32, target + 2, std::span(data, 4)), Errc::alignment);
  EXPECT_EQ(apply(AtomicOp::swap, AtomicType::long_double, target + 8, std::span(data, 16)), Errc::alignment);
  EXPECT_EQ(apply(AtomicOp::swap, AtomicType::complex64, target + 4, std::span(data, 16)), Errc::alignment);
  EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(AtomicUnit, IsAtomicForEveryTypeAndAlignment) {
  alignas(64) std::byte room[128];
  check_sum_of_threads<std::int8_t>(room + 1);
  check_sum_of_threads<std::uint16_t>(room + 2);
  check_sum_of_threads<float>(room + 4);
  check_sum_of_threads<double>(room + 8);
  check_sum_of_threads<std::complex<float>>(room);
  check_sum_of_threads<std::complex<float>>(room + 60);  // across a line
  check_sum_of_threads<std::complex<double>>(room);
  check_sum_of_threads<std::complex<double>>(room + 56);
  check_sum_of_threads<long double>(room + 16);
  check_sum_of_threads<std::complex<long double>>(room + 48);
}

// The AMO unit and this one on one word.
TEST_F(AtomicUnit, IsAtomicAgainstTheAmoUnit) {
  alignas(8) std::uint64_t word = 0;
  std::thread other([&] {
    for (int i = 0; i < 20'000; ++i) amo::apply<std::uint64_t>(&word, amo::command(AmoOp::add, 0), 1, 0);
  });
  const std::uint64_t by = 1;
  for (int i = 0; i < 20'000; ++i)
    ASSERT_EQ(apply(AtomicOp::sum, AtomicType::uint64, &word, std::as_bytes(std::span(&by, 1))), Errc::ok);
  other.join();
  EXPECT_EQ(word, 40'000u);
}

TEST_F(AtomicUnit, LockOfADeadHolderIsTakenOverAndItsStoreRepeated) {
  using C = std::complex<long double>;
  alignas(32) C target(1, 1);
  AtomicLock& lock = lock_of(&target);
  const C intended(5, 6);
  // It wrote down what it was storing, and died in the middle.
  lock.holder.store(std::uint64_t{2} << 1 | 1);
  std::memcpy(lock.value.data(), &intended, sizeof intended);
  lock.bytes = sizeof intended;
  lock.address.store(reinterpret_cast<std::uint64_t>(&target));
  AtomicAgent impatient = agent();
  impatient.patience_ns = 1'000'000;
  const C by(1, 0);
  const auto add = [&](const AtomicAgent& who) {
    return apply_atomic(
        world_[1].nic().view(), who,
        {.op = AtomicOp::sum, .type = AtomicType::long_complex, .data = std::as_bytes(std::span(&by, 1))},
        reinterpret_cast<std::byte*>(&target), reinterpret_cast<std::uint64_t>(&target));
  };
  EXPECT_EQ(add(impatient), Errc::timeout) << "it lives, and is stopped";
  EXPECT_EQ(target, C(1, 1));
  world_.kill(2);
  AtomicAgent blind = agent();
  blind.map = [](std::uint64_t, std::uint64_t) -> std::byte* { return nullptr; };
  EXPECT_EQ(add(blind), Errc::unreachable);
  EXPECT_EQ(add(agent()), Errc::ok);
  EXPECT_EQ(target, C(6, 6));
  EXPECT_EQ(lock.holder.load(), 0u);
  EXPECT_EQ(lock.address.load(), 0u);
}

}  // namespace
}  // namespace orrery::nic
