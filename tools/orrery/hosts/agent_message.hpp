// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What `orrery run --hosts` and its agents say to each other, over an agent's standard input and output:
//
//   message = length:u32 kind:u8 rank:u32 bytes     little-endian; length counts what follows it, 5 and more
//
// The agent begins with hello. A reader of a message that is too long, of an unknown kind or about a rank
// that is not the agent's gives the other end up. Not kept stable: both ends must be of one version, which
// hello says.
namespace orrery::tool {

enum class AgentKind : std::uint8_t {
  // To the agent.
  start = 1,   // StartRequest; once
  pmi = 2,     // PMI-1 bytes for that PE, or from it
  input = 3,   // standard input of that PE; no bytes: its end
  signal = 4,  // one byte: for the group of every PE; SIGCONT follows a SIGTERM by itself
  // From the agent.
  hello = 16,    // kAgentHello
  started = 17,  // pid of that PE, decimal
  refused = 18,  // that PE could not be started: why
  out = 19,      // what it wrote
  err = 20,
  exited = 21,  // its status as waitpid gives it, decimal
  bye = 22,     // all PEs have ended and all is said
};

struct AgentMessage {
  AgentKind kind{};
  std::uint32_t rank = 0;
  std::string bytes;
};

// Longest message: the environment and arguments of a program are at most 2 MiB on Linux by default.
inline constexpr std::size_t kAgentMessageMax = std::size_t{8} << 20;
extern const std::string_view kAgentHello;

// Appends a message to `out`. REQUIRES: bytes.size() + 5 <= kAgentMessageMax.
void write_message(std::string& out, AgentKind kind, std::uint32_t rank, std::string_view bytes);

// Cuts a stream of bytes into messages. One thread.
class AgentMessageBuffer {
 public:
  void push(std::string_view bytes) { held_ += bytes; }
  // The next whole message, if there is one.
  std::optional<AgentMessage> pop();
  // A length or kind that no message has: nothing more comes of this stream.
  bool broken() const { return broken_; }
  // What is held and is no whole message yet.
  std::string_view rest() const { return std::string_view(held_).substr(at_); }

 private:
  std::string held_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

// What an agent starts: its PEs are first .. first + count - 1 of `size`.
struct StartRequest {
  std::uint32_t size = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool bind_to_cores = false;
  std::string folder;                // working directory; where there is none of that name, the agent's own
  std::vector<std::string> command;  // argv; the program is looked for on the agent's host
  std::vector<std::string> environment;  // "NAME=value"
};

std::string encode_start(const StartRequest& request);
// Nothing when the bytes are no such request, or its numbers are out of range.
std::optional<StartRequest> decode_start(std::string_view bytes);

// A decimal number of at most `most`, and nothing else.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t most);

}  // namespace orrery::tool
