// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/reference.hpp"

#include "emu/model/machine_file.hpp"
#include "emu/model/measure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace orrery::model {
namespace {

const ReferenceTable& table() {
  static const ReferenceTable t = parse_reference(shipped_reference(), "reference.csv");
  return t;
}

// What others measured, and those rows and the papers' after each other.
const ReferenceTable& measurements() {
  static const ReferenceTable t = parse_reference(shipped_measurements(), "measurements.csv");
  return t;
}
const ReferenceTable& both() {
  static const ReferenceTable t = [] {
    ReferenceTable all = table();
    all.rows.insert(all.rows.end(), measurements().rows.begin(), measurements().rows.end());
    return all;
  }();
  return t;
}

TEST(Reference, TheShippedTablesAreSound) {
  EXPECT_EQ(table().error, "");
  EXPECT_GT(table().rows.size(), 100u);
  EXPECT_EQ(measurements().error, "");
  EXPECT_EQ(measurements().rows.size(), 40u);
}

// Constants may be fitted to what others measured, one to two rows at most.
TEST(Reference, NoMoreThanEverySecondMeasurementIsConsumed) {
  std::set<std::string> constants;
  std::map<std::string, std::set<std::string>> consumed;
  for (const ShippedFile& shipped : shipped_machines()) {
    const MachineFile file = load_machine(std::string(shipped.name));
    for (const auto& [name, c] : file.description->constants) {
      for (const std::string& id : c.rows) {
        if (id[0] == 'H') constants.insert(file.description->name + " " + name);
      }
    }
  }
  EXPECT_LE(constants.size() * 2, measurements().rows.size());
}

// Every measurement that the model can say something about has its figure; which of them it misses is told
// (docs/machines.md), not judged.
TEST(Reference, EveryMeasurementHasAFigure) {
  for (const ReferenceRow& row : measurements().rows) {
    const BuiltMachine built = build_machine(row.machine);
    const Verdict v = judge(*built.machine, row);
    EXPECT_EQ(v.model.has_value(), row.measure != "simulator") << row.id << " " << row.measure;
  }
}

TEST(Reference, ALayerIsAddedByNameAndNowhereElse) {
  const BuiltMachine bare = build_machine("aries"), mpi = build_machine("aries+mpi");
  ASSERT_TRUE(mpi.machine) << mpi.error;
  const auto at = [](const Machine& m, std::string_view text) { return *measure(m, text); };
  EXPECT_NEAR(at(*mpi.machine, "latency(message, 8, 1)") - at(*bare.machine, "latency(message, 8, 1)"), 0.5,
              1e-9);
  EXPECT_EQ(at(*bare.machine, "mpi: latency(message, 8, 1)"), at(*mpi.machine, "latency(message, 8, 1)"));
  EXPECT_EQ(at(*bare.machine, "latency(fma_put, 8, 1)"), at(*mpi.machine, "latency(fma_put, 8, 1)"));
  EXPECT_EQ(build_machine("aries+mpi+mpi").error, "aries.toml: layer 'mpi' is there twice");
  EXPECT_EQ(build_machine("aries+pvm").error, "aries.toml: layer 'pvm' is not known: expected mpi");
  EXPECT_EQ(build_machine("ideal+mpi").error, "ideal.toml: layer 'mpi' is not known: the machine has none");
}

TEST(Reference, EveryRowHoldsOnItsMachine) {
  std::map<std::string, BuiltMachine> machines;
  for (const ReferenceRow& row : table().rows) {
    if (!machines.count(row.machine)) machines.emplace(row.machine, build_machine(row.machine));
    const BuiltMachine& built = machines.at(row.machine);
    ASSERT_TRUE(built.machine) << built.error;
    const Verdict v = judge(*built.machine, row);
    ASSERT_TRUE(v.model) << row.id << " " << row.measure;
    EXPECT_TRUE(v.holds) << row.id << " " << row.what << ": printed " << row.printed << ", model "
                         << *v.model;
  }
}

TEST(Reference, EveryConstantThatARowNamesExists) {
  std::map<std::string, BuiltMachine> machines;
  for (const ReferenceRow& row : both().rows) {
    if (!machines.count(row.machine)) machines.emplace(row.machine, build_machine(row.machine));
    for (const std::string& name : row.constants) {
      EXPECT_NE(machines.at(row.machine).machine->description.find(name), nullptr) << row.id << " " << name;
    }
  }
}

// Values a constant is tried with: a good tenth up and down, whole steps for small counts.
std::vector<std::int64_t> changed(const Constant& c) {
  if (c.kind == ConstantKind::flag) return {1 - c.value};
  const std::int64_t step = std::max<std::int64_t>(c.value / 8, 1);
  std::vector<std::int64_t> values{c.value + step};
  if (c.kind == ConstantKind::fraction) values = {c.value - step};
  if (c.value > step) values.push_back(c.value - step);
  // A limit may decide only far from where it stands.
  values.push_back(c.value * 2);
  if (c.kind == ConstantKind::fraction) values.pop_back();
  return values;
}

// The rows that move when a constant of their machine is changed, by constant; found by doing it.
std::map<std::string, std::set<std::size_t>> moves(const std::string& machine) {
  const MachineFile file = load_machine(machine);
  const BuiltMachine base = compile(*file.description);
  std::vector<std::size_t> mine;
  std::vector<std::optional<double>> before;
  for (std::size_t i = 0; i < both().rows.size(); ++i) {
    if (both().rows[i].machine != machine) continue;
    mine.push_back(i);
    before.push_back(measure(*base.machine, both().rows[i].measure));
  }
  std::map<std::string, std::set<std::size_t>> out;
  for (const auto& [name, constant] : file.description->constants) {
    for (const std::int64_t value : changed(constant)) {
      Description d = *file.description;
      d.constants[name].value = value;
      const BuiltMachine built = compile(d);
      if (!built.machine) continue;
      std::map<std::string, std::optional<double>> measured;  // several rows print the same figure
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (out[name].count(mine[i])) continue;  // another value has moved it already
        const std::string& what = both().rows[mine[i]].measure;
        if (!measured.count(what)) measured[what] = measure(*built.machine, what);
        const auto& after = measured[what];
        if (!after && !before[i]) continue;  // the simulator's
        // Less than a part in a thousand is the phase of a stream, not a dependence.
        if (after && before[i] && std::abs(*after - *before[i]) <= 1e-3 * std::abs(*before[i])) continue;
        out[name].insert(mine[i]);
      }
    }
  }
  return out;
}

