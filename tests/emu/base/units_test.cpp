// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/units.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Units, ReadsWhatTheMachineFilesSay) {
  EXPECT_EQ(parse_duration("105 ns").value(), 105_ns);
  EXPECT_EQ(parse_duration("2.83 us").value(), Picos{2'830'000});
  EXPECT_EQ(parse_duration("0.33 ns").value(), Picos{330});
  EXPECT_EQ(parse_rate("4.6875 GB/s").value().bytes_per_second(), 4'687'500'000u);
  EXPECT_EQ(parse_rate("37.5 Gb/s").value(), parse_rate("4.6875 GB/s").value());
  EXPECT_EQ(parse_bytes("4 KiB").value(), Bytes{4096});
  EXPECT_EQ(parse_hertz("650 MHz").value(), Hertz{650'000'000});
  EXPECT_EQ(to_string(Hertz{650'000'000}), "650 MHz");
}

TEST(Units, RefusesWhatIsNotOneNumberAndOneUnit) {
  for (const char* text : {"", " ", "105", "105ns", "105  ns", "ns", ".5 ns", "5. ns", "1..2 ns", "-1 ns",
                           "+1 ns", "1e3 ns", "105 ns ", " 105 ns", "105 GB/s", "0x10 ns", "nan ns"}) {
    EXPECT_EQ(parse_duration(text).code(), Errc::invalid_param) << '"' << text << '"';
  }
  EXPECT_EQ(parse_rate("4.68 ns").code(), Errc::invalid_param);
  EXPECT_EQ(parse_rate("4.68 GB").code(), Errc::invalid_param);
  EXPECT_EQ(parse_bytes("64 b").code(), Errc::invalid_param);
}

TEST(Units, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_duration("999999999999999999 s").code(), Errc::bounds);
  EXPECT_EQ(parse_duration("1000000000000000000000 ps").code(), Errc::bounds);
  EXPECT_EQ(parse_rate("9999999999999 GB/s").code(), Errc::bounds);
  EXPECT_EQ(parse_bytes("99999999999999999 GiB").code(), Errc::bounds);
}

TEST(Units, WritesTextThatItsOwnParserReadsBack) {
  for (const std::int64_t count :
       {0ll, 1ll, 999ll, 1000ll, 8333ll, 105000ll, 2830000ll, 1300001ll, 5714286ll}) {
    EXPECT_EQ(parse_duration(to_string(Picos{count})).value(), Picos{count}) << to_string(Picos{count});
  }
  for (const std::uint64_t count : {1ull, 4687500000ull, 175000000ull, 400000000ull, 999ull}) {
    const auto rate = Rate::from_bytes_per_second(count);
    EXPECT_EQ(parse_rate(to_string(rate)).value(), rate) << to_string(rate);
  }
  for (const std::uint64_t count : {0ull, 1ull, 64ull, 384ull, 1000ull, 4096ull, 5000ull, 1ull << 30}) {
    EXPECT_EQ(parse_bytes(to_string(Bytes{count})).value(), Bytes{count}) << to_string(Bytes{count});
  }
  EXPECT_EQ(to_string(Picos{1300000}), "1.3 us");
  EXPECT_EQ(to_string(Picos{105000}), "105 ns");
}

TEST(Units, RoundsTransferTimesUpToAWholePicosecond) {
  const auto rate = parse_rate("175 MB/s").value();
  EXPECT_EQ(transfer_time(Bytes{1}, rate), Picos{5715});  // 5714.28...
  EXPECT_EQ(transfer_time(Bytes{7}, rate), Picos{40000});
  EXPECT_EQ(transfer_time(Bytes{1} * (std::uint64_t{4} << 30), Rate{}), Picos{0});
}

TEST(Units, PerByteAgreesWithTheExactTimeToAPartInTenMillion) {
  for (const char* text : {"175 MB/s", "1.171875 GB/s", "4.6875 GB/s", "10 GB/s", "100 GB/s"}) {
    const auto rate = parse_rate(text).value();
    const PerByte fast{rate};
    for (const std::uint64_t size : {std::uint64_t{64}, std::uint64_t{4096}, std::uint64_t{4} << 30}) {
      const auto exact = transfer_time(Bytes{size}, rate).count();
      EXPECT_LE(std::llabs(fast(size).count() - exact), 1 + exact / 10'000'000) << text << " " << size;
    }
  }
}

}  // namespace
}  // namespace orrery
