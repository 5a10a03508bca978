#include <fmt/format.h>

#include <string>

#include "millrace/migration/mmdetection/parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

constexpr std::int64_t kUsualGpus = 8;  // that MMDetection's recipes are for

/// `decay`: that of all other parameters.
void read_groups(Translation& t, const std::string& path, double decay) {
  const auto rules = t.look(path);
  if (!rules || !rules.need().is_dict()) return;
  Config::Array groups;
  for (const auto& [name, rule] : rules.need().dict()) {
    const auto at = path + "." + name;
    if (name != "backbone" || !rule.is_dict()) {
      t.read(at);
      t.leave_out(t.look(at), "names of parameters are others here: [[optimizer.groups]] match");
      continue;
    }
    const auto rate = t.read(at + ".lr_mult"), factor = t.read(at + ".decay_mult");
    Config group(Config::Table{}, origin_of(t.look(at)));
    group.set("match", {words("backbone.*"), origin_of(t.look(at))});
    if (rate) group.set("lr_factor", {number(rate.real()), origin_of(rate)});
    if (factor) group.set("weight_decay", {number(decay * factor.real()), origin_of(factor)});
    groups.push_back(std::move(group));
  }
  if (!groups.empty()) t.put("optimizer.groups", Config::Data(std::move(groups)), rules);
}

void read_decay(Translation& t, const std::string& path, bool trains_norms) {
  const auto decay = t.read(path + ".weight_decay");
  const double whole = decay ? decay.real() : 0;
  if (decay)
    t.put("optimizer.weight_decay", whole, decay);
  else
    t.set("optimizer.weight_decay", Config::Data(0.0), "torch's default");
  const std::string rules =
      t.look("optim_wrapper") ? "optim_wrapper.paramwise_cfg" : "optimizer.paramwise_cfg";
  const auto norms = t.read(rules + ".norm_decay_mult");
  if (norms)
    t.put("optimizer.weight_decay_norm", whole * norms.real(), norms, "times weight_decay");
  else if (trains_norms && decay)
    t.put("optimizer.weight_decay_norm", whole, decay, "torch decays norms as all else");
  if (const auto biases = t.read(rules + ".bias_decay_mult"))
    t.put("optimizer.weight_decay_bias", whole * biases.real(), biases, "times weight_decay");
  if (const auto biases = t.read(rules + ".bias_lr_mult"))
    t.put("optimizer.bias_lr_factor", biases.real(), biases);
  t.read(rules + ".bypass_duplicate");
  read_groups(t, rules + ".custom_keys", whole);
  t.leave_out_rest(rules, "[[optimizer.groups]] has rules by name, with lr_factor, weight_decay");
}

/// Which batch the rate is for. Returns the images of a step.
double read_batch(Translation& t, double images_per_gpu, std::optional<std::int64_t> given_gpus) {
  const auto base = t.read("auto_scale_lr.base_batch_size");
  t.read("auto_scale_lr.enable");
  if (base && !given_gpus) {
    t.put("optimizer.lr_batch", base.real(), base);
    return base.real();
  }
  const auto gpus = static_cast<double>(given_gpus.value_or(kUsualGpus));
  t.set(
      "optimizer.lr_batch", number(gpus * images_per_gpu),
      fmt::format("{} images on each of {} GPUs{}", images_per_gpu, gpus,
                  given_gpus ? "" : ", as MMDetection's recipes have; --gpus says another number"));
  return gpus * images_per_gpu;
}

void read_precision(Translation& t) {
  const auto wrapper = t.read("optim_wrapper.type");
  const auto scale = t.read_any({"optim_wrapper.loss_scale", "fp16.loss_scale"});
  const auto half = t.look("fp16");
  t.read("optim_wrapper.dtype");
  if (wrapper && wrapper.text() != "OptimWrapper" && wrapper.text() != "AmpOptimWrapper")
    t.leave_out(wrapper, "optim_wrapper is OptimWrapper or AmpOptimWrapper");
  if (!half && !(wrapper && wrapper.text() == "AmpOptimWrapper")) return;
  const auto found = half ? half : wrapper;
  const auto type = t.look("optim_wrapper.dtype");
  const bool brain = type && type.text() == "bfloat16";
  t.put("train.precision", words(brain ? "bf16" : "fp16"), found);
  if (scale && scale.need().type_name() != "a string" && !scale.need().is_dict())
    t.put("train.loss_scale", scale.real(), scale);
}

}  // namespace

double read_optimizer(Translation& t, double images_per_gpu, bool trains_norms,
                      std::optional<std::int64_t> gpus) {
  const std::string path = t.look("optim_wrapper") ? "optim_wrapper.optimizer" : "optimizer";
  const auto type = t.read(path + ".type");
  const auto kind = type ? type.text() : "SGD";
  if (kind == "AdamW")
    t.put("optimizer.type", words("adamw"), type);
  else if (kind != "SGD")
    t.leave_out(type, "optimizer.type is sgd or adamw");
  t.copy(path + ".lr", "optimizer.lr");
  t.copy(path + ".momentum", "optimizer.momentum");
  t.copy(path + ".nesterov", "optimizer.nesterov");
  if (const auto betas = t.read(path + ".betas")) {
    const auto both = betas.reals();
    if (both.size() != 2) betas.fail("two numbers are needed");
    t.put("optimizer.momentum", both[0], betas);
    t.put("optimizer.beta2", both[1], betas);
  }
  t.copy(path + ".eps", "optimizer.epsilon");
  read_decay(t, path, trains_norms);
  const double images_per_step = read_batch(t, images_per_gpu, gpus);
  const auto norm =
      t.read_any({"optim_wrapper.clip_grad.max_norm", "optimizer_config.grad_clip.max_norm"});
  if (norm) t.put("optimizer.clip_norm", norm.real(), norm);
  for (const auto* clip : {"optim_wrapper.clip_grad", "optimizer_config.grad_clip"})
    t.expect(std::string(clip) + ".norm_type", literal(std::int64_t{2}), "the norm is Euclid's");
  t.read("optimizer_config.type");
  t.copy("optim_wrapper.accumulative_counts", "optimizer.accumulate");
  read_precision(t);
  return images_per_step;
}

}  // namespace millrace::mmdetection
