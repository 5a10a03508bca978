// An all-reduce for the test device, with the same messages as over NCCL, but sent by MPI.
#include <ATen/ops/empty_like.h>
#include <mpi.h>

#include <vector>

#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/mpi_world.h"
#include "millrace/trainer/cluster/tree_exchange.h"

namespace {

using namespace millrace;

class OtherSync final : public GradientSync {
 public:
  explicit OtherSync(MpiWorld& world) : world_(world), communicator_(world.communicator()) {}

  void begin_sum(const at::Tensor& values, const char* what) override {
    const auto exchange = [&](const auto& sent, const auto& received) {
      std::vector<at::Tensor> to, from;
      std::vector<MPI_Request> requests(sent.size() + received.size());
      auto* request = requests.data();
      for (const auto& [rank, own] : sent) {
        const auto& host = to.emplace_back(own.cpu());
        MPI_Isend(host.const_data_ptr(), static_cast<int>(host.nbytes()), MPI_BYTE,
                  static_cast<int>(rank), 0, communicator_, request++);
      }
      for (const auto& [rank, own] : received) {
        const auto& host = from.emplace_back(at::empty_like(own, own.options().device(at::kCPU)));
        MPI_Irecv(host.mutable_data_ptr(), static_cast<int>(host.nbytes()), MPI_BYTE,
                  static_cast<int>(rank), 0, communicator_, request++);
      }
      world_.wait(requests, what);
      for (std::size_t i = 0; i < from.size(); ++i) received[i].values.copy_(from[i]);
    };
    sum_as_tree(values, world_.rank(), world_.size(), exchange);
  }
  void wait() override {}

 private:
  MpiWorld& world_;
  const MPI_Comm communicator_;
};

MILLRACE_REGISTER(gradient_syncs().add<NoOptions>("other", "the tests' own",
                                                  [](const Config&, const Cluster& cluster,
                                                     SumOrder) -> std::unique_ptr<GradientSync> {
                                                    return std::make_unique<OtherSync>(
                                                        *cluster.world());
                                                  }));

}  // namespace
