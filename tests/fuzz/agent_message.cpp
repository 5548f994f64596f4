// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What comes from another host before anything of it is trusted: an agent's messages, cut anywhere. The first
// byte says how the bytes are cut, or that they are a request to start PEs.
#include "tools/orrery/hosts/agent_message.hpp"
#include "emu/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace orrery::tool;

// The messages in `bytes` when they come in pieces, written again.
std::string read_in_pieces(std::string_view bytes, std::size_t piece, bool* broken) {
  AgentMessageBuffer buffer;
  std::string again;
  for (std::size_t at = 0; at < bytes.size() && !buffer.broken(); at += piece) {
    buffer.push(bytes.substr(at, piece));
    while (const auto message = buffer.pop()) {
      ORRERY_CHECK(message->bytes.size() <= kAgentMessageMax, "length");
      write_message(again, message->kind, message->rank, message->bytes);
      (void)parse_number(message->bytes, 1000);
    }
  }
  *broken = buffer.broken();
  ORRERY_CHECK(buffer.rest().size() <= bytes.size(), "rest");
  return again;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    if (const auto request = decode_start(bytes)) {
      ORRERY_CHECK(encode_start(*request) == bytes, "a request is written as it was read");
      ORRERY_CHECK(request->first + request->count <= request->size && !request->command.empty(), "PEs");
    }
    return 0;
  }
  bool broken_at_once = false;
  bool broken_later = false;
  const std::string at_once = read_in_pieces(bytes, std::max<std::size_t>(bytes.size(), 1), &broken_at_once);
  const std::string later = read_in_pieces(bytes, 1 + data[0] / 2, &broken_later);
  ORRERY_CHECK(at_once == later && broken_at_once == broken_later, "however it is cut");
  ORRERY_CHECK(bytes.starts_with(at_once), "nothing is made up");
  return 0;
}