class ReferenceMoves : public testing::TestWithParam<std::string> {};

// The honesty of the table: a change of a constant moves exactly the rows that name it, so the marks
// "fitted" and "predicted", which follow from the names, are true.
TEST_P(ReferenceMoves, AChangedConstantMovesOnlyTheRowsThatNameIt) {
  const auto found = moves(GetParam());
  for (std::size_t i = 0; i < both().rows.size(); ++i) {
    const ReferenceRow& row = both().rows[i];
    if (row.machine != GetParam()) continue;
    const std::set<std::string> named(row.constants.begin(), row.constants.end());
    std::set<std::string> moving;
    for (const auto& [name, rows] : found) {
      if (rows.count(i)) moving.insert(name);
    }
    std::string list;
    for (const std::string& name : moving) list += (list.empty() ? "" : " ") + name;
    EXPECT_EQ(named, moving) << "MOVES " << i << "|" << list;
  }
}

// A constant may consume only rows that exist, and only rows that depend on it.
TEST_P(ReferenceMoves, AConsumedRowThatIsInTheTableNamesItsConstant) {
  const MachineFile file = load_machine(GetParam());
  for (const auto& [name, constant] : file.description->constants) {
    if (!constant.fitted) continue;
    for (const std::string& id : constant.rows) {
      bool named = false;
      for (const ReferenceRow& row : both().rows) {
        if (row.id != id) continue;
        for (const std::string& n : row.constants) named = named || n == name;
      }
      EXPECT_TRUE(named) << name << " says it was fitted to " << id << ", which does not depend on it";
    }
  }
}

