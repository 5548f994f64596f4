// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// One line of the PMI-1 text wire: "cmd=put kvsname=x key=a value=b\n". Names are letters, digits and
// underscores, values printable ASCII without spaces. The same grammar both ways.
namespace orrery::job {

// Limits that our server announces; other servers have the same (hydra, Slurm) or say so in get_maxes.
inline constexpr std::size_t kPmiKvsNameMax = 256;
inline constexpr std::size_t kPmiKeyMax = 64;
inline constexpr std::size_t kPmiValueMax = 1024;
// The longest line that either side accepts: room for the three above and their names, twice over.
inline constexpr std::size_t kPmiLineMax = 4096;
inline constexpr std::size_t kPmiFieldsMax = 32;

class PmiLine {
 public:
  // Parses a line without its newline; the result points into `text`. Errors: corrupt (empty, too long, a
  // field without '=', a character that is not accepted, too many fields), size (longer than kPmiLineMax).
  static Result<PmiLine> parse(std::string_view text);

  // Value of the first field called `name`.
  std::optional<std::string_view> get(std::string_view name) const;
  // As above as a decimal number; none when absent or no number.
  std::optional<int> number(std::string_view name) const;
  // The command: the value of cmd or mcmd, the first field; empty when the line starts otherwise.
  std::string_view command() const;

 private:
  std::vector<std::pair<std::string_view, std::string_view>> fields_;
};

// "a=1 b=2\n".
std::string format_pmi_line(std::initializer_list<std::pair<std::string_view, std::string_view>> fields);

// Whether `text` may stand as a value (or key, or kvs name): not empty, 33..126 only.
bool is_pmi_token(std::string_view text);

// Cuts a stream of bytes into lines. Holds at most kPmiLineMax bytes.
class PmiLineBuffer {
 public:
  // Takes bytes; false when a line has grown too long, after which the stream is of no use.
  [[nodiscard]] bool push(std::string_view bytes);
  // The next whole line without its newline, if there is one.
  std::optional<std::string> pop();

 private:
  std::string held_;
};

// Any bytes as printable characters (base64 with '-' and '_', no padding), and back.
std::string encode_pmi_value(std::string_view bytes);
Result<std::string> decode_pmi_value(std::string_view text);

}  // namespace orrery::job
