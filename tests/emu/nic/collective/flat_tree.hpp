// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "tests/emu/nic/collective/tree.hpp"

#include <gtest/gtest.h>

namespace orrery::nic::box {

// Two processes, each a leaf of the VCE that is the first one's: the smallest tree, set up.
class FlatTreeOfTwo : public testing::Test {
 protected:
  void SetUp() override {
    root = tree.vce(0, -1);
    tree.leaf(0, root);
    tree.leaf(1, root);
    ASSERT_TRUE(tree.configure());
  }

  World world{2, Path::direct};
  Tree tree{world};
  int root = -1;
};

}  // namespace orrery::nic::box
