// The main function of tests that every rank of some runs (add_cluster_test), and their cluster. Included once a program.
#pragma once

#include <gtest/gtest.h>

#include "base/log.h"
#include "trainer/cluster.h"

namespace millrace::testing {

inline const Cluster* cluster = nullptr;  // while tests run

}  // namespace millrace::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  millrace::start_logging(/*verbose=*/false);
  return millrace::Cluster::run([](const millrace::Cluster& all) {
    millrace::testing::cluster = &all;
    return RUN_ALL_TESTS();
  });
}
