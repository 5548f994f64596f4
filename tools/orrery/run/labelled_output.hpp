// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace orrery::tool {

// Writes all of it, waiting where there is no room. Returns 0, or errno's value where it cannot be written:
// EPIPE when there is no reader.
int write_whole(int to, std::string_view bytes);

// Copies what a PE writes into a pipe to one of our own descriptors, whole lines at a time, each with a label
// before it. A line longer than 64 KiB is cut into several. Once something cannot be written nothing more is
// read: a PE that goes on writing finds, as it would without a label, that there is no reader.
class LabelledOutput {
 public:
  LabelledOutput() = default;
  LabelledOutput(UniqueFd from, int to, std::string label)
      : from_(std::move(from)), to_(to), label_(std::move(label)) {}

  int fd() const { return from_.get(); }  // -1: nothing (more) to read
  // Reads once what is there without waiting, and writes the lines that are complete. At the end of the pipe
  // writes the rest, with a newline, and closes. One read: a PE that writes without end does not keep the
  // others, a signal or the deadline waiting. Whether there may be more.
  bool pump();
  // All that is there now. What is written meanwhile is not followed.
  void drain();
  // The same with bytes that did not come through a pipe.
  void take(std::string_view bytes);
  // Writes what is held and closes.
  void finish();
  // Why something could not be written, as write_whole() tells it; each reason once.
  int take_error() { return std::exchange(error_, 0); }

 private:
  void write_line(std::string_view line);

  UniqueFd from_;
  int to_ = -1;
  std::string label_;
  std::string held_;
  int error_ = 0;
};

}  // namespace orrery::tool
