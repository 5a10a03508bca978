// Results files: any text is read as detections or rejected with an Error, and detections that were
// written and read back are written as the same bytes.
#include <tbb/task_arena.h>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/detections.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {

void check(Input input) try {
  static tbb::task_arena one_thread(1);
  // In memory, since elsewhere the file would be flushed to disk.
  static const auto written =
      std::filesystem::path("/dev/shm") / ("millrace-fuzz-" + std::to_string(::getpid()));
  const MemoryFile file(input.rest());
  one_thread.execute([&] { coco::write_detections(written, coco::read_detections(file.path())); });
  const std::string first = read_file(written);
  one_thread.execute([&] { coco::write_detections(written, coco::read_detections(written)); });
  MILLRACE_LAW(first == read_file(written));
  std::filesystem::remove(written);
} catch (const Error& error) {
  MILLRACE_LAW(*error.what() != '\0');
}

}  // namespace millrace::fuzz
