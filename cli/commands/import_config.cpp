// trainer import-config: a recipe of detectron2 or MMDetection as a configuration of ours. The work
// is python/millrace/migrate.
#include <cstdint>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/python_module.h"

namespace millrace::cli {
namespace {

struct ImportConfigArguments {
  std::string file, out;
  std::int64_t gpus = 0, images = 0;
  std::vector<std::string> overrides;
};

int import_config(const ImportConfigArguments&) { run_python_module("migrate", "import-config"); }

}  // namespace

void add_import_config(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "import-config", import_config);
  command
      .add_option("FILE", arguments.file,
                  "the recipe; the files that it inherits from are read, too. No code of it is run")
      ->required();
  command.add_option("OVERRIDES", arguments.overrides,
                     "values instead of those in the file: KEY VALUE ... as detectron2's command "
                     "lines end, key=value ... as MMDetection's --cfg-options");
  command.add_option("--out", arguments.out, "write here instead of to standard output")
      ->type_name("FILE");
  command
      .add_option(
          "--gpus", arguments.gpus,
          "how many GPUs the recipe is for, a process each: SOLVER.IMS_PER_BATCH is divided "
          "by it (default: 1), MMDetection's batch is multiplied by it (default: as its "
          "auto_scale_lr says, else 8)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--images", arguments.images,
                  "images of the training split that have an object, to turn iterations into "
                  "epochs; known of COCO 2017")
      ->type_name("N")
      ->check(positive());
  add_examples(
      command,
      {"trainer import-config configs/COCO-Detection/faster_rcnn_R_50_FPN_1x.yaml --gpus 8",
       "trainer import-config mine.yaml --images 2965 --out mine.toml SOLVER.BASE_LR 0.01",
       "trainer import-config configs/mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py --out "
       "mask_rcnn.toml"});
}

}  // namespace millrace::cli
