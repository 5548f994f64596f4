// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/call_while.hpp"

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define ORRERY_HAS_RSEQ 1
#endif
#endif

namespace orrery {

#if defined(ORRERY_HAS_RSEQ)

namespace {

// The words in front of an abort handler that the kernel asks for, in the shape of an instruction.
static_assert(RSEQ_SIG == 0x53053053);
constexpr int kTries = 4;

struct rseq& this_threads_area() {
  char* thread = nullptr;
  asm("movq %%fs:0, %0" : "=r"(thread));
  return *reinterpret_cast<struct rseq*>(thread + __rseq_offset);
}

}  // namespace

bool can_call_while() {
  // Negative: the kernel refused this thread, or was not asked yet.
  return __rseq_size != 0 && static_cast<std::int32_t>(this_threads_area().cpu_id) >= 0;
}

CallWhile call_while(const std::atomic<std::uint64_t>& word, std::uint64_t expected, long number,
                     const std::array<std::uint64_t, 6>& arguments) {
  struct rseq& area = this_threads_area();
  for (int i = 0; i < kTries; ++i) {
    long result = number;
    std::uint64_t outcome = 0;  // called
    asm volatile(
        // struct rseq_cs: version, flags, first instruction, length, where to go on when interrupted.
        ".pushsection __rseq_cs, \"aw\"\n\t"
        ".balign 32\n"
        "7:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        "movq (%[arguments]), %%rdi\n\t"
        "movq 8(%[arguments]), %%rsi\n\t"
        "movq 16(%[arguments]), %%rdx\n\t"
        "movq 24(%[arguments]), %%r10\n\t"
        "movq 32(%[arguments]), %%r8\n\t"
        "movq 40(%[arguments]), %%r9\n\t"
        "leaq 7b(%%rip), %%rcx\n\t"
        "movq %%rcx, %[sequence]\n"
        "1:\n\t"
        "cmpq %[expected], %[word]\n\t"
        "jne 3f\n\t"
        "syscall\n"  // the last of the sequence: from here on nothing is done again
        "2:\n\t"
        "jmp 5f\n"
        "3:\n\t"
        "movl $1, %k[outcome]\n\t"
        "jmp 5f\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        "4:\n\t"
        "movl $2, %k[outcome]\n"
        "5:\n\t"
        // The kernel would look at it again when this library is gone.
        "movq $0, %[sequence]"
        : "+a"(result), [outcome] "+r"(outcome), [sequence] "=m"(area.rseq_cs)
        : [word] "m"(word), [expected] "r"(expected), [arguments] "r"(arguments.data())
        : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    if (outcome == 0) return {CallWhile::Outcome::called, result};
    if (outcome == 1) return {CallWhile::Outcome::changed};
  }
  return {CallWhile::Outcome::interrupted};
}

#else

bool can_call_while() { return false; }

CallWhile call_while(const std::atomic<std::uint64_t>&, std::uint64_t, long,
                     const std::array<std::uint64_t, 6>&) {
  return {CallWhile::Outcome::interrupted};
}

#endif

}  // namespace orrery
