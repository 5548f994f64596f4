// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>

#include <dmapp.h>

// Every constant of the header, with the value that clients know or that docs/sources.md records, and what
// clients ask of the types.
namespace {

struct Value {
  const char* name;
  std::uint64_t value;
  std::uint64_t expected;
};
#define VALUE(name, expected) \
  Value { #name, static_cast < std::uint64_t>(name), expected }

constexpr Value kResults[] = {
    VALUE(DMAPP_RC_SUCCESS, 0),         VALUE(DMAPP_RC_INVALID_PARAM, 1),
    VALUE(DMAPP_RC_ALIGNMENT_ERROR, 2), VALUE(DMAPP_RC_TRANSACTION_ERROR, 3),
    VALUE(DMAPP_RC_RESOURCE_ERROR, 4),  VALUE(DMAPP_RC_PERMISSION_ERROR, 5),
    VALUE(DMAPP_RC_NO_SPACE, 6),        VALUE(DMAPP_RC_NOT_DONE, 7),
    VALUE(DMAPP_RC_NOT_SUPPORTED, 8),   VALUE(DMAPP_RC_NOT_FOUND, 9),
    VALUE(DMAPP_RC_BUSY, 10),           VALUE(DMAPP_RC_NOT_USED, 11),
};
constexpr Value kTypes[] = {
    VALUE(DMAPP_BYTE, 0),
    VALUE(DMAPP_DW, 1),
    VALUE(DMAPP_QW, 2),
    VALUE(DMAPP_DQW, 3),
};
constexpr Value kRoutings[] = {
    VALUE(DMAPP_ROUTING_IN_ORDER, 0),   VALUE(DMAPP_ROUTING_DETERMINISTIC, 1),
    VALUE(DMAPP_ROUTING_ADAPTIVE, 2),   VALUE(DMAPP_ROUTING_DETERMINISTIC_1, 3),
    VALUE(DMAPP_ROUTING_ADAPTIVE_1, 4), VALUE(DMAPP_ROUTING_ADAPTIVE_2, 5),
    VALUE(DMAPP_ROUTING_ADAPTIVE_3, 6),
};
constexpr Value kOrderings[] = {
    VALUE(DMAPP_PI_ORDERING_STRICT, 0),
    VALUE(DMAPP_PI_ORDERING_DEFAULT, 1),
    VALUE(DMAPP_PI_ORDERING_RELAXED, 2),
};
constexpr Value kLimits[] = {
    VALUE(DMAPP_OFFLOAD_THRESHOLD, 4096),
    VALUE(DMAPP_MIN_OUTSTANDING_NB, 32),
    VALUE(DMAPP_DEF_OUTSTANDING_NB, 1024),
    VALUE(DMAPP_MAX_OUTSTANDING_NB, 32768),
    VALUE(DMAPP_MAX_THREADS_UNLIMITED, 0xffff'ffff),
    VALUE(DMAPP_QUEUE_DEFAULT_DEPTH, 64),
    VALUE(DMAPP_QUEUE_DEFAULT_NELEMS, 32),
    VALUE(DMAPP_QUEUE_MAX_NELEMS, 1024),
    VALUE(DMAPP_QUEUE_ASYNC_PROGRESS, 1),
};
constexpr Value kAmos[] = {
    VALUE(DMAPP_AMO_ADD, 1),    VALUE(DMAPP_AMO_AND, 2),    VALUE(DMAPP_AMO_OR, 3),
    VALUE(DMAPP_AMO_XOR, 4),    VALUE(DMAPP_AMO_AX, 5),     VALUE(DMAPP_AMO_CSWAP, 6),
    VALUE(DMAPP_AMO_SWAP, 7),   VALUE(DMAPP_AMO_MIN, 8),    VALUE(DMAPP_AMO_MAX, 9),
    VALUE(DMAPP_AMO_FPADD, 10), VALUE(DMAPP_AMO_FPMIN, 11), VALUE(DMAPP_AMO_FPMAX, 12),
};
constexpr Value kCollectives[] = {
    VALUE(DMAPP_C_INT32, 0x100),
    VALUE(DMAPP_C_INT64, 0x101),
    VALUE(DMAPP_C_UINT32, 0x102),
    VALUE(DMAPP_C_UINT64, 0x103),
    VALUE(DMAPP_C_FLOAT, 0x104),
    VALUE(DMAPP_C_DOUBLE, 0x105),
    VALUE(DMAPP_C_SUM, 0x200),
    VALUE(DMAPP_C_PROD, 0x201),
    VALUE(DMAPP_C_MIN, 0x202),
    VALUE(DMAPP_C_MAX, 0x203),
    VALUE(DMAPP_C_AND, 0x204),
    VALUE(DMAPP_C_OR, 0x205),
    VALUE(DMAPP_C_XOR, 0x206),
    VALUE(DMAPP_C_PSET_DELIMITER_STRIDED, 0x300),
    VALUE(DMAPP_C_PSET_DELIMITER_LIST, 0x301),
    VALUE(DMAPP_C_PSET_MODE_CONCAT, 1),
};

template <std::size_t kCount>
void check(const Value (&values)[kCount]) {
  for (const Value& one : values) EXPECT_EQ(one.value, one.expected) << one.name;
}

TEST(DmappValues, AreThoseThatTheSourcesRecord) {
  check(kResults);
  check(kTypes);
  check(kRoutings);
  check(kOrderings);
  check(kLimits);
  check(kAmos);
  check(kCollectives);
}

// A collective type that is taken for an element's type, as some programs do, is refused.
TEST(DmappValues, CollectiveTypesAreNoElementTypes) {
  std::set<std::uint64_t> types;
  for (const Value& one : kTypes) types.insert(one.value);
  for (const Value& one : kCollectives) {
    if (std::strcmp(one.name, "DMAPP_C_PSET_MODE_CONCAT") == 0) continue;
    EXPECT_EQ(types.count(one.value), 0u) << one.name;
  }
}

// Clients ask for 1,024 and demand it, strictly between the ends.
TEST(DmappValues, OutstandingRequestsHaveRoomForWhatClientsAsk) {
  static_assert(DMAPP_MIN_OUTSTANDING_NB < 1024 && 1024 < DMAPP_MAX_OUTSTANDING_NB);
  static_assert(DMAPP_MIN_OUTSTANDING_NB <= DMAPP_DEF_OUTSTANDING_NB &&
                DMAPP_DEF_OUTSTANDING_NB <= DMAPP_MAX_OUTSTANDING_NB);
  static_assert(DMAPP_QUEUE_DEFAULT_NELEMS <= DMAPP_QUEUE_MAX_NELEMS);
}

TEST(DmappValues, TypesAreAsClientsUseThem) {
  // Descriptors and handles are copied by value, compared and sent as bytes.
  static_assert(sizeof(dmapp_seg_desc_t) == 64 && std::is_trivially_copyable_v<dmapp_seg_desc_t>);
  static_assert(std::is_same_v<decltype(dmapp_seg_desc_t::addr), void*>);
  static_assert(std::is_same_v<decltype(dmapp_seg_desc_t::len), std::size_t>);
  // Clients allocate a pointer's bytes for each lock of an array.
  static_assert(sizeof(dmapp_lock_desc_t) == 8 && sizeof(dmapp_lock_desc_t) == sizeof(void*));
  static_assert(sizeof(dmapp_syncid_handle_t) == 8 && sizeof(dmapp_lock_handle_t) == 8 &&
                sizeof(dmapp_queue_handle_t) == 8 && sizeof(dmapp_c_pset_handle_t) == 8);
  // A PE is an int with a sign; the job tells it.
  static_assert(std::is_same_v<dmapp_pe_t, int>);
  static_assert(std::is_same_v<decltype(dmapp_jobinfo_t::pe), dmapp_pe_t>);
  static_assert(std::is_same_v<decltype(dmapp_jobinfo_t::npes), int>);
  static_assert(std::is_same_v<decltype(dmapp_jobinfo_t::data_seg), dmapp_seg_desc_t>);
  static_assert(std::is_same_v<decltype(dmapp_jobinfo_t::sheap_seg), dmapp_seg_desc_t>);
  // The members that clients set, and the short form's, which begin the long one.
  dmapp_rma_attrs_ext_t attributes = {0};
  attributes.queue_depth = 128;
  attributes.queue_nelems = DMAPP_QUEUE_MAX_NELEMS;
  attributes.queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS;
  attributes.PI_ordering = DMAPP_PI_ORDERING_RELAXED;
  attributes.max_concurrency = DMAPP_MAX_THREADS_UNLIMITED;
  EXPECT_EQ(attributes.max_concurrency, 0xffff'ffffu);
  static_assert(sizeof attributes.queue_depth == 4 && sizeof attributes.queue_nelems == 4 &&
                sizeof attributes.queue_flags == 8);
  static_assert(sizeof(dmapp_rma_attrs_t) == 20);
  // <dmapp.h> has uGNI's types.
  const gni_return_t known = GNI_RC_SUCCESS;
  EXPECT_EQ(known, 0);
}

TEST(DmappValues, EveryResultHasASentenceOfItsOwn) {
  std::set<std::string> sentences;
  for (const Value& one : kResults) {
    const char* text = nullptr;
    EXPECT_EQ(dmapp_explain_error(static_cast<dmapp_return_t>(one.value), &text), DMAPP_RC_SUCCESS)
        << one.name;
    ASSERT_NE(text, nullptr) << one.name;
    EXPECT_TRUE(sentences.insert(text).second) << one.name << ": " << text;
  }
}

}  // namespace
