// serving_server ENDPOINT SIDE MICROSECONDS: a data server of generated batches in shared memory,
// which tests kill.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>

#include "millrace/dataflow/serving/server.h"
#include "tests/dataflow/serving/made_batches.h"

int main(int, char** argv) {
  using namespace millrace;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // dies with the test process
  const auto memory = std::make_shared<serving::SharedMemory>();
  const testing::Making making{.side = std::atoi(argv[2]),
                               .time = std::chrono::microseconds(std::atoi(argv[3])),
                               .memory = BufferPool(memory->source())};
  serving::BatchServer server(testing::make_batches(making), testing::made_facts(), 100,
                              {.listen = {.bind = argv[1]}, .memory = memory});
  server.run([] { return true; });
}
