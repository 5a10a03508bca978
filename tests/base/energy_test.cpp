// Reads energy counters in a temporary folder with the layout of /sys/class/powercap.
#include "millrace/base/process/energy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/scratch.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class Energy : public ::testing::Test {
 protected:
  void set(const std::string& zone, const char* file, double value) const {
    fs::create_directories(root_ / zone);
    std::ofstream(root_ / zone / file) << static_cast<std::int64_t>(value);
  }
  void add_package(const std::string& zone, double microjoules) const {
    set(zone, "max_energy_range_uj", 10e6);
    set(zone, "energy_uj", microjoules);
  }

  testing::Scratch scratch_;
  fs::path root_ = scratch_ / "powercap";
};

TEST_F(Energy, SumsPackagesSinceConstruction) {
  add_package("intel-rapl:0", 4e6);
  add_package("intel-rapl:1", 1e6);
  add_package("intel-rapl:0:0", 3e6);  // a subzone of package 0
  EnergyMeter meter(root_);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 0);
  add_package("intel-rapl:0", 6e6);
  add_package("intel-rapl:1", 1.5e6);
  add_package("intel-rapl:0:0", 9e6);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 2.5);
}

TEST_F(Energy, SurvivesCounterOverflow) {
  add_package("intel-rapl:0", 9e6);
  EnergyMeter meter(root_);
  add_package("intel-rapl:0", 0.5e6);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 1.5);
  add_package("intel-rapl:0", 1e6);
  EXPECT_DOUBLE_EQ(meter.joules().value(), 2);
}

TEST_F(Energy, IsUnknownIfCounterIsMissing) {
  EXPECT_FALSE(EnergyMeter(root_).joules());
  add_package("intel-rapl:0", 1e6);
  // Package 1 has no counter, so the sum would be incomplete.
  fs::create_directories(root_ / "intel-rapl:1");
  EXPECT_FALSE(EnergyMeter(root_).joules());
}

}  // namespace
}  // namespace millrace
