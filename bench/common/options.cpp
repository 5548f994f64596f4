// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "bench/common/options.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdlib>

namespace bench {

struct Options::App {
  CLI::App cli;
};

Options::Options(const char* about) : app_(new App{CLI::App(about)}) {
  app_->cli.option_defaults()->always_capture_default();
}

Options::~Options() = default;

template <typename Number>
void Options::number(const char* names, Number* value, const char* help, std::type_identity_t<Number> least,
                     std::type_identity_t<Number> most) {
  app_->cli.add_option(names, *value, help)->check(CLI::Range(least, most));
}
template void Options::number(const char*, int*, const char*, int, int);
template void Options::number(const char*, unsigned*, const char*, unsigned, unsigned);
template void Options::number(const char*, std::size_t*, const char*, std::size_t, std::size_t);
template void Options::number(const char*, double*, const char*, double, double);

void Options::text(const char* names, std::string* value, const char* help,
                   std::initializer_list<std::string> choices) {
  CLI::Option* const option = app_->cli.add_option(names, *value, help);
  if (choices.size() != 0) option->check(CLI::IsMember(choices));
  if (*help == '\0') option->group("");
}

void Options::flag(const char* names, bool* value, const char* help) {
  app_->cli.add_flag(names, *value, help);
}

void Options::parse(int argc, char** argv) {
  try {
    app_->cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app_->cli.exit(error) == 0 ? 0 : 2);
  }
}

}  // namespace bench
