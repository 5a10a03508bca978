#include "millrace/cli/describe/config_tables.h"

#include "millrace/coco/sample/sample.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

std::vector<ConfigTable> config_tables() {
  return {
      {"",
       "top-level keys; also `base`, the file to inherit, and `unset`, a list of inherited keys to "
       "reset to their defaults",
       help_of<TopOptions>()},
      {"data", "data set and how it is read", help_of<DataOptions>()},
      {"data.sample",
       "sample data set to make in data.root on first use, if the same file (not --set) sets "
       "data.root",
       help_of<coco::SampleOptions>()},
      {"[data.sources]", "training data; also the options of the source that `type` names",
       help_of<SourceKeys>()},
      {"[data.stages]", "stages that make batches; also the options of the stage that `type` names",
       help_of<StageKeys>()},
      {"model", "detector; also the options of the one that `type` names", help_of<ModelOptions>()},
      {"train", "training run", help_of<TrainOptions>()},
      {"optimizer", "update of the weights by gradients", help_of<OptimizerOptions>()},
      {"[optimizer.groups]",
       "rules for groups of parameters; the first that matches a parameter applies",
       help_of<ParameterRule>()},
      {"schedule", "learning rate over time", help_of<ScheduleOptions>()},
      {"callbacks.NAME", "any callback; also the options of the one that `type` or NAME names",
       help_of<CallbackSwitches>()},
  };
}

}  // namespace millrace::cli
