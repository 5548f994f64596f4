// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "include/gni/gni_pub.h"

#include <gtest/gtest.h>

#include <set>

// The two command sets of the NIC, typed from the interface facts, and the rules that their bits follow.
namespace {

struct FmaCommand {
  gni_fma_cmd_type_t ours;
  int documented;
};
constexpr FmaCommand kFmaCommands[] = {
    {GNI_FMA_ATOMIC_FADD, 0x008},       {GNI_FMA_ATOMIC_FADD_C, 0x018},
    {GNI_FMA_ATOMIC_FAND, 0x009},       {GNI_FMA_ATOMIC_FAND_C, 0x019},
    {GNI_FMA_ATOMIC_FOR, 0x00A},        {GNI_FMA_ATOMIC_FOR_C, 0x01A},
    {GNI_FMA_ATOMIC_FXOR, 0x00B},       {GNI_FMA_ATOMIC_FXOR_C, 0x01B},
    {GNI_FMA_ATOMIC_FAX, 0x00C},        {GNI_FMA_ATOMIC_FAX_C, 0x01C},
    {GNI_FMA_ATOMIC_CSWAP, 0x00D},      {GNI_FMA_ATOMIC_CSWAP_C, 0x01D},
    {GNI_FMA_ATOMIC2_FAND_S, 0x240},    {GNI_FMA_ATOMIC2_FAND, 0x041},
    {GNI_FMA_ATOMIC2_FAND_SC, 0x260},   {GNI_FMA_ATOMIC2_FAND_C, 0x061},
    {GNI_FMA_ATOMIC2_FOR_S, 0x242},     {GNI_FMA_ATOMIC2_FOR, 0x043},
    {GNI_FMA_ATOMIC2_FOR_SC, 0x262},    {GNI_FMA_ATOMIC2_FOR_C, 0x063},
    {GNI_FMA_ATOMIC2_FXOR_S, 0x244},    {GNI_FMA_ATOMIC2_FXOR, 0x045},
    {GNI_FMA_ATOMIC2_FXOR_SC, 0x264},   {GNI_FMA_ATOMIC2_FXOR_C, 0x065},
    {GNI_FMA_ATOMIC2_FSWAP_S, 0x246},   {GNI_FMA_ATOMIC2_FSWAP, 0x047},
    {GNI_FMA_ATOMIC2_FSWAP_SC, 0x266},  {GNI_FMA_ATOMIC2_FSWAP_C, 0x067},
    {GNI_FMA_ATOMIC2_FAX_S, 0x248},     {GNI_FMA_ATOMIC2_FAX, 0x049},
    {GNI_FMA_ATOMIC2_FAX_SC, 0x268},    {GNI_FMA_ATOMIC2_FAX_C, 0x069},
    {GNI_FMA_ATOMIC2_FCSWAP_S, 0x24A},  {GNI_FMA_ATOMIC2_FCSWAP, 0x04B},
    {GNI_FMA_ATOMIC2_FCSWAP_SC, 0x26A}, {GNI_FMA_ATOMIC2_FCSWAP_C, 0x06B},
    {GNI_FMA_ATOMIC2_FIMIN_S, 0x250},   {GNI_FMA_ATOMIC2_FIMIN, 0x051},
    {GNI_FMA_ATOMIC2_FIMIN_SC, 0x270},  {GNI_FMA_ATOMIC2_FIMIN_C, 0x071},
    {GNI_FMA_ATOMIC2_FIMAX_S, 0x252},   {GNI_FMA_ATOMIC2_FIMAX, 0x053},
    {GNI_FMA_ATOMIC2_FIMAX_SC, 0x272},  {GNI_FMA_ATOMIC2_FIMAX_C, 0x073},
    {GNI_FMA_ATOMIC2_FIADD_S, 0x254},   {GNI_FMA_ATOMIC2_FIADD, 0x055},
    {GNI_FMA_ATOMIC2_FIADD_SC, 0x274},  {GNI_FMA_ATOMIC2_FIADD_C, 0x075},
    {GNI_FMA_ATOMIC2_FFPMIN_S, 0x258},  {GNI_FMA_ATOMIC2_FFPMIN, 0x059},
    {GNI_FMA_ATOMIC2_FFPMIN_SC, 0x278}, {GNI_FMA_ATOMIC2_FFPMIN_C, 0x079},
    {GNI_FMA_ATOMIC2_FFPMAX_S, 0x25A},  {GNI_FMA_ATOMIC2_FFPMAX, 0x05B},
    {GNI_FMA_ATOMIC2_FFPMAX_SC, 0x27A}, {GNI_FMA_ATOMIC2_FFPMAX_C, 0x07B},
    {GNI_FMA_ATOMIC2_FFPADD_S, 0x25C},  {GNI_FMA_ATOMIC2_FFPADD, 0x05D},
    {GNI_FMA_ATOMIC2_FFPADD_SC, 0x27C}, {GNI_FMA_ATOMIC2_FFPADD_C, 0x07D},
    {GNI_FMA_ATOMIC_ADD, 0x108},        {GNI_FMA_ATOMIC_ADD_C, 0x118},
    {GNI_FMA_ATOMIC_AND, 0x109},        {GNI_FMA_ATOMIC_AND_C, 0x119},
    {GNI_FMA_ATOMIC_OR, 0x10A},         {GNI_FMA_ATOMIC_OR_C, 0x11A},
    {GNI_FMA_ATOMIC_XOR, 0x10B},        {GNI_FMA_ATOMIC_XOR_C, 0x11B},
    {GNI_FMA_ATOMIC_AX, 0x10C},         {GNI_FMA_ATOMIC_AX_C, 0x11C},
    {GNI_FMA_ATOMIC2_AND_S, 0x340},     {GNI_FMA_ATOMIC2_AND, 0x141},
    {GNI_FMA_ATOMIC2_AND_SC, 0x360},    {GNI_FMA_ATOMIC2_AND_C, 0x161},
    {GNI_FMA_ATOMIC2_OR_S, 0x342},      {GNI_FMA_ATOMIC2_OR, 0x143},
    {GNI_FMA_ATOMIC2_OR_SC, 0x362},     {GNI_FMA_ATOMIC2_OR_C, 0x163},
    {GNI_FMA_ATOMIC2_XOR_S, 0x344},     {GNI_FMA_ATOMIC2_XOR, 0x145},
    {GNI_FMA_ATOMIC2_XOR_SC, 0x364},    {GNI_FMA_ATOMIC2_XOR_C, 0x165},
    {GNI_FMA_ATOMIC2_SWAP_S, 0x346},    {GNI_FMA_ATOMIC2_SWAP, 0x147},
    {GNI_FMA_ATOMIC2_SWAP_SC, 0x366},   {GNI_FMA_ATOMIC2_SWAP_C, 0x167},
    {GNI_FMA_ATOMIC2_AX_S, 0x348},      {GNI_FMA_ATOMIC2_AX, 0x149},
    {GNI_FMA_ATOMIC2_AX_SC, 0x368},     {GNI_FMA_ATOMIC2_AX_C, 0x169},
    {GNI_FMA_ATOMIC2_CSWAP_S, 0x34A},   {GNI_FMA_ATOMIC2_CSWAP, 0x14B},
    {GNI_FMA_ATOMIC2_CSWAP_SC, 0x36A},  {GNI_FMA_ATOMIC2_CSWAP_C, 0x16B},
    {GNI_FMA_ATOMIC2_IMIN_S, 0x350},    {GNI_FMA_ATOMIC2_IMIN, 0x151},
    {GNI_FMA_ATOMIC2_IMIN_SC, 0x370},   {GNI_FMA_ATOMIC2_IMIN_C, 0x171},
    {GNI_FMA_ATOMIC2_IMAX_S, 0x352},    {GNI_FMA_ATOMIC2_IMAX, 0x153},
    {GNI_FMA_ATOMIC2_IMAX_SC, 0x372},   {GNI_FMA_ATOMIC2_IMAX_C, 0x173},
    {GNI_FMA_ATOMIC2_IADD_S, 0x354},    {GNI_FMA_ATOMIC2_IADD, 0x155},
    {GNI_FMA_ATOMIC2_IADD_SC, 0x374},   {GNI_FMA_ATOMIC2_IADD_C, 0x175},
    {GNI_FMA_ATOMIC2_FPMIN_S, 0x358},   {GNI_FMA_ATOMIC2_FPMIN, 0x159},
    {GNI_FMA_ATOMIC2_FPMIN_SC, 0x378},  {GNI_FMA_ATOMIC2_FPMIN_C, 0x179},
    {GNI_FMA_ATOMIC2_FPMAX_S, 0x35A},   {GNI_FMA_ATOMIC2_FPMAX, 0x15B},
    {GNI_FMA_ATOMIC2_FPMAX_SC, 0x37A},  {GNI_FMA_ATOMIC2_FPMAX_C, 0x17B},
    {GNI_FMA_ATOMIC2_FPADD_S, 0x35C},   {GNI_FMA_ATOMIC2_FPADD, 0x15D},
    {GNI_FMA_ATOMIC2_FPADD_SC, 0x37C},  {GNI_FMA_ATOMIC2_FPADD_C, 0x17D},
};

struct CeCommand {
  gni_ce_cmd_type_t ours;
  int documented;
};
constexpr CeCommand kCeCommands[] = {
    {GNI_FMA_CE_AND_S, 0x0},         {GNI_FMA_CE_AND, 0x1},
    {GNI_FMA_CE_OR_S, 0x2},          {GNI_FMA_CE_OR, 0x3},
    {GNI_FMA_CE_XOR_S, 0x4},         {GNI_FMA_CE_XOR, 0x5},
    {GNI_FMA_CE_IMIN_LIDX_S, 0x10},  {GNI_FMA_CE_IMIN_LIDX, 0x11},
    {GNI_FMA_CE_IMAX_LIDX_S, 0x12},  {GNI_FMA_CE_IMAX_LIDX, 0x13},
    {GNI_FMA_CE_IADD_S, 0x14},       {GNI_FMA_CE_IADD, 0x15},
    {GNI_FMA_CE_FPMIN_LIDX_S, 0x18}, {GNI_FMA_CE_FPMIN_LIDX, 0x19},
    {GNI_FMA_CE_FPMAX_LIDX_S, 0x1a}, {GNI_FMA_CE_FPMAX_LIDX, 0x1b},
    {GNI_FMA_CE_FPADD_S, 0x1c},      {GNI_FMA_CE_FPADD, 0x1d},
    {GNI_FMA_CE_IMIN_GIDX_S, 0x30},  {GNI_FMA_CE_IMIN_GIDX, 0x31},
    {GNI_FMA_CE_IMAX_GIDX_S, 0x32},  {GNI_FMA_CE_IMAX_GIDX, 0x33},
    {GNI_FMA_CE_FPMIN_GIDX_S, 0x38}, {GNI_FMA_CE_FPMIN_GIDX, 0x39},
    {GNI_FMA_CE_FPMAX_GIDX_S, 0x3a}, {GNI_FMA_CE_FPMAX_GIDX, 0x3b},
};

TEST(GniFmaCommands, HaveTheDocumentedValues) {
  std::set<int> seen;
  for (const FmaCommand& command : kFmaCommands) {
    EXPECT_EQ(static_cast<int>(command.ours), command.documented);
    seen.insert(command.documented);
  }
  EXPECT_EQ(seen.size(), 118u);
}

TEST(GniFmaCommands, ThirtyTwoBitOnesAreSecondGenerationAndPairWithA64BitOne) {
  std::set<int> all;
  for (const FmaCommand& command : kFmaCommands) all.insert(command.documented);
  int narrow = 0;
  for (const int value : all) {
    if ((value & 0x200) == 0) continue;
    ++narrow;
    EXPECT_NE(value & 0x40, 0) << std::hex << value;
    EXPECT_EQ(all.count((value & ~0x200) | 1), 1u) << std::hex << value;
  }
  EXPECT_EQ(narrow, 48);
}

TEST(GniFmaCommands, EveryCachedOneHasAnUncachedTwin) {
  std::set<int> all;
  for (const FmaCommand& command : kFmaCommands) all.insert(command.documented);
  for (const int value : all) {
    const bool second = (value & 0x40) != 0;
    const int cached = second ? 0x20 : 0x10;
    EXPECT_EQ(all.count(value ^ cached), 1u) << std::hex << value;
  }
}

TEST(GniCeCommands, HaveTheDocumentedValues) {
  std::set<int> seen;
  for (const CeCommand& command : kCeCommands) {
    EXPECT_EQ(static_cast<int>(command.ours), command.documented);
    seen.insert(command.documented);
  }
  EXPECT_EQ(seen.size(), 26u);
}

}  // namespace
