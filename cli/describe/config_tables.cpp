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
       "keys before all tables; also `base`, the file to inherit, and `unset`, a list of inherited "
       "keys that get their defaults back",
       help_of<TopOptions>()},
      {"data", "the data set and how it is read", help_of<DataOptions>()},
      {"data.sample",
       "makes data.root on first use, if a file, not --set, names that folder beside it",
       help_of<coco::SampleOptions>()},
      {"[data.sources]", "what training reads; also the options of the source that `type` names",
       help_of<SourceKeys>()},
      {"[data.stages]", "how batches are made; also the options of the stage that `type` names",
       help_of<StageKeys>()},
      {"model", "the detector; also the options of the one that `type` names",
       help_of<ModelOptions>()},
      {"train", "the run", help_of<TrainOptions>()},
      {"optimizer", "how gradients become new weights", help_of<OptimizerOptions>()},
      {"[optimizer.groups]", "rules for some of the parameters; the first that matches one counts",
       help_of<ParameterRule>()},
      {"schedule", "the learning rate over time", help_of<ScheduleOptions>()},
      {"callbacks.NAME", "any callback; also the options of the one that `type` or NAME names",
       help_of<CallbackSwitches>()},
  };
}

}  // namespace millrace::cli
