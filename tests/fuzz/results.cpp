// Results files: a text is detections or an Error, and detections that were written read back the
// same.
#include <tbb/task_arena.h>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/detections.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

void check(std::string_view text) try {
  // In memory: the bytes are flushed to the disk elsewhere.
  static const auto written =
      std::filesystem::path("/dev/shm") / ("millrace-fuzz-" + std::to_string(::getpid()));
  const MemoryFile file(text);
  const auto detections = coco::read_detections(file.path());
  coco::write_detections(written, detections);
  const std::string first = read_file(written);
  coco::write_detections(written, coco::read_detections(written));
  MILLRACE_LAW(first == read_file(written));
  std::filesystem::remove(written);
} catch (const Error& error) {
  MILLRACE_LAW(*error.what() != '\0');
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tbb::task_arena one_thread(1);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  one_thread.execute([&] { millrace::fuzz::check(text); });
  return 0;
}
