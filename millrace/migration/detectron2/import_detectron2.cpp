#include "millrace/migration/detectron2/import_detectron2.h"

#include <utility>
#include <vector>

#include "millrace/migration/detectron2/defaults.h"
#include "millrace/migration/detectron2/parts.h"
#include "millrace/migration/files/foreign_config.h"

namespace millrace {

ImportedConfig import_detectron2(const Value& recipe, const ImportOptions& options) {
  using namespace detectron2;
  auto whole = default_tree();
  merge(whole, recipe);
  Translation t(whole);
  t.expect("VERSION", literal(2), "keys of another version: convert the file in detectron2 first");
  const bool has_views = read_model(t);
  read_input(t, has_views);
  const auto images = read_data(t);
  const double images_per_step = read_optimizer(t, options.gpus);
  read_schedule(t, {images_per_step, options.images ? options.images : images});
  read_run(t, recipe);
  note_rest(t, recipe);
  auto notes = t.left_out();  // defaults that have no counterpart are no news
  std::erase_if(notes, [](const LeftOut& one) { return one.place == kDefaultPlace.source; });
  return {"detectron2", std::move(t.ours()), std::move(notes)};
}

}  // namespace millrace
