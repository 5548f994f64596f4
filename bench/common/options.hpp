// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace bench {

// The command line of a benchmark. CLI11 behind a door: its code takes longer to compile than any benchmark,
// so options.cpp alone includes it. Usage: Options options("what it measures");
// options.number("--repetitions", &n, "of each row", 1, 1000);
//        options.parse(argc, argv);
class Options {
 public:
  explicit Options(const char* about);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // One option each. `names` as CLI11 has them ("-m,--min"); *value is the default and, after parse(), what
  // was given. For int, unsigned, std::size_t and double; refused outside [least, most].
  template <typename Number>
  void number(const char* names, Number* value, const char* help, std::type_identity_t<Number> least = 0,
              std::type_identity_t<Number> most = std::numeric_limits<Number>::max());
  // Refused when there are `choices` and it is none of them. Without help it is not listed.
  void text(const char* names, std::string* value, const char* help,
            std::initializer_list<std::string> choices = {});
  void flag(const char* names, bool* value, const char* help);

  // Ends the program after --help with 0, and with 2 after a line on stderr that names what is not accepted.
  void parse(int argc, char** argv);

 private:
  struct App;
  std::unique_ptr<App> app_;
};

}  // namespace bench
