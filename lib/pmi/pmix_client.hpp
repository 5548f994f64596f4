// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/job/pmi_client.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace orrery::pmi {

// The job's process manager through PMIx, as Open MPI's mpirun, prterun and srun --mpi=pmix have it. The
// library is opened at run time, when such a launcher has started this process; nothing of it is needed to
// build. Every fence brings all pairs here, and only what is here is looked at.
// Usage: auto client = PmixClient::open(); client.value()->put("a", "b"); client.value()->barrier();
class PmixClient final : public job::PmiClient {
 public:
  // Errors: unsupported (libpmix.so.2 cannot be loaded, or refuses us; the log says what to use instead).
  static Result<std::unique_ptr<PmixClient>> open();
  ~PmixClient() override;

  int rank() const { return rank_; }
  int size() const { return size_; }

  const Limits& limits() const override { return limits_; }
  const std::string& kvs_name() const override { return name_; }
  Result<int> appnum() override;
  Result<int> universe_size() override;
  Status put(std::string_view key, std::string_view value) override;
  Result<std::string> get(std::string_view key, int from = kAnybody) override;
  Status barrier_enter() override;
  Status barrier_leave() override;
  Status finalize() override;
  Status abort(int code) override;

 private:
  struct Library;
  PmixClient();
  Result<int> job_number(const char* key);

  std::unique_ptr<Library> library_;
  Limits limits_;
  std::string name_;
  std::set<std::string, std::less<>> own_keys_;  // that were put
  int rank_ = 0;
  int size_ = 0;
  std::uint32_t fences_seen_ = 0;  // that were over when the one under way began
  bool in_fence_ = false;          // entered, and not left
  bool open_ = false;
};

}  // namespace orrery::pmi
