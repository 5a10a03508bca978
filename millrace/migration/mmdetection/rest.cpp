#include <algorithm>
#include <string>
#include <string_view>

#include "millrace/migration/mmdetection/parts.h"

namespace millrace::mmdetection {
namespace {

/// Names at the top of a recipe that MMDetection itself reads.
constexpr std::string_view kKnown[] = {"model",
                                       "train_dataloader",
                                       "val_dataloader",
                                       "test_dataloader",
                                       "val_evaluator",
                                       "test_evaluator",
                                       "train_cfg",
                                       "val_cfg",
                                       "test_cfg",
                                       "param_scheduler",
                                       "optim_wrapper",
                                       "auto_scale_lr",
                                       "default_scope",
                                       "default_hooks",
                                       "custom_hooks",
                                       "env_cfg",
                                       "vis_backends",
                                       "visualizer",
                                       "log_processor",
                                       "log_level",
                                       "load_from",
                                       "resume",
                                       "data",
                                       "evaluation",
                                       "optimizer",
                                       "optimizer_config",
                                       "lr_config",
                                       "runner",
                                       "checkpoint_config",
                                       "log_config",
                                       "dist_params",
                                       "resume_from",
                                       "workflow",
                                       "opencv_num_threads",
                                       "mp_start_method",
                                       "fp16",
                                       "total_epochs",
                                       "work_dir",
                                       "seed",
                                       "randomness",
                                       "launcher",
                                       "gpu_ids",
                                       "device",
                                       "cudnn_benchmark",
                                       "find_unused_parameters",
                                       "custom_imports",
                                       "tta_model",
                                       "tta_pipeline"};

/// NumClassCheckHook, which is in every recipe of 2.x: classes are those of the data set here.
bool is_class_check(const Value& hooks) {
  return hooks.is_list() && hooks.list().size() == 1 && hooks.list()[0].is_dict() &&
         hooks.list()[0].find("type") &&
         hooks.list()[0].find("type")->text() == "'NumClassCheckHook'";
}

}  // namespace

void note_rest(Translation& t, const Layout& layout, const ForeignConfig& config) {
  for (const auto& path : {layout.train_cfg, layout.test_cfg, std::string("model")})
    t.leave_out_rest(path, "no counterpart is known");
  for (const auto* key : {"default_scope", "env_cfg", "vis_backends", "visualizer", "log_processor",
                          "log_level", "dist_params", "opencv_num_threads", "mp_start_method",
                          "find_unused_parameters", "cudnn_benchmark", "gpu_ids", "device",
                          "resume", "resume_from", "launcher", "val_cfg", "test_cfg"})
    t.leave_out_rest(key, "how MMDetection runs, not what is trained");
  if (const auto hooks = t.read("custom_hooks"); hooks && !is_class_check(*hooks.value))
    t.leave_out(hooks, "hooks are callbacks here: docs/callbacks.md");
  const auto workflow = t.read("workflow");
  if (workflow && workflow.need().is_list() && workflow.need().list().size() > 1)
    t.leave_out(workflow, "[callbacks.validation_loss] measures losses over the validation split");
  for (const auto* key :
       {"default_hooks", "checkpoint_config", "evaluation", "optimizer", "optimizer_config",
        "optim_wrapper", "fp16", "lr_config", "runner", "train_cfg", "auto_scale_lr", "log_config",
        "custom_imports", "tta_model", "tta_pipeline"})
    t.leave_out_rest(key, "no counterpart is known");
  for (const auto& [name, value] : config.unused)
    if (!std::ranges::count(kKnown, name))
      t.leave_out({&value, name}, "used by no other line of the recipe");
}

}  // namespace millrace::mmdetection
