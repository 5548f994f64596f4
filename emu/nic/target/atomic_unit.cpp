// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/atomic_unit.hpp"

#include "emu/base/double_word.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/target/float_rules.hpp"

#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>

namespace orrery::nic {

namespace {

template <typename T>
T load_as(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
bool holds(AtomicOp op, T compare, T target) {
  if (op == AtomicOp::compare_swap) return compare == target;
  if (op == AtomicOp::compare_swap_ne) return compare != target;
  if constexpr (std::is_arithmetic_v<T>) {
    if (op == AtomicOp::compare_swap_le) return compare <= target;
    if (op == AtomicOp::compare_swap_lt) return compare < target;
    if (op == AtomicOp::compare_swap_ge) return compare >= target;
    if (op == AtomicOp::compare_swap_gt) return compare > target;
  }
  return false;
}

// Numbers that order, but for float32 and float64: those are the AMO unit's.
template <typename T>
T lesser(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(
        float_rules::min(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b)));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(
        float_rules::min(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)));
  else
    return b < a ? b : a;
}
template <typename T>
T greater(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(
        float_rules::max(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b)));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(
        float_rules::max(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)));
  else
    return a < b ? b : a;
}

template <typename T>
[[gnu::noinline]] T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(
        float_rules::add(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b)));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(
        float_rules::add(std::bit_cast<std::uint64_t>(a), std::bit_cast<std::uint64_t>(b)));
  } else {
    return a + b;
  }
}
template <typename T>
[[gnu::noinline]] T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Wider than int: products of narrow unsigned numbers would be those of ints, which may overflow.
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename T>
void combine_as(AtomicOp op, const std::byte* old_at, const std::byte* data_at, const std::byte* compare_at,
                std::byte* result_at) {
  const T old = load_as<T>(old_at);
  const T data = load_as<T>(data_at);
  T result = old;
  switch (op) {
    case AtomicOp::min:
      if constexpr (std::is_arithmetic_v<T>) result = lesser(old, data);
      break;
    case AtomicOp::max:
      if constexpr (std::is_arithmetic_v<T>) result = greater(old, data);
      break;
    case AtomicOp::sum:
      result = sum_of(old, data);
      break;
    case AtomicOp::prod:
      result = product_of(old, data);
      break;
    case AtomicOp::swap:
      result = data;
      break;
    case AtomicOp::compare_swap:
    case AtomicOp::compare_swap_ne:
    case AtomicOp::compare_swap_le:
    case AtomicOp::compare_swap_lt:
    case AtomicOp::compare_swap_ge:
    case AtomicOp::compare_swap_gt:
      if (holds(op, load_as<T>(compare_at), old)) result = data;
      break;
    default:
      if constexpr (std::is_integral_v<T>) {
        if (op == AtomicOp::logical_or) result = static_cast<T>(old != 0 || data != 0);
        if (op == AtomicOp::logical_and) result = static_cast<T>(old != 0 && data != 0);
        if (op == AtomicOp::logical_xor) result = static_cast<T>((old != 0) != (data != 0));
        if (op == AtomicOp::bit_or) result = static_cast<T>(old | data);
        if (op == AtomicOp::bit_and) result = static_cast<T>(old & data);
        if (op == AtomicOp::bit_xor) result = static_cast<T>(old ^ data);
        if (op == AtomicOp::masked_swap) {
          const T mask = load_as<T>(compare_at);
          result = static_cast<T>((old & ~mask) | (data & mask));
        }
      }
  }
  // A long double's last bytes mean nothing, and stay as they were.
  if (std::is_same_v<T, long double> && result_at != old_at) std::memcpy(result_at, old_at, sizeof(T));
  constexpr std::size_t kUsed = std::is_same_v<T, long double> ? 10 : sizeof(T);
  std::memcpy(result_at, &result, kUsed);
}

using Combine = void(AtomicOp, const std::byte*, const std::byte*, const std::byte*, std::byte*);
constexpr Combine* kCombine[kAtomicTypes] = {
    combine_as<std::int8_t>,
    combine_as<std::uint8_t>,
    combine_as<std::int16_t>,
    combine_as<std::uint16_t>,
    combine_as<std::int32_t>,
    combine_as<std::uint32_t>,
    combine_as<float>,
    combine_as<std::int64_t>,
    combine_as<std::uint64_t>,
    combine_as<double>,
    combine_as<std::complex<float>>,
    combine_as<std::complex<double>>,
    combine_as<long double>,
    combine_as<std::complex<long double>>,
};
static_assert(sizeof(long double) == 16 && sizeof(std::complex<long double>) == 32);

struct Element {
  const AtomicRequest& request;
  const std::byte* data;
  std::byte* old;  // room of the caller's
};

template <typename Word>
void swap_in_word(const Element& element, std::byte* target) {
  const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target));
  Word old = word.load(std::memory_order_acquire);
  Word value = 0;
  do {
    std::memcpy(element.old, &old, sizeof old);
    atomic_unit::combine(element.request.op, element.request.type, element.old, element.data,
                         element.request.compare, reinterpret_cast<std::byte*>(&value));
  } while (!word.compare_exchange_weak(old, value, std::memory_order_acq_rel));
}