// The same figure printed twice is one figure: what is fitted to one of the rows is fitted to the other.
TEST_P(ReferenceMoves, ARowThatPrintsAConsumedFigureAgainIsConsumedToo) {
  const MachineFile file = load_machine(GetParam());
  const auto same = [](const ReferenceRow& a, const ReferenceRow& b) {
    return a.unit == b.unit && a.low == b.low && a.high == b.high;
  };
  for (const auto& [name, constant] : file.description->constants) {
    if (!constant.fitted) continue;
    const auto consumed = [&constant = constant](const ReferenceRow& row) {
      return std::find(constant.rows.begin(), constant.rows.end(), row.id) != constant.rows.end();
    };
    for (const ReferenceRow& row : both().rows) {
      const bool depends = std::find(row.constants.begin(), row.constants.end(), name) != row.constants.end();
      if (row.machine != GetParam() || !depends || consumed(row)) continue;
      for (const ReferenceRow& other : both().rows) {
        EXPECT_FALSE(other.machine == row.machine && consumed(other) && same(row, other))
            << name << " was fitted to " << other.id << ", and " << row.id << " prints the same";
      }
    }
  }
}

// Rows that a choice was tuned to, though they look like predictions.
TEST(Reference, WhatTheModelWasTunedToIsMarkedAsFitted) {
  const BuiltMachine aries = build_machine("aries");
  for (const ReferenceRow& row : table().rows) {
    for (const std::string_view id :
         {"AR032", "AR055", "AR056", "AR060", "AR063", "AR069", "AR070", "AR071"}) {
      if (row.id != id) continue;
      EXPECT_TRUE(judge(*aries.machine, row).fitted) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, ReferenceMoves,
                         testing::Values("aries", "gemini", "seastar", "bluegene-l", "asci-q"),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Reference, RefusesATableThatIsNotSound) {
  const std::string head = "id,machine,place,what,printed,unit,compare,tolerance,measure,constants\n";
  EXPECT_NE(parse_reference(head + "A,b,c\n", "t").error.find("t:2: expected 10 columns"), std::string::npos);
  EXPECT_NE(parse_reference(head + "A,b,c,d,1,u,nearly,,m,\n", "t").error.find("compare"), std::string::npos);
  EXPECT_NE(parse_reference(head + "A,b,c,d,x,u,digits,,m,\n", "t").error.find("printed"), std::string::npos);
  EXPECT_NE(parse_reference(head + "A,b,c,d,3..1,u,range,,m,\n", "t").error.find("printed"),
            std::string::npos);
  EXPECT_NE(parse_reference(head + "A,b,c,d,1,u,percent,,m,\n", "t").error.find("tolerance"),
            std::string::npos);
  EXPECT_NE(parse_reference(head + "A,b,c,d,1,u,percent,-3,m,\n", "t").error.find("tolerance"),
            std::string::npos);
}

TEST(Reference, DigitsAcceptExactlyWhatRoundsToThePrintedFigure) {
  const std::string head = "id,machine,place,what,printed,unit,compare,tolerance,measure,constants\n";
  const BuiltMachine bg = build_machine("bluegene-l");
  for (const auto& [printed, holds] :
       {std::pair{"66.7", true}, {"66.6", false}, {"67", true}, {"66", false}}) {
    const auto t = parse_reference(
        head + "B,bluegene-l,p,w," + printed + ",%,digits,,\"structure(peak_utilisation, 64, 32, 32)\",\n",
        "t");
    ASSERT_EQ(t.error, "");
    EXPECT_EQ(judge(*bg.machine, t.rows[0]).holds, holds) << printed;
  }
}

}  // namespace
}  // namespace orrery::model
