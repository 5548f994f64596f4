// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/labelled_output.hpp"

#include <array>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace orrery::tool {

namespace {
constexpr std::size_t kLongestLine = 64 * 1024;
}

int write_whole(int to, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(to, rest.data(), rest.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd room{to, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (written < 0 && errno != EINTR) {
      return errno;
    } else if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  return 0;
}

void LabelledOutput::write_line(std::string_view line) {
  std::string text = label_;
  text += line;
  text += '\n';
  const int error = write_whole(to_, text);
  if (error == 0) return;
  error_ = error;
  from_.reset();
}

bool LabelledOutput::pump() {
  if (!from_.valid()) return false;
  std::array<char, 16384> bytes;
  const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    finish();
    return false;
  }
  take({bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

void LabelledOutput::drain() {
  constexpr int kMostReads = 64;  // a pipe holds no more
  for (int i = 0; i < kMostReads && pump(); ++i) {
  }
}

void LabelledOutput::take(std::string_view bytes) {
  held_ += bytes;
  std::size_t start = 0;
  while (true) {
    const auto newline = held_.find('\n', start);
    if (newline != std::string::npos) {
      write_line(std::string_view(held_).substr(start, newline - start));
      start = newline + 1;
    } else if (held_.size() - start > kLongestLine) {
      write_line(std::string_view(held_).substr(start, kLongestLine));
      start += kLongestLine;
    } else {
      break;
    }
  }
  held_.erase(0, start);
}

void LabelledOutput::finish() {
  if (!held_.empty()) write_line(held_);
  held_.clear();
  from_.reset();
}

}  // namespace orrery::tool
