// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_line.hpp"

#include <gtest/gtest.h>

namespace orrery::job {
namespace {

TEST(PmiLine, FieldsAreFoundByName) {
  const auto line = PmiLine::parse("cmd=get_result rc=-1  msg=key=x value=");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line.value().command(), "get_result");
  EXPECT_EQ(line.value().number("rc"), -1);
  EXPECT_EQ(line.value().get("msg"), "key=x");
  EXPECT_EQ(line.value().get("value"), "");
  EXPECT_FALSE(line.value().get("key"));
  EXPECT_FALSE(line.value().number("msg"));
}

TEST(PmiLine, MalformedLinesAreCorrupt) {
  for (const char* text :
       {"", " ", "cmd", "=x", "cmd=a b", "c d=e", "cmd=\x01", "cmd=a\tb=c", "cmd=\xc3\xa4", "c\xff=a"}) {
    EXPECT_EQ(PmiLine::parse(text).code(), Errc::corrupt) << text;
  }
  EXPECT_EQ(PmiLine::parse(std::string_view("cmd=a\0b", 7)).code(), Errc::corrupt);
}

TEST(PmiLine, LengthAndNumberOfFieldsAreBounded) {
  EXPECT_TRUE(PmiLine::parse("a=" + std::string(kPmiLineMax - 2, 'x')).ok());
  EXPECT_EQ(PmiLine::parse("a=" + std::string(kPmiLineMax - 1, 'x')).code(), Errc::size);
  std::string many;
  for (std::size_t i = 0; i < kPmiFieldsMax; ++i) many += "a=b ";
  EXPECT_TRUE(PmiLine::parse(many).ok());
  EXPECT_EQ(PmiLine::parse(many + "a=b").code(), Errc::corrupt);
}

TEST(PmiLine, LineWithoutACommandHasNone) {
  EXPECT_EQ(PmiLine::parse("rc=0 cmd=put").value().command(), "");
  EXPECT_EQ(PmiLine::parse("mcmd=spawn").value().command(), "spawn");
}

TEST(PmiLineBuffer, CutsAStreamAnywhere) {
  PmiLineBuffer buffer;
  ASSERT_TRUE(buffer.push("cmd=a\ncm"));
  EXPECT_EQ(buffer.pop(), "cmd=a");
  EXPECT_FALSE(buffer.pop());
  ASSERT_TRUE(buffer.push("d=b\n\ncmd=c"));
  EXPECT_EQ(buffer.pop(), "cmd=b");
  EXPECT_EQ(buffer.pop(), "");
  EXPECT_FALSE(buffer.pop());
}

TEST(PmiLineBuffer, RefusesALineWithoutEnd) {
  PmiLineBuffer buffer;
  ASSERT_TRUE(buffer.push(std::string(kPmiLineMax, 'x')));
  EXPECT_FALSE(buffer.push("x"));
}

TEST(PmiValue, AnyBytesSurviveEncoding) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    const auto text = encode_pmi_value(bytes);
    EXPECT_TRUE(text.empty() || is_pmi_token(text));
    EXPECT_EQ(decode_pmi_value(text).value(), bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(PmiValue, TextThatIsNoneIsCorrupt) {
  for (const char* text : {"A", "AAAAA", "AA=A", "A A", "\xff\xff"}) {
    EXPECT_EQ(decode_pmi_value(text).code(), Errc::corrupt) << text;
  }
}

}  // namespace
}  // namespace orrery::job
