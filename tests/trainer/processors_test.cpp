// Assignment of processors to ranks, on synthetic hwloc topologies and on this host.
#include "millrace/trainer/cluster/processors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/gpu_address.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using Shares = std::vector<Processors>;

constexpr auto kTwoSockets = "pack:2 core:4 pu:1";  // processors 0-3 and 4-7
// A core has processors n and n + 4.
constexpr auto kHyperthreads = "pack:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)";

Shares shares(const std::string& description, const Shares& allowed,
              const std::vector<std::string>& gpus = {}) {
  Shares all;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    all.push_back(share_of_processors(allowed, i, {description, gpus}));
  return all;
}

TEST(Processors, AreDividedIntoContiguousShares) {
  EXPECT_THAT(shares(kTwoSockets, {"0-7"}), ElementsAre("0-7"));
  EXPECT_THAT(shares(kTwoSockets, Shares(2, "0-7")), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(shares(kTwoSockets, Shares(4, "0-7")), ElementsAre("0-1", "2-3", "4-5", "6-7"));
  EXPECT_THAT(shares(kTwoSockets, Shares(3, "0-7")), ElementsAre("0-1", "2-4", "5-7"));
}

TEST(Processors, StayTogetherIfOnSameCore) {
  EXPECT_THAT(shares(kHyperthreads, Shares(2, "0-7")), ElementsAre("0-1,4-5", "2-3,6-7"));
  // Only processors allowed by taskset are used: one of each core's two.
  EXPECT_THAT(shares(kHyperthreads, Shares(2, "0-3")), ElementsAre("0-1", "2-3"));
}

TEST(Processors, AreLimitedToContainer) {
  EXPECT_THAT(shares(kTwoSockets, Shares(2, "2-5")), ElementsAre("2-3", "4-5"));
  EXPECT_THAT(shares(kTwoSockets, Shares(2, "1,7")), ElementsAre("1", "7"));
}

TEST(Processors, KeepLauncherBinding) {
  EXPECT_THAT(shares(kTwoSockets, {"0", "1"}), ElementsAre("0", "1"));
  EXPECT_THAT(shares(kTwoSockets, {"0-3", "4-7"}), ElementsAre("0-3", "4-7"));
  // Two ranks per socket, alternating: each pair divides its own socket.
  EXPECT_THAT(shares(kTwoSockets, {"0-3", "4-7", "0-3", "4-7"}),
              ElementsAre("0-1", "4-5", "2-3", "6-7"));
}

TEST(Processors, ReportRanksBoundToFewCores) {
  EXPECT_TRUE(are_bound_narrowly({"0", "1"}, {kTwoSockets}));
  EXPECT_FALSE(are_bound_narrowly({"0-3", "4-7"}, {kTwoSockets}));
  EXPECT_FALSE(are_bound_narrowly({"0", "1"}, {"pack:1 core:2 pu:1"}));
  // Equal sets for both ranks are taken as deliberate.
  EXPECT_FALSE(are_bound_narrowly({"0-1", "0-1"}, {kTwoSockets}));
}

TEST(Processors, AreAllSharedIfCoresAreFew) {
  EXPECT_THAT(shares("pack:1 core:2 pu:1", Shares(3, "0-1")), ElementsAre("0-1", "0-1", "0-1"));
}

/// Returns a topology of two sockets, each with two cores and a bus; `first` and `second` are the
/// devices on the buses.
std::string xml_with(const std::string& first, const std::string& second) {
  int id = 0;
  const auto sets = [&](int mask) {
    return fmt::format(
        "cpuset=\"0x{0:08x}\" complete_cpuset=\"0x{0:08x}\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"{1}\"",
        mask, ++id);
  };
  auto text = fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">)"
      R"(<object type="Machine" os_index="0" {} allowed_cpuset="0xf" allowed_nodeset="0x1">)"
      R"(<object type="NUMANode" os_index="0" {} local_memory="1073741824"/>)",
      sets(15), sets(15));
  for (int package = 0; package < 2; ++package) {
    text +=
        fmt::format(R"(<object type="Package" os_index="{}" {}>)", package, sets(3 << 2 * package));
    for (int core = 2 * package; core < 2 * package + 2; ++core)
      text += fmt::format(
          R"(<object type="Core" os_index="{0}" {1}><object type="PU" os_index="{0}" {2}/></object>)",
          core, sets(1 << core), sets(1 << core));
    text += fmt::format(
        R"(<object type="Bridge" gp_index="{}" bridge_type="0-1" depth="0" bridge_pci="0000:[{}]">{}</object></object>)",
        ++id, package ? "80-ff" : "00-7f", package ? second : first);
  }
  return text + "</object></topology>";
}

std::string address(int bus) { return fmt::format("0000:{:02X}:00.0", bus); }

std::string gpu(int bus) {
  return fmt::format(
      R"(<object type="PCIDev" gp_index="{0}" pci_busid="0000:{0:02x}:00.0" pci_type="0302 [10de:20b0] [10de:1463] a1" pci_link_speed="0.0"/>)",
      bus);
}

TEST(Processors, AreNearGpuOfTheirRank) {
  const auto two = xml_with(gpu(0x3b), gpu(0xb0));
  EXPECT_THAT(shares(two, Shares(2, "0-3"), {address(0x3b), address(0xb0)}),
              ElementsAre("0-1", "2-3"));
  // As reordered by CUDA_VISIBLE_DEVICES = "1,0".
  EXPECT_THAT(shares(two, Shares(2, "0-3"), {address(0xb0), address(0x3b)}),
              ElementsAre("2-3", "0-1"));
  const auto second_alone = xml_with("", gpu(0xb0) + gpu(0xb1));
  const std::vector both = {address(0xb0), address(0xb1)};
  EXPECT_THAT(shares(second_alone, Shares(2, "0-3"), both), ElementsAre("2", "3"));
  EXPECT_THAT(shares(second_alone, Shares(2, "0-3")), ElementsAre("0-1", "2-3"));
  // A rank that may not use the cores near its GPU keeps its allowed cores, and so does a rank
  // without a GPU.
  EXPECT_THAT(shares(second_alone, Shares(2, "0-1"), both), ElementsAre("0", "1"));
  for (const auto* unknown : {"", "0000:01:00.0", "no address"})
    EXPECT_THAT(shares(second_alone, Shares(2, "0-3"), {unknown, unknown}),
                ElementsAre("0-1", "2-3"));
}

TEST(Gpus, AreAssignedByLocalRank) {
  EXPECT_EQ(gpu_of_rank(0, 4), 0);
  EXPECT_EQ(gpu_of_rank(3, 4), 3);
  EXPECT_EQ(gpu_of_rank(3, 1), 0);
  EXPECT_EQ(gpu_of_rank(2, 2), std::nullopt);
  EXPECT_EQ(gpu_of_rank(0, 0), std::nullopt);
}

TEST(Processors, RejectInvalidDescription) {
  EXPECT_THROW(shares("nonsense:x", {"0"}), Error);
  EXPECT_THROW(shares(kTwoSockets, {"many"}), Error);
}

TEST(Processors, MatchProcessAffinity) {
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
    const auto all = static_cast<std::size_t>(CPU_COUNT(&mask));
    EXPECT_EQ(allowed_processor_count(), all);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_EQ(allowed_processor_count(), 1U);
    EXPECT_EQ(allowed_processors(), std::to_string(first));
  }).join();
}

}  // namespace
}  // namespace millrace::testing
