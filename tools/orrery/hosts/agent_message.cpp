// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/hosts/agent_message.hpp"

#include "emu/job/host_directory.hpp"

#include <charconv>

namespace orrery::tool {

namespace {

constexpr std::size_t kHeadBytes = 5;  // kind and rank

void put_u32(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

bool is_kind(std::uint8_t value) { return (value >= 1 && value <= 4) || (value >= 16 && value <= 22); }

void put_text(std::string& out, std::string_view text) {
  put_u32(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Reads numbers and texts one after the other; after a failure everything is empty.
struct Reader {
  std::string_view rest;
  bool good = true;

  std::uint32_t number() {
    if (rest.size() < 4) good = false;
    if (!good) return 0;
    const std::uint32_t value = u32_at(rest, 0);
    rest.remove_prefix(4);
    return value;
  }
  std::string text() {
    const std::uint32_t length = number();
    if (length > rest.size()) good = false;
    if (!good) return {};
    std::string value(rest.substr(0, length));
    rest.remove_prefix(length);
    // They become arguments and variables of a process.
    if (value.find('\0') != std::string::npos) good = false;
    return value;
  }
  std::vector<std::string> texts() {
    const std::uint32_t count = number();
    std::vector<std::string> values;
    for (std::uint32_t i = 0; i < count && good; ++i) values.push_back(text());
    return values;
  }
};

}  // namespace

constinit const std::string_view kAgentHello = "orrery-agent " ORRERY_VERSION;

void write_message(std::string& out, AgentKind kind, std::uint32_t rank, std::string_view bytes) {
  put_u32(out, static_cast<std::uint32_t>(kHeadBytes + bytes.size()));
  out += static_cast<char>(kind);
  put_u32(out, rank);
  out += bytes;
}

std::optional<AgentMessage> AgentMessageBuffer::pop() {
  const std::string_view all = rest();
  if (broken_ || all.size() < 4) return std::nullopt;
  const std::size_t length = u32_at(all, 0);
  if (length < kHeadBytes || length > kAgentMessageMax ||
      (all.size() > 4 && !is_kind(static_cast<std::uint8_t>(all[4])))) {
    broken_ = true;
    return std::nullopt;
  }
  if (all.size() < 4 + length) return std::nullopt;
  AgentMessage message{static_cast<AgentKind>(all[4]), u32_at(all, 5),
                       std::string(all.substr(4 + kHeadBytes, length - kHeadBytes))};
  at_ += 4 + length;
  // Not each time: that would move a long buffer once for each message in it.
  if (at_ == held_.size() || at_ > (std::size_t{1} << 16)) {
    held_.erase(0, at_);
    at_ = 0;
  }
  return message;
}

std::string encode_start(const StartRequest& request) {
  std::string out;
  for (const std::uint32_t number :
       {request.size, request.first, request.count, request.bind_to_cores ? 1u : 0u})
    put_u32(out, number);
  put_text(out, request.folder);
  for (const auto* list : {&request.command, &request.environment}) {
    put_u32(out, static_cast<std::uint32_t>(list->size()));
    for (const std::string& text : *list) put_text(out, text);
  }
  return out;
}

std::optional<StartRequest> decode_start(std::string_view bytes) {
  Reader reader{bytes};
  StartRequest request;
  request.size = reader.number();
  request.first = reader.number();
  request.count = reader.number();
  const std::uint32_t bind = reader.number();
  request.bind_to_cores = bind == 1;
  request.folder = reader.text();
  request.command = reader.texts();
  request.environment = reader.texts();
  if (!reader.good || !reader.rest.empty() || bind > 1 || request.command.empty()) return std::nullopt;
  if (request.size == 0 || request.size > job::HostDirectory::kMaxPes || request.count == 0 ||
      request.count > request.size || request.first > request.size - request.count)
    return std::nullopt;
  return request;
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || number > most)
    return std::nullopt;
  return number;
}

}  // namespace orrery::tool
