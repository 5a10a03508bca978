// The main function of test programs that run on several ranks (add_cluster_test). Include it once
// per program.
#pragma once

#include <gtest/gtest.h>

#include "millrace/base/log.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace::testing {

/// The cluster of the ranks that run the tests.
inline const Cluster* cluster = nullptr;

}  // namespace millrace::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  millrace::start_logging();
  return millrace::Cluster::run([](const millrace::Cluster& all) {
    millrace::testing::cluster = &all;
    return RUN_ALL_TESTS();
  });
}
