// serving_server ENDPOINT SIDE MICROSECONDS: a data server of made batches, to be killed.
#include <cstdlib>

#include "dataflow/serving/server.h"
#include "tests/dataflow/serving/made_batches.h"

int main(int, char** argv) {
  using namespace millrace;
  const testing::Making making{.side = std::atoi(argv[2]),
                               .time = std::chrono::microseconds(std::atoi(argv[3]))};
  serving::BatchServer server(testing::make_batches(making), testing::made_facts(), 100,
                              {.door = {.bind = argv[1]}});
  server.run([] { return true; });
}
