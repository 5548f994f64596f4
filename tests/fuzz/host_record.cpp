// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What another host says of itself by the launcher's key-value space: values that were cut into chunks, and
// the records of its processes in them. Before the first zero byte stand the values, one a line; behind it a
// record.
#include "lib/pmi/host_record.hpp"
#include "emu/base/check.hpp"
#include "emu/job/host_directory.hpp"
#include "emu/job/pmi_client.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace orrery;

// A launcher that gives the fuzzer's values, or keeps what it is given.
class Space final : public job::PmiClient {
 public:
  explicit Space(std::size_t value) { limits_ = {.kvs_name = 64, .key = 64, .value = value}; }
  const Limits& limits() const override { return limits_; }
  const std::string& kvs_name() const override { return name_; }
  Result<int> appnum() override { return 0; }
  Result<int> universe_size() override { return 1; }
  Status put(std::string_view key, std::string_view value) override {
    ORRERY_CHECK(key.size() <= limits_.key && value.size() <= limits_.value, "limits");
    pairs[std::string(key)] = value;
    return {};
  }
  Result<std::string> get(std::string_view key, int) override {
    const auto found = pairs.find(std::string(key));
    if (found == pairs.end()) return Errc::no_match;
    return found->second;
  }
  Status barrier_enter() override { return {}; }
  Status barrier_leave() override { return {}; }
  Status finalize() override { return {}; }
  Status abort(int) override { return {}; }

  std::map<std::string, std::string> pairs;

 private:
  Limits limits_;
  std::string name_ = "kvs";
};

void read_values(std::string_view lines) {
  Space space(256);
  for (std::size_t i = 0; !lines.empty(); ++i) {
    const std::size_t end = lines.find('\n');
    space.pairs[i == 0 ? "k" : "k." + std::to_string(i)] = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
  const auto bytes = space.get_bytes("k");
  if (!bytes.ok()) return;
  ORRERY_CHECK(bytes.value().size() <= 256 * space.pairs.size(), "nothing is made up");
}

void write_and_read(std::string_view bytes) {
  Space space(24);
  ORRERY_CHECK(space.put_bytes("k", bytes).ok(), "put");
  const auto back = space.get_bytes("k");
  ORRERY_CHECK(back.ok() && back.value() == bytes, "what was put comes back");
}

void read_record(std::string_view record) {
  static job::HostDirectory* const directory = job::HostDirectory::create({}).value().release();
  const std::size_t whole = record.size();
  std::size_t taken = 0;
  while (!record.empty()) {
    const auto entry = pmi::take_host_entry(&record);
    if (!entry) return;
    taken += entry->address.size() + sizeof(pmi::HostEntryHead);
    ORRERY_CHECK(taken + record.size() == whole, "all bytes are of one entry");
    const auto* const address = reinterpret_cast<const std::byte*>(entry->address.data());
    (void)directory->add_remote({.index = entry->rank, .generation = entry->generation}, 1,
                                {address, entry->address.size()});
    (void)directory->wire_address(entry->rank);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = all.find('\0');
  read_values(std::string_view(all).substr(0, zero));
  if (zero != std::string::npos) read_record(std::string_view(all).substr(zero + 1));
  write_and_read(all);
  return 0;
}
