// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The two records that pass over a descriptor socket: what decodes, encodes to the same bytes.
#include "emu/job/wireup_record.hpp"
#include "emu/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::job;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto request = decode_request(bytes);
  if (request.ok()) {
    const auto again = encode(request.value());
    ORRERY_CHECK(std::equal(bytes.begin(), bytes.end(), again.begin(), again.end()), "request");
    ORRERY_CHECK(request.value().process.index < HostDirectory::kMaxProcesses, "index");
  }
  const auto reply = decode_reply(bytes);
  if (reply.ok()) {
    const auto again = encode(reply.value());
    ORRERY_CHECK(std::equal(bytes.begin(), bytes.end(), again.begin(), again.end()), "reply");
  }
  return 0;
}
