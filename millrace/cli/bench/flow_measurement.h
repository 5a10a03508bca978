// What draining a flow for a while shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace::cli {

/// How long to drain, and what to keep beside the figures.
struct DrainOptions {
  std::int64_t batches = 0;  // at most, unless `seconds` says when to stop
  double seconds = 0;
  bool digest = false;
};

struct FlowMeasurement {
  std::int64_t batches = 0, images = 0;
  std::int64_t bytes = 0, image_bytes = 0;  // of pixels, with and without padding
  double wall_s = 0, cpu_s = 0;             // CPU: of the whole process
  std::int64_t peak_rss_bytes = 0;          // the process's, up to the end of the drain
  std::vector<double> mean_waiting;  // items in front of each stage of `flow`, seen at each batch
  std::map<std::int64_t, ImageInfo> delivered;  // by image id, as last seen
  std::vector<std::string> digests;
  FlowReport flow;

  double busy_s() const;           // all stages together
  double padding_share() const;    // pixels of batches that belong to no image
  std::string bottleneck() const;  // the stage that the threads spend most time in
  /// In a sentence: who waits for whom, and what would help a flow of so many threads.
  std::string verdict(int threads) const;
};

FlowMeasurement drain(DataFlow<Batch>& flow, const DrainOptions& options);

}  // namespace millrace::cli
