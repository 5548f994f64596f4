// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/pmi_line.hpp"

#include <algorithm>
#include <charconv>

namespace orrery::job {

namespace {

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int digit_value(char c) {
  const auto at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

bool is_pmi_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Result<PmiLine> PmiLine::parse(std::string_view text) {
  if (text.size() > kPmiLineMax) return Errc::size;
  PmiLine line;
  while (!text.empty()) {
    const auto space = text.find(' ');
    const auto field = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (field.empty()) continue;  // servers separate fields by one or more spaces
    const auto equals = field.find('=');
    if (equals == std::string_view::npos || line.fields_.size() == kPmiFieldsMax) return Errc::corrupt;
    const auto name = field.substr(0, equals);
    const auto value = field.substr(equals + 1);
    if (!is_name(name) || (!value.empty() && !is_pmi_token(value))) return Errc::corrupt;
    line.fields_.emplace_back(name, value);
  }
  if (line.fields_.empty()) return Errc::corrupt;
  return line;
}

std::optional<std::string_view> PmiLine::get(std::string_view name) const {
  for (const auto& [field, value] : fields_) {
    if (field == name) return value;
  }
  return std::nullopt;
}

std::optional<int> PmiLine::number(std::string_view name) const {
  const auto text = get(name);
  int number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::string_view PmiLine::command() const {
  if (fields_.empty()) return {};
  const auto& [name, value] = fields_.front();
  return name == "cmd" || name == "mcmd" ? value : std::string_view{};
}

std::string format_pmi_line(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  std::string line;
  for (const auto& [name, value] : fields) {
    if (!line.empty()) line += ' ';
    line += name;
    line += '=';
    line += value;
  }
  return line + '\n';
}

bool PmiLineBuffer::push(std::string_view bytes) {
  held_ += bytes;
  const auto newline = held_.rfind('\n');
  const std::size_t unfinished = newline == std::string::npos ? held_.size() : held_.size() - newline - 1;
  return unfinished <= kPmiLineMax;
}

std::optional<std::string> PmiLineBuffer::pop() {
  const auto newline = held_.find('\n');
  if (newline == std::string::npos) return std::nullopt;
  std::string line = held_.substr(0, newline);
  held_.erase(0, newline + 1);
  return line;
}

std::string encode_pmi_value(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<std::uint8_t>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j <= count; ++j) text += kDigits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

Result<std::string> decode_pmi_value(std::string_view text) {
  if (text.size() % 4 == 1) return Errc::corrupt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t count = std::min<std::size_t>(4, text.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const int value = j < count ? digit_value(text[i + j]) : 0;
      if (value < 0) return Errc::corrupt;
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t j = 0; j + 1 < count; ++j) bytes += static_cast<char>(group >> (16 - 8 * j) & 0xff);
  }
  return bytes;
}

}  // namespace orrery::job
