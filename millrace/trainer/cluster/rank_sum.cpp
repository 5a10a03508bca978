#include "millrace/trainer/cluster/rank_sum.h"

#include <c10/core/DeviceType.h>

namespace millrace {

void RankSum::operator()(const at::Tensor& values) {
  // A connection of its own: buckets of gradients come in between at other moments on each rank.
  if (!sync_) sync_ = make_gradient_sync(device_, cluster_);
  sync_->begin_sum(values, "statistics");
  sync_->wait();
}

}  // namespace millrace
