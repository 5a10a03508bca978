// Annotation files: any text is read as a data set or rejected with an Error, and reading it in
// pieces returns the same data set as reading it in order.
#include <tbb/task_arena.h>

#include "millrace/base/errors.h"
#include "millrace/coco/data/readers.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

using Set = std::shared_ptr<const coco::Dataset>;

template <typename F>
Set data_set_of(F read) {
  try {
    return read();
  } catch (const Error& error) {
    MILLRACE_LAW(*error.what() != '\0');
    return nullptr;
  }
}

void expect_sound(const coco::Dataset& data) {
  std::size_t objects = 0;
  for (const auto& image : data.images)
    for (const auto& object : data.objects(image)) {
      ++objects;
      MILLRACE_LAW(object.image_id == image.id);
      MILLRACE_LAW(data.category_index(object.category_id) >= 0);
      const auto shape = data.segmentation(object);
      const auto* mask = std::get_if<coco::Rle>(&shape);
      if (!mask) continue;
      std::uint64_t pixels = 0;
      for (const auto run : mask->counts) pixels += run;
      MILLRACE_LAW(pixels == std::uint64_t{mask->height} * mask->width);
    }
  MILLRACE_LAW(objects == data.annotations.size());
}

void check_text(std::string_view text) {
  const Set whole = data_set_of([&] { return coco::parse_dataset(text, "fuzz"); });
  if (whole) expect_sound(*whole);
  const MemoryFile file(text);
  const Set pieces = data_set_of([&]() -> Set {
    auto records = coco::read_pieces(InputFile(file.path()), /*piece_bytes=*/64);
    return records ? coco::assemble(std::move(*records), "fuzz") : nullptr;
  });
  std::vector<coco::RecordFault> faults;
  const Set sound = data_set_of([&]() -> Set {
    auto records = coco::read_pieces(InputFile(file.path()), /*piece_bytes=*/64, {}, &faults);
    const auto leave_out = [](const coco::RecordConflict&) {};
    return records ? coco::assemble(std::move(*records), "fuzz", leave_out) : nullptr;
  });
  if (sound) expect_sound(*sound);
  for (const auto& fault : faults) MILLRACE_LAW(fault.byte <= text.size() && !fault.why.empty());
  if (!pieces) return;
  MILLRACE_LAW(whole);
  coco::each_array(
      [](auto a, auto b) {
        MILLRACE_LAW(a.size() == b.size());
        MILLRACE_LAW(a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
      },
      *whole, *pieces);
}

}  // namespace

void check(Input input) {
  static tbb::task_arena one_thread(1);
  one_thread.execute([&] { check_text(input.rest()); });
}

}  // namespace millrace::fuzz
