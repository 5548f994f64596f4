// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// PMI-1 lines: as single lines, as values, and as the bytes that a job of three PEs sends to the server. The
// first byte of each line says which PE sends it.
#include "emu/job/pmi_line.hpp"
#include "emu/base/check.hpp"
#include "emu/job/pmi_server.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::job;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = PmiLine::parse(text);
  if (line.ok()) {
    ORRERY_CHECK(size <= kPmiLineMax, "{} bytes", size);
    if (const auto value = line.value().get("value")) {
      ORRERY_CHECK(value->empty() || is_pmi_token(*value), "a value that is no token");
    }
  }
  const auto bytes = decode_pmi_value(text);
  if (bytes.ok()) {
    ORRERY_CHECK(decode_pmi_value(encode_pmi_value(bytes.value())).value() == bytes.value(), "{}", size);
  }

  constexpr std::uint32_t kPes = 3;
  PmiServer server(kPes, "kvs", "(vector,(0,1,3))");
  std::uint64_t barriers = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\n', 1);
    const auto piece = rest.substr(0, end == std::string_view::npos ? end : end + 1);
    rest.remove_prefix(piece.size());
    const std::uint32_t rank = static_cast<std::uint8_t>(piece[0]) % kPes;
    for (const auto& output : server.receive(rank, piece.substr(1))) {
      ORRERY_CHECK(output.rank < kPes && output.text.ends_with('\n'), "answer to {}", output.rank);
      const auto answer = PmiLine::parse(std::string_view(output.text).substr(0, output.text.size() - 1));
      ORRERY_CHECK(answer.ok(), "we do not understand our own answer: {}", output.text);
    }
    // No PE may be a barrier ahead of another: all leave together.
    for (std::uint32_t other = 0; other < kPes; ++other) {
      ORRERY_CHECK(server.barriers_done(other) == server.barriers_done(0), "barriers");
    }
    ORRERY_CHECK(server.barriers_done(0) >= barriers, "a barrier was undone");
    barriers = server.barriers_done(0);
  }
  return 0;
}