void swap_in_double_word(const Element& element, std::byte* target) {
  auto* const halves = reinterpret_cast<std::uint64_t*>(target);
  DoubleWord value;
  for (;;) {
    // The halves may be of two moments: then the swap fails.
    DoubleWord old;
    old.low = std::atomic_ref(halves[0]).load(std::memory_order_acquire);
    old.high = std::atomic_ref(halves[1]).load(std::memory_order_acquire);
    std::memcpy(element.old, &old, sizeof old);
    atomic_unit::combine(element.request.op, element.request.type, element.old, element.data,
                         element.request.compare, reinterpret_cast<std::byte*>(&value));
    if (double_word_cas(target, old, value)) return;
  }
}

// ---- elements that no instruction changes ----

constexpr std::uint64_t holder_word(std::uint16_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 17 | std::uint64_t{slot} << 1 | 1;
}

Errc acquire(AtomicLock& lock, const AtomicAgent& agent) {
  const std::uint64_t self = holder_word(agent.slot, agent.generation);
  std::int64_t since = 0;
  for (std::uint32_t looks = 1;; ++looks) {
    std::uint64_t holder = 0;
    if (lock.holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) return Errc::ok;
    if (looks % 64 != 0) {
      cpu_relax();
      continue;
    }
    yield_cpu();
    if (holder != self &&
        !agent.alive(static_cast<std::uint16_t>(holder >> 1), static_cast<std::uint32_t>(holder >> 17)) &&
        lock.holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
      // What it had written down is stored, once more perhaps.
      const std::uint64_t address = lock.address.load(std::memory_order_acquire);
      if (address == 0) return Errc::ok;
      const std::uint64_t bytes = lock.bytes;
      std::byte* const at = bytes <= lock.value.size() ? agent.map(address, bytes) : nullptr;
      if (at == nullptr) {
        // Another one may reach it: the dead process holds the lock again.
        lock.holder.store(holder, std::memory_order_release);
        return Errc::unreachable;
      }
      std::memcpy(at, lock.value.data(), bytes);
      lock.address.store(0, std::memory_order_release);
      return Errc::ok;
    }
    const std::int64_t now = monotonic_ns();
    if (since == 0) since = now;
    if (now - since > agent.patience_ns) return Errc::timeout;
  }
}

Errc change_under_lock(const NicView& owner, const AtomicAgent& agent, const Element& element,
                       std::byte* target, std::uint64_t address) {
  auto& locks = owner.unit<AtomicLocks, kAtomicLockArea>().locks;
  AtomicLock& lock = locks[(address >> 3 ^ address >> 13) % std::size(locks)];
  if (const Errc got = acquire(lock, agent); got != Errc::ok) return got;
  const std::uint64_t bytes = atomic_unit::size_of(element.request.type);
  std::memcpy(element.old, target, bytes);
  atomic_unit::combine(element.request.op, element.request.type, element.old, element.data,
                       element.request.compare, lock.value.data());
  lock.bytes = bytes;
  // Release: a survivor that finds the address finds the value.
  lock.address.store(address, std::memory_order_release);
  std::memcpy(target, lock.value.data(), bytes);
  lock.address.store(0, std::memory_order_release);
  lock.holder.store(0, std::memory_order_release);
  return Errc::ok;
}

}  // namespace

void atomic_unit::combine(AtomicOp op, AtomicType type, const std::byte* old, const std::byte* data,
                          const std::byte* compare, std::byte* result) {
  if (is_integer(type)) return kCombine[static_cast<std::uint32_t>(type)](op, old, data, compare, result);
  const float_rules::DefaultEnvironment environment;
  kCombine[static_cast<std::uint32_t>(type)](op, old, data, compare, result);
}

Errc apply_atomic(const NicView& owner, const AtomicAgent& agent, const AtomicRequest& request,
                  std::byte* target, std::uint64_t address) {
  if (!atomic_unit::is_valid(request.op, request.type)) return Errc::illegal_op;
  const std::uint64_t bytes = atomic_unit::size_of(request.type);
  if (request.data.size() % bytes != 0) return Errc::size;
  if (!request.old.empty() && request.old.size() != request.data.size()) return Errc::size;
  if (address % atomic_unit::alignment_of(request.type) != 0 ||
      reinterpret_cast<std::uintptr_t>(target) % atomic_unit::alignment_of(request.type) != 0)
    return Errc::alignment;
  // The same for all processes: mappings differ by whole pages.
  const bool aligned = address % bytes == 0;
  alignas(16) std::array<std::byte, 32> room;
  for (std::uint64_t at = 0; at < request.data.size(); at += bytes) {
    const Element element{request, request.data.data() + at, room.data()};
    std::byte* const here = target + at;
    if (bytes == 1)
      swap_in_word<std::uint8_t>(element, here);
    else if (bytes == 2)
      swap_in_word<std::uint16_t>(element, here);
    else if (bytes == 4)
      swap_in_word<std::uint32_t>(element, here);
    else if (bytes == 8 && aligned)
      swap_in_word<std::uint64_t>(element, here);
    else if (bytes == 16 && aligned)
      swap_in_double_word(element, here);
    else if (const Errc done = change_under_lock(owner, agent, element, here, address + at); done != Errc::ok)
      return done;
    if (!request.old.empty()) std::memcpy(request.old.data() + at, room.data(), bytes);
  }
  return Errc::ok;
}

}  // namespace orrery::nic
